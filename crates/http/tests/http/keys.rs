//! Keys and buttons: what the routes return, and what the game sees.

use framewire_protocol::Key;

use super::support::{Server, field, wait_for};

#[test]
fn keys_are_held_and_released_by_number() {
    let server = Server::start();
    for key in 0..10 {
        server.post_ok(&format!("/core/addkey?key={key}"), "");
        assert_eq!(server.text(&format!("/core/getkey?key={key}")), "1");
        assert_eq!(server.number("/core/getkeys"), 1 << key);
        server.post_ok(&format!("/core/clearkey?key={key}"), "");
        assert_eq!(server.text(&format!("/core/getkey?key={key}")), "0");
    }
}

#[test]
fn keys_are_set_added_and_cleared_by_mask() {
    let server = Server::start();
    server.post_ok("/core/setkeys?keys=12", "");
    server.post_ok("/core/addkeys?keyBitmask=3", "");
    assert_eq!(server.text("/core/getkeys"), "15");
    server.post_ok("/core/clearkeys?keybitmask=5", "");
    assert_eq!(server.text("/core/getkeys"), "10");
    server.post_ok("/core/setkeys?keys=1023", "");
    assert_eq!(server.text("/core/getkeys"), "1023");
    server.post_ok("/core/setkeys?KEYS=0", "");
    assert_eq!(server.text("/core/getkeys"), "0");
}

#[test]
fn buttons_are_held_and_released_by_name() {
    let server = Server::start();
    for key in Key::ALL {
        server.post_ok(&format!("/mgba-http/button/add?button={key}"), "");
        assert_eq!(server.text(&format!("/mgba-http/button/get?button={key}")), "1");
        assert_eq!(server.text("/mgba-http/button/getall"), key.name());
        assert_eq!(server.number("/core/getkeys"), 1 << key as u8);
        server.post_ok(&format!("/mgba-http/button/clear?button={key}"), "");
        assert_eq!(server.text(&format!("/mgba-http/button/get?button={key}")), "0");
    }
    assert_eq!(server.text("/mgba-http/button/getall"), "");
}

#[test]
fn several_buttons_are_held_and_released_together() {
    let server = Server::start();
    server.post_ok("/mgba-http/button/addmany?buttons=A&buttons=B&Buttons=Start", "");
    let held = server.text("/mgba-http/button/getall");
    let mut held: Vec<&str> = held.split(',').collect();
    held.sort_unstable();
    assert_eq!(held, ["A", "B", "Start"]);
    server.post_ok("/mgba-http/button/clearmany?buttons=A&buttons=Start", "");
    assert_eq!(server.text("/mgba-http/button/getall"), "B");
}

/// How many times the game saw the key pressed.
fn presses(server: &Server, key: Key) -> i64 {
    server.number(&format!("/core/read32?address={}", field("presses") + 4 * key as u32))
}

/// Waits until the game has set up its memory.
fn wait_for_game(server: &Server) {
    let magic = format!("/core/read32?address={}", field("magic"));
    wait_for("the game", || server.number(&magic) == i64::from(u32::from_le_bytes(*b"FWDE")));
}

#[test]
fn a_tap_is_one_press_and_releases_its_key() {
    let server = Server::start();
    wait_for_game(&server);
    let before = (presses(&server, Key::Up), presses(&server, Key::Down));
    server.post_ok("/mgba-http/button/tap?button=Up", "");
    wait_for("the press", || presses(&server, Key::Up) == before.0 + 1);
    wait_for("the release", || server.text("/core/getkeys") == "0");
    server.post_ok("/mgba-http/button/tapmany?buttons=Up&buttons=Down", "");
    wait_for("both presses", || {
        (presses(&server, Key::Up), presses(&server, Key::Down)) == (before.0 + 2, before.1 + 1)
    });
    wait_for("both releases", || server.text("/core/getkeys") == "0");
}

#[test]
fn a_hold_lasts_for_its_duration() {
    let server = Server::start();
    wait_for_game(&server);
    // The test runs each frame itself, so it cannot miss the frames between the ends of the two holds.
    assert_eq!(server.post("/v1/pause").status, 200);
    let frame = || server.number("/core/currentFrame");
    let keys_after_a_frame = || {
        assert_eq!(server.request("POST", "/v1/advance", br#"{"frames":1}"#).status, 200);
        server.text("/core/getkeys")
    };
    let start = frame();
    server.post_ok("/mgba-http/button/holdmany?buttons=L&buttons=R&duration=30", "");
    server.post_ok("/mgba-http/button/hold?button=Select&duration=60", "");
    assert_eq!(server.text("/core/getkeys"), "772");
    wait_for("the end of the shorter hold", || keys_after_a_frame() == "4");
    assert!(frame() - start >= 30, "held for {} frames", frame() - start);
    wait_for("the end of the longer hold", || keys_after_a_frame() == "0");
    assert!(frame() - start >= 60, "held for {} frames", frame() - start);
}

#[test]
fn a_hold_repeated_with_the_same_idempotency_key_is_one_press() {
    let server = Server::start();
    let hold = |key: &str| {
        let headers = format!("Idempotency-Key: {key}\r\n");
        server.request_with("POST", "/mgba-http/button/hold?button=A&duration=1", &headers, b"").status
    };
    wait_for("the game", || server.number(&format!("/core/read32?address={}", field("frame"))) > 2);
    for key in ["one", "one", "two", "one", "two"] {
        assert_eq!(hold(key), 200);
    }
    wait_for("two presses", || presses(&server, Key::A) == 2);
    wait_for("the release of the key", || server.number("/core/getkeys") == 0);
    assert_eq!(presses(&server, Key::A), 2);
    assert_eq!(hold(&"k".repeat(256)), 400);
    assert_eq!(hold(""), 400);
}

#[test]
fn an_idempotency_key_of_another_request_is_refused_and_presses_nothing() {
    let server = Server::start();
    let hold = |button: &str| {
        let path = format!("/mgba-http/button/hold?button={button}&duration=600");
        server.request_with("POST", &path, "Idempotency-Key: used\r\n", b"")
    };
    assert_eq!(hold("A").status, 200);
    let reply = hold("B");
    assert_eq!(reply.status, 422);
    assert!(reply.text().contains("used for another request"), "{}", reply.text());
    assert_eq!(server.number("/core/getkeys"), 1);
}
