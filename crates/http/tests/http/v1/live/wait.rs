//! POST /v1/wait.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{json_of, post};
use super::script::connected;
use crate::support::{Server, field};
use crate::v1::problems::problem;

#[test]
fn a_condition_that_already_holds_is_answered_at_once() {
    let server = Server::start();
    let waited = json_of(&post(&server, "/v1/wait", &json!({"until": "u8[0x02000100] == 0"})), 200);
    assert_eq!((&waited["held"], &waited["frames"]), (&true.into(), &0.into()));
}

#[test]
fn the_reply_has_the_frame_in_which_the_condition_became_true() {
    let server = Server::start();
    let frame = field("frame");
    let waited = json_of(&post(&server, "/v1/wait", &json!({"until": format!("u32[{frame}] == 90")})), 200);
    assert_eq!(waited["held"], true);
    let later = json_of(&post(&server, "/v1/wait", &json!({"until": format!("u32[{frame}] == 120")})), 200);
    let between = later["frame"].as_u64().unwrap() - waited["frame"].as_u64().unwrap();
    assert_eq!(between, 30);
    assert!(later["frames"].as_u64().unwrap() <= 30);
}

#[test]
fn a_condition_can_use_the_frame_counter() {
    let server = Server::start();
    let waited = json_of(&post(&server, "/v1/wait", &json!({"until": "frame >= 100 or false"})), 200);
    assert_eq!((&waited["held"], &waited["frame"]), (&true.into(), &100.into()));
}

#[test]
fn a_wait_ends_after_its_frames_even_while_the_memory_changes() {
    let server = Server::start();
    for until in
        [format!("u32[{}] == 0xffffffff", field("frame")), "u8[0x02000100] == 1".into(), "1 / 0".into()]
    {
        let waited = json_of(&post(&server, "/v1/wait", &json!({"until": until, "frames": 25})), 200);
        assert_eq!((&waited["held"], &waited["frames"]), (&false.into(), &25.into()), "{until}");
    }
}

#[test]
fn waits_on_an_attached_mgba_end_in_the_exact_frame_too() {
    let (_core, server) = connected();
    let frames = [100, 130].map(|frame| {
        let waited =
            json_of(&post(&server, "/v1/wait", &json!({"until": format!("u32[frame] >= {frame}")})), 200);
        assert_eq!(waited["held"], true);
        waited["frame"].as_u64().unwrap()
    });
    assert_eq!(frames[1] - frames[0], 30);
    let waited = json_of(&post(&server, "/v1/wait", &json!({"until": "score > 999999", "frames": 20})), 200);
    assert_eq!((&waited["held"], &waited["frames"]), (&false.into(), &20.into()));
}

#[test]
fn another_request_can_make_the_condition_true() {
    let server = Server::start();
    thread::scope(|scope| {
        let waiting = scope
            .spawn(|| post(&server, "/v1/wait", &json!({"until": "u8[0x02000100] == 7", "frames": 1200})));
        // The write may come before or after the wait begins.
        server.post_ok("/core/write8?address=0x02000100&value=7", "");
        assert_eq!(json_of(&waiting.join().unwrap(), 200)["held"], true);
    });
}

#[test]
fn a_wait_on_a_paused_emulator_gets_an_error() {
    let server = Server::demo(true, |app| app.deadline = Duration::from_millis(300));
    let begun = Instant::now();
    let error = problem(&post(&server, "/v1/wait", &json!({"until": "frame > 10"})), 504);
    assert!(error["detail"].as_str().unwrap().contains("paused"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}
