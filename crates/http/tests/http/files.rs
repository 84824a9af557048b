//! ROMs, save data and pictures in files.

use super::support::{Server, encoded, repository, wait_for};

#[test]
fn the_extension_route_loads_a_rom_and_resets_the_game() {
    let server = Server::start();
    let rom = server.file("another +one.gba");
    std::fs::copy(repository("rom/framewire-demo.gba"), &rom).unwrap();
    wait_for("some frames", || server.number("/core/currentFrame") > 30);
    // While the game is paused, no frame runs between the load and the reading of the counter.
    assert_eq!(server.post("/v1/pause").status, 200);
    server.post_ok("/core/write8?address=0x02000100&value=9", "");
    server.post_ok(&format!("/mgba-http/extension/loadfile?path={}", encoded(&rom)), "true");
    assert_eq!(server.text("/core/read8?address=0x02000100"), "0");
    assert!(server.number("/core/currentFrame") < 30);
    assert_eq!(server.text("/core/getgametitle"), "FRAMEWIRE");
}

#[test]
fn a_file_that_is_not_a_rom_does_not_disturb_the_running_game() {
    let server = Server::start();
    let nonsense = server.file("nonsense.gba");
    std::fs::write(&nonsense, b"not a ROM").unwrap();
    for path in [nonsense, server.file("nothing.gba"), server.folder.path().to_str().unwrap().to_owned()] {
        for route in ["/core/loadfile", "/mgba-http/extension/loadfile"] {
            server.post_ok(&format!("{route}?path={}", encoded(&path)), "false");
            assert_eq!(server.text("/core/getgametitle"), "FRAMEWIRE");
        }
    }
    let frame = server.number("/core/currentFrame");
    wait_for("a further frame", || server.number("/core/currentFrame") > frame);
}

#[test]
fn core_loadfile_loads_a_rom() {
    let server = Server::start();
    let rom = server.file("demo game.gba");
    server.post_ok(&format!("/core/loadfile?path={}", encoded(&rom)), "true");
    assert_eq!(server.text("/core/getgametitle"), "FRAMEWIRE");
}

#[test]
fn save_data_is_loaded_from_files() {
    let server = Server::start();
    let save = server.file("high score.sav");
    std::fs::write(&save, [0u8; 32 * 1024]).unwrap();
    for temporary in ["true", "False"] {
        let target = format!("/core/loadsavefile?path={}&temporary={temporary}", encoded(&save));
        server.post_ok(&target, "true");
    }
    let nothing = encoded(&server.file("no folder/x.sav"));
    server.post_ok(&format!("/core/loadsavefile?path={nothing}&temporary=true"), "false");
    let reply = server.post("/core/autoloadsave");
    assert!(matches!((reply.status, reply.text().as_str()), (200, "true" | "false")));
}

#[test]
fn a_screenshot_is_written_to_the_path_in_the_url() {
    let server = Server::start();
    for name in ["plain.png", "with space+plus & 100% \u{e9}.png"] {
        let path = server.file(name);
        server.post_ok(&format!("/core/screenshot?path={}", encoded(&path)), "");
        assert!(std::fs::read(&path).unwrap().starts_with(b"\x89PNG"), "{name}");
    }
    let path = server.file("a b.png").replace(' ', "+");
    server.post_ok(&format!("/core/screenshot?path={path}"), "");
    assert!(std::fs::exists(server.file("a b.png")).unwrap());
    let reply = server.post(&format!("/core/screenshot?path={}", encoded(&server.file("no folder/x.png"))));
    assert_eq!(reply.status, 502, "{}", reply.text());
}
