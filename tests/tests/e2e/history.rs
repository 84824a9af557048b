//! The history of a stock mGBA in a window: the states from the past to which it can go back, and their cost.

use std::time::{Duration, Instant};

use framewire_e2e::Framewire;
use serde_json::json;

use super::served::{Served, wait_until};

/// The frames of the states in the first line of the history.
fn states(served: &Served) -> Vec<u64> {
    let kept = served.get("/v1/timeline").json();
    let states = kept["lines"][0]["states"].as_array().cloned().unwrap_or_default();
    states.iter().map(|frame| frame.as_u64().unwrap()).collect()
}

#[test]
fn a_window_goes_back_to_a_frame_of_its_history() {
    let served = Served::stock();
    wait_until("states are kept", || Ok(states(&served).len() >= 3));
    served.ask("POST", "/v1/lockstep", &json!({"timeout": 60_000}), 200);
    let frame = states(&served)[1];
    let back = served.ask("POST", "/v1/rewind", &json!({"frame": frame}), 200);
    assert_eq!(back, json!({"frame": frame, "exact": true}));
    assert_eq!(served.get("/core/currentframe").text().trim(), frame.to_string());
    let memory = || served.get("/v1/memory/0x03000000?length=32768").body;
    let then = memory();
    served.ask("POST", "/v1/advance", &json!({"frames": 30}), 200);
    assert_ne!(memory(), then);
    served.ask("POST", "/v1/rewind", &json!({"frame": frame}), 200);
    assert!(memory() == then, "the memory of frame {frame} differs");
}

/// Measures how much a history slows down a window that runs as fast as it can: frames per second with and without a
/// history, alternately.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn a_history_slows_a_window_by_less_than_two_percent() {
    let mut served = Served::stock();
    let address = served.get("/v1/emulator").json()["address"].as_str().unwrap().to_owned();
    served.mgba().toggle_fast_forward().unwrap();
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..10 {
        let size = if round % 2 == 0 { "0" } else { "32M" };
        served.server = Framewire::serve(&["--attach", &address, "--history", size]).unwrap();
        served.http = served.server.http();
        served.ready();
        // The server keeps states from this request on.
        states(&served);
        std::thread::sleep(Duration::from_secs(2));
        let frame = || served.get("/core/currentframe").text().trim().parse::<f64>().unwrap();
        let (begun, first) = (Instant::now(), frame());
        std::thread::sleep(Duration::from_secs(5));
        let rate = (frame() - first) / begun.elapsed().as_secs_f64();
        println!("--history {size}: {rate:.1} frames/s");
        rates[round % 2].push(rate);
    }
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let [without, with] = &mut rates;
    let (without, with) = (median(without), median(with));
    println!("median: {without:.1} without, {with:.1} with: {:.2} % fewer", 100.0 * (1.0 - with / without));
    assert!(with > 0.98 * without);
}
