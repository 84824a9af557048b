//! GET /v1/audio.

use framewire_media::adpcm;
use serde_json::Value;
use tungstenite::Message;

use super::viewer::{end_of, socket};
use crate::support::Server;

#[test]
fn the_stream_begins_with_its_format_and_continues_with_samples() {
    let server = Server::start();
    let begin = server.number("/core/currentframe");
    let mut socket = socket(&server, "/v1/audio");
    let mut next = || loop {
        match socket.read().unwrap() {
            Message::Ping(_) => {}
            other => return other,
        }
    };
    let format: Value = serde_json::from_str(next().to_text().unwrap()).unwrap();
    assert_eq!((&format["format"], &format["channels"]), (&"s16le".into(), &2.into()));
    let rate = format["rate"].as_u64().unwrap() as f64;
    let mut samples = 0;
    let mut pieces = 0;
    let mut loud = false;
    while pieces < 120 {
        match next() {
            Message::Binary(sound) => {
                assert_eq!(sound.len() % 4, 0);
                samples += sound.len() / 4;
                loud |= sound.iter().any(|byte| *byte != 0);
                pieces += 1;
            }
            Message::Text(text) => assert!(text.contains("missed"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    let frames = server.number("/core/currentframe") - begin;
    assert!(loud, "nothing but silence");
    // Each piece is the sound of one frame. A frame takes 280,896 cycles, and a second has 16,777,216.
    let expected = rate * 280_896.0 / 16_777_216.0 * pieces as f64;
    assert!(
        (samples as f64 - expected).abs() < expected * 0.1,
        "{samples} samples in {pieces} of {frames} frames"
    );
}

#[test]
fn a_listener_that_sends_a_message_is_disconnected() {
    let server = Server::start();
    let mut socket = socket(&server, "/v1/audio");
    socket.send(Message::text("louder")).unwrap();
    assert_eq!(u16::from(end_of(&mut socket).code), 1003);
}

#[test]
fn adpcm_sound_has_about_a_quarter_of_the_size() {
    let server = Server::start();
    let mut plain = socket(&server, "/v1/audio");
    let mut small = socket(&server, "/v1/audio?format=adpcm");
    // Receives at least 20,000 pairs of samples. Returns the format, and the average size of a pair in bytes.
    let listen = |socket: &mut tungstenite::WebSocket<_>, count_pairs: fn(&[u8]) -> usize| {
        let (mut pairs, mut bytes, mut format) = (0, 0, String::new());
        while pairs < 20_000 {
            match socket.read().unwrap() {
                Message::Binary(sound) => {
                    pairs += count_pairs(&sound);
                    bytes += sound.len();
                }
                Message::Text(text) if format.is_empty() => {
                    let first: Value = serde_json::from_str(&text).unwrap();
                    format = first["format"].as_str().unwrap().to_owned();
                }
                _ => {}
            }
        }
        (format, bytes as f64 / pairs as f64)
    };
    let (format, size) = listen(&mut plain, |sound| sound.len() / 4);
    assert_eq!((&*format, size), ("s16le", 4.0));
    let (format, size) = listen(&mut small, |sound| adpcm::decode(sound).unwrap().len() / 2);
    assert_eq!(format, "adpcm");
    assert!(size < 1.1, "{size} bytes per pair of samples");
    let reply = server.get("/v1/audio?format=mp3");
    assert_eq!(reply.status, 400, "{}", reply.text());
}
