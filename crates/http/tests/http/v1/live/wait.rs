//! POST /v1/wait.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::wait_for_waiters;
use super::script::connected_with;
use crate::support::{PATIENCE, Server, field};
use crate::until_good::until_good;
use crate::v1::problems::problem_says;
use crate::v1::{json_of, posted};

#[test]
fn a_condition_that_already_holds_is_answered_at_once() {
    let server = Server::start();
    let waited = posted(&server, "/v1/wait", &json!({"until": "u8[0x02000100] == 0"}));
    assert_eq!((&waited["held"], &waited["frames"]), (&true.into(), &0.into()));
}

/// Sends a wait to a paused game, which therefore cannot run past the condition before the wait begins. Then resumes
/// the game. Returns the reply.
fn wait_and_resume(server: &Server, until: &str) -> Value {
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.send("POST", "/v1/wait", &json!({"until": until})));
        wait_for_waiters(server, 1);
        assert_eq!(server.post("/v1/resume").status, 200);
        json_of(&waiting.join().unwrap(), 200)
    })
}

#[test]
fn the_reply_has_the_frame_in_which_the_condition_became_true() {
    let server = Server::demo(true, |app| app.deadline = PATIENCE);
    let frame = field("frame");
    let waited = wait_and_resume(&server, &format!("u32[{frame}] == 90"));
    assert_eq!(waited["held"], true);
    assert_eq!(server.post("/v1/pause").status, 200);
    let last = server.number(&format!("/core/read32?address={frame}")) + 60;
    let later = wait_and_resume(&server, &format!("u32[{frame}] == {last}"));
    let between = later["frame"].as_i64().unwrap() - waited["frame"].as_i64().unwrap();
    assert_eq!(between, last - 90);
    assert!(later["frames"].as_u64().unwrap() <= 60);
}

#[test]
fn a_condition_can_use_the_frame_counter() {
    let server = Server::demo(true, |app| app.deadline = PATIENCE);
    let waited = wait_and_resume(&server, "frame >= 100 or false");
    assert_eq!((&waited["held"], &waited["frame"]), (&true.into(), &100.into()));
}

#[test]
fn a_wait_ends_after_its_frames_even_while_the_memory_changes() {
    let server = Server::start();
    for until in
        [format!("u32[{}] == 0xffffffff", field("frame")), "u8[0x02000100] == 1".into(), "1 / 0".into()]
    {
        let waited = posted(&server, "/v1/wait", &json!({"until": until, "frames": 25}));
        assert_eq!((&waited["held"], &waited["frames"]), (&false.into(), &25.into()), "{until}");
    }
}

#[test]
fn waits_on_an_attached_mgba_end_in_the_exact_frame_too() {
    let (_core, server) = connected_with(|app| app.deadline = PATIENCE);
    // In lockstep, the game cannot run past the conditions before the waits begin.
    posted(&server, "/v1/lockstep", &json!({"timeout": 60_000}));
    let now = json_of(&server.get("/v1/memory/frame"), 200)["value"].as_u64().unwrap();
    let frames = thread::scope(|scope| {
        let server = &server;
        let waiting = [now + 100, now + 130].map(|frame| {
            let until = json!({"until": format!("u32[frame] >= {frame}")});
            scope.spawn(move || server.send("POST", "/v1/wait", &until))
        });
        wait_for_waiters(server, 2);
        posted(server, "/v1/lockstep", &json!({"timeout": 0}));
        waiting.map(|waiting| {
            let waited = json_of(&waiting.join().unwrap(), 200);
            assert_eq!(waited["held"], true);
            waited["frame"].as_u64().unwrap()
        })
    });
    assert_eq!(frames[1] - frames[0], 30);
    let waited = posted(&server, "/v1/wait", &json!({"until": "score > 999999", "frames": 20}));
    assert_eq!((&waited["held"], &waited["frames"]), (&false.into(), &20.into()));
}

#[test]
fn another_request_can_make_the_condition_true() {
    let server = Server::start();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            server.send("POST", "/v1/wait", &json!({"until": "u8[0x02000100] == 7", "frames": 1200}))
        });
        // The write may come before or after the wait begins.
        server.post_ok("/core/write8?address=0x02000100&value=7", "");
        assert_eq!(json_of(&waiting.join().unwrap(), 200)["held"], true);
    });
}

#[test]
fn a_wait_on_a_paused_emulator_gets_an_error() {
    let server = Server::demo(true, |app| app.deadline = Duration::from_millis(300));
    let time_until_the_error = || {
        let begun = Instant::now();
        problem_says(&server.send("POST", "/v1/wait", &json!({"until": "frame > 10"})), 504, "paused");
        begun.elapsed()
    };
    until_good(time_until_the_error, |time| *time < Duration::from_secs(5));
}
