//! PUT /v1/rom: clients send a ROM, and the server runs it.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::ok;
use super::problems::{problem, problem_says};
use crate::failures::{attached, silent_port};
use crate::support::{Server, repository};

fn demo() -> Vec<u8> {
    fs::read(repository("rom/framewire-demo.gba")).unwrap()
}

/// The demo game with another title.
fn other() -> Vec<u8> {
    let mut rom = demo();
    rom[0xA0..0xA5].copy_from_slice(b"OTHER");
    rom
}

fn send(server: &Server, query: &str, rom: &[u8]) -> crate::support::Reply {
    server.request("PUT", &format!("/v1/rom?{query}"), rom)
}

fn title(server: &Server) -> serde_json::Value {
    ok(&server.get("/v1/emulator"))["title"].clone()
}

#[test]
fn a_rom_that_is_sent_runs_and_is_kept() {
    let server = Server::paused();
    let reply = ok(&send(&server, "name=other.gba", &other()));
    assert_eq!(reply, json!({"frame": 0}));
    assert!(title(&server).as_str().unwrap().starts_with("OTHER"), "{}", title(&server));
    // The same game may be sent again. Another game with the same name needs `replace=true`.
    ok(&send(&server, "name=other.gba", &other()));
    problem_says(&send(&server, "name=other.gba", &demo()), 409, "?replace=true");
    assert!(title(&server).as_str().unwrap().starts_with("OTHER"), "the current game continues");
    ok(&send(&server, "name=other.gba&replace=true", &demo()));
    assert_eq!(title(&server), "FRAMEWIRE");
}

#[test]
fn a_rom_is_kept_if_it_is_not_known_whether_it_was_loaded() {
    let (_listener, address) = silent_port();
    let server = attached(address, |app| app.deadline = Duration::from_millis(400));
    for rom in [demo(), other()] {
        problem(&send(&server, "name=a.gba&replace=true", &rom), 504);
        assert!(fs::read(server.file("data/uploads/a.gba")).unwrap() == rom);
    }
}

#[test]
fn two_uploads_under_one_name_at_the_same_time_do_not_mix() {
    let server = Server::paused();
    let upload = |rom: &[u8], status: u16| {
        for _ in 0..20 {
            let reply = send(&server, "name=a.gba&replace=true", rom);
            assert_eq!(reply.status, status, "{}", reply.text());
        }
    };
    let title_of_loaded = thread::scope(|scope| {
        let refused = scope.spawn(|| upload(b"not a game", 422));
        let first = scope.spawn(|| upload(&demo(), 200));
        upload(&other(), 200);
        first.join().unwrap();
        refused.join().unwrap();
        title(&server)
    });
    let kept = fs::read(server.file("data/uploads/a.gba")).unwrap();
    let loaded_other = title_of_loaded.as_str().unwrap().starts_with("OTHER");
    assert!(kept == if loaded_other { other() } else { demo() }, "the file is not the game that runs");
}

#[test]
fn wrong_names_and_bytes_that_are_not_a_rom_are_refused_and_not_kept() {
    let server = Server::paused();
    for name in ["", "a", "a.txt", "..%2fa.gba", "a%2fb.gba", ".gba", "nul.gba", "a.gba."] {
        let error = problem(&send(&server, &format!("name={name}"), &demo()), 400);
        assert!(error["detail"].as_str().unwrap().contains("such as game.gba"), "{name}: {error}");
    }
    problem_says(&send(&server, "name=a.gba", b""), 400, "send the bytes of the ROM");
    let error = problem(&send(&server, "name=a.gba", b"not a game"), 422);
    let detail = error["detail"].as_str().unwrap();
    assert!(detail.contains("a.gba") && !detail.contains("uploads") && !detail.contains('/'), "{error}");
    assert_eq!(title(&server), "FRAMEWIRE");
    // The file was not kept, so another game can use its name.
    ok(&send(&server, "name=a.gba", &other()));
    // A file that is refused does not replace the game that has its name.
    problem(&send(&server, "name=a.gba&replace=true", b"not a game"), 422);
    ok(&send(&server, "name=a.gba", &other()));
    let large = vec![0; (32 << 20) + 1];
    assert_eq!(send(&server, "name=large.gba", &large).status, 413);
}

#[test]
fn a_file_that_is_too_large_to_be_a_game_is_not_replaced() {
    let server = Server::paused();
    ok(&send(&server, "name=a.gba", &demo()));
    let size = (32 << 20) + 1;
    let path = server.file("data/uploads/a.gba");
    fs::File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
    for query in ["name=a.gba", "name=a.gba&replace=true"] {
        problem_says(&send(&server, query, &demo()), 409, "choose another name");
        assert_eq!(fs::metadata(&path).unwrap().len(), size);
    }
}
