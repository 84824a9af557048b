//! Ways of ending, seen from both sides.

use std::sync::Barrier;
use std::time::Duration;

use framewire_e2e::{Signal, until};

use super::served::{PATIENCE, Served};

#[test]
fn requests_in_flight_are_answered_when_the_server_is_stopped() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut served = Served::hosted();
        let clients = 20;
        let barrier = Barrier::new(clients + 1);
        let http = served.http.clone();
        std::thread::scope(|scope| {
            let (http, barrier) = (&http, &barrier);
            let answers: Vec<_> = (0..clients)
                .map(|client| {
                    scope.spawn(move || {
                        barrier.wait();
                        http.get(&format!("/mgbaendpoint?message=client{client}")).unwrap()
                    })
                })
                .collect();
            barrier.wait();
            std::thread::sleep(Duration::from_millis(2));
            served.server.signal(signal).unwrap();
            for (client, answer) in answers.into_iter().enumerate() {
                let answer = answer.join().unwrap();
                assert_eq!((answer.status, answer.text()), (200, format!("client{client}")));
            }
        });
        let status = served.server.wait_exit(PATIENCE).unwrap();
        assert_eq!(status.code(), Some(0), "{}", served.server.log());
    }
}

#[test]
fn the_script_of_a_stock_mgba_sees_quiet_ends_and_serves_on() {
    let mut served = Served::stock();
    let console = |served: &Served| served.mgba.as_ref().unwrap().console();
    for signal in [Signal::INT, Signal::KILL] {
        let before = console(&served).len();
        served.server.signal(signal).unwrap();
        served.server.wait_exit(PATIENCE).unwrap();
        until("the script notices", PATIENCE, || Ok(console(&served).len() > before)).unwrap();
        let said = console(&served).split_off(before);
        assert!(!said.contains("error") && !said.contains("warn"), "{said}");
        let address = served.mgba.as_ref().unwrap().address().to_string();
        served.server = framewire_e2e::Framewire::serve(&["--attach", &address]).unwrap();
        served.http = served.server.http();
        served.ready();
    }
}

#[test]
fn a_paused_and_a_closed_mgba_are_told_apart() {
    let mut served = Served::stock();
    served.mgba.as_mut().unwrap().pause().unwrap();
    served.refused("GET", "/core/currentframe", 504, "paused");
    let state = served.text("/v1/emulator");
    assert!(state.contains(r#""run":"stalled""#), "{state}");
    served.mgba.as_mut().unwrap().unpause().unwrap();
    served.ready();
    served.mgba.as_mut().unwrap().signal(Signal::KILL).unwrap();
    until("gone", PATIENCE, || Ok(served.get("/core/currentframe").status == 502)).unwrap();
    served.refused("GET", "/core/currentframe", 502, "start mGBA");
}

#[test]
fn a_script_loaded_again_takes_over() {
    let mut served = Served::stock();
    served.mgba.as_mut().unwrap().load_script(&framewire_e2e::paths::script()).unwrap();
    served.ready();
    let said = served.mgba.as_ref().unwrap().console();
    assert!(!said.contains("in use"), "{said}");
}
