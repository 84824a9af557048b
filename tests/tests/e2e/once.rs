//! Every tap happens exactly once, even if the network on either side of the bridge fails or the bridge is killed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use framewire_e2e::{Framewire, Http, Proxy, Signal, demo, paths, ports, until};

use super::served::{PATIENCE, Served, demo_copy, stock, wait_until};

const BUTTONS: [&str; 10] = ["A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"];

/// How many times connections are cut.
const CUTS: usize = 200;
/// How many times the bridge is killed.
const KILLS: usize = 5;
/// The number of taps.
const TAPS: usize = 10_000;

#[test]
fn ten_thousand_taps_arrive_once_through_cut_connections_and_killed_bridges() {
    let folder = tempfile::tempdir().unwrap();
    let rom = demo_copy(&folder);
    let args = ["--speed", "4", "--rom", rom.to_str().unwrap()];
    let (host, script) = Framewire::host_script(folder.path(), &paths::script(), "", &args).unwrap();
    let game = host.http();
    // The game counts presses only after its initialization.
    let frame = format!("/core/read32?address={}", demo::field("frame"));
    wait_until("the game runs", || Ok(game.get(&frame)?.text().parse::<u32>().is_ok_and(|frame| frame > 5)));

    let to_script = Proxy::start(script).unwrap();
    let bridge_port = ports::free();
    let bridge = || {
        Framewire::serve_at(
            &format!("127.0.0.1:{bridge_port}"),
            &["--attach", &to_script.address().to_string(), "--quiet"],
        )
        .unwrap()
    };
    let to_bridge = Proxy::start(SocketAddr::from(([127, 0, 0, 1], bridge_port))).unwrap();
    let mut running = bridge();

    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let base = format!("http://{}", to_bridge.address());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let http = Http::new(&base);
                loop {
                    let tap = next.fetch_add(1, Ordering::Relaxed);
                    if tap >= TAPS {
                        break;
                    }
                    tap_until_answered(&http, tap);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let begun = Instant::now();
        for fault in 0..CUTS + KILLS {
            // The faults are spread over all taps, so that each happens while there are requests.
            let due = TAPS * (fault + 1) / (CUTS + KILLS + 1);
            while done.load(Ordering::Relaxed) < due {
                assert!(begun.elapsed() < Duration::from_secs(600), "no progress");
                std::thread::sleep(Duration::from_millis(1));
            }
            // After every CUTS / KILLS cuts, the bridge is killed.
            if fault % (CUTS / KILLS + 1) == CUTS / KILLS {
                running.end(Signal::KILL, PATIENCE).unwrap();
                running = bridge();
            } else if fault % 2 == 0 {
                to_script.cut();
            } else {
                to_bridge.cut();
            }
        }
    });
    let total = || presses(&game).unwrap_or_default();
    until("the game saw every tap", Duration::from_secs(300), || Ok(total() >= TAPS as u64)).unwrap();
    wait_until("keys are released", || Ok(game.get("/core/getkeys")?.text() == "0"));
    assert_eq!(total(), TAPS as u64);
}

/// Repeats a tap, with the same idempotency key, until it is answered.
fn tap_until_answered(http: &Http, tap: usize) {
    let button = BUTTONS[tap % BUTTONS.len()];
    let target = format!("/mgba-http/button/hold?button={button}&duration=1");
    let key = format!("tap-{tap}");
    let begun = Instant::now();
    loop {
        match http.exchange("POST", &target, &[("idempotency-key", key.as_str())], Vec::new()) {
            Ok(reply) if reply.status == 200 => return,
            Ok(reply) => assert!(reply.status >= 500, "{}: {}", reply.status, reply.text()),
            Err(_) => {}
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "tap {tap} was never answered");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number of presses of all buttons together, as counted by the game; `None` if the request fails.
fn presses(game: &Http) -> Option<u64> {
    let reply = game.get(&format!("/core/readrange?address={}&length=40", demo::field("presses"))).ok()?;
    let text = reply.text();
    let bytes: Vec<u8> = text.split(',').map_while(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    let words =
        bytes.chunks_exact(4).map(|word| u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
    if bytes.len() == 40 { Some(words.sum()) } else { None }
}

/// The script remembers the outcomes of requests, so it recognises a repeated request even if the bridge was killed
/// before the repetition.
#[test]
fn a_change_repeated_after_the_bridge_was_killed_happens_once() {
    let folder = tempfile::tempdir().unwrap();
    let mgba = stock(&demo_copy(&folder));
    let bridge = || Framewire::serve(&["--attach", &mgba.address().to_string()]).unwrap();
    let ready = |http: &Http| wait_until("the game runs", || Ok(presses(http).is_some()));
    let mut running = bridge();
    let http = running.http();
    ready(&http);
    let state = http.get("/v1/state?flags=0").unwrap().body;
    let load = |http: &Http| {
        http.exchange("PUT", "/v1/state", &[("idempotency-key", "load")], state.clone()).unwrap()
    };
    let tap = |http: &Http| {
        let body = br#"{"keys":["L"],"frames":2}"#.to_vec();
        http.exchange("POST", "/v1/tap?wait=true", &[("idempotency-key", "tap")], body).unwrap()
    };
    let first = load(&http);
    assert_eq!(first.status, 200, "{}", first.text());
    let tapped = tap(&http);
    assert_eq!(tapped.status, 200, "{}", tapped.text());
    assert_eq!(tap(&http).text(), tapped.text());
    let before = presses(&http).unwrap();
    let frame = |http: &Http| http.get("/core/currentframe").unwrap().text().parse::<u64>().unwrap();
    let loaded = frame(&http);
    wait_until("60 frames have run", || Ok(frame(&http) > loaded + 60));

    running.end(Signal::KILL, PATIENCE).unwrap();
    running = bridge();
    let http = running.http();
    ready(&http);
    let seen = frame(&http);
    assert_eq!(load(&http).text(), first.text());
    let again = tap(&http);
    assert_eq!((again.status, presses(&http).unwrap()), (200, before), "{}", again.text());
    assert!(frame(&http) >= seen, "the state was loaded again");
}

/// A tap that is rejected because another one is still playing is not remembered under its key.
#[test]
fn a_tap_rejected_while_another_plays_succeeds_later_with_its_key() {
    for served in [Served::embedded(), Served::stock()] {
        let post = |path: &str, key: &str, body: &str| {
            served.http.exchange("POST", path, &[("idempotency-key", key)], body.into()).unwrap()
        };
        let first = post("/v1/tap", "first", r#"{"keys":["R"],"frames":600}"#);
        assert_eq!(first.status, 200, "{}", first.text());
        let refused = post("/v1/tap", "second", r#"{"keys":["R"]}"#);
        assert_eq!(refused.status, 409, "{}", refused.text());
        let ended = served.http.send("DELETE", "/v1/input", "", Vec::new()).unwrap();
        assert_eq!(ended.status, 200, "{}", ended.text());
        wait_until("the first tap is over and the second one is accepted", || {
            Ok(post("/v1/tap", "second", r#"{"keys":["R"]}"#).status == 200)
        });
    }
}
