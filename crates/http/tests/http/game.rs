//! What the routes report about the game and the console.

use super::support::{Server, repository, wait_for};

#[test]
fn title_code_size_and_checksum_match_the_rom() {
    let server = Server::start();
    let rom = std::fs::read(repository("rom/framewire-demo.gba")).unwrap();
    assert_eq!(server.text("/core/getgametitle"), "FRAMEWIRE");
    // mGBA 0.10 puts `AGB-`, for the console, in front of the four letters of the game.
    let code = std::str::from_utf8(&rom[0xac..0xb0]).unwrap();
    assert!([code.to_owned(), format!("AGB-{code}")].contains(&server.text("/core/getgamecode")));
    assert_eq!(server.number("/core/romsize"), rom.len() as i64);
    assert_eq!(server.number("/core/checksum"), i64::from(crc32(&rom)));
}

/// Computes the CRC-32 that zlib, PNG and mGBA use, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn the_console_is_a_game_boy_advance() {
    let server = Server::start();
    assert_eq!(server.text("/core/platform"), "0");
    assert_eq!(server.text("/core/framecycles"), "280896");
    assert_eq!(server.text("/core/frequency"), "16777216");
}

#[test]
fn frames_are_counted_and_a_reset_restarts_the_count() {
    let server = Server::start();
    wait_for("40 frames", || server.number("/CORE/CURRENTFRAME") > 40);
    server.post_ok("/core/step", "");
    // While the game is paused, no frame runs between the reset and the reading of the counter.
    assert_eq!(server.post("/v1/pause").status, 200);
    server.post_ok("/coreadapter/reset", "");
    assert!(server.number("/core/currentFrame") < 40);
}
