use serde_json::Value;
use tungstenite::Message;

use super::viewer::{end_of, socket};
use crate::support::Server;

#[test]
fn sound_comes_as_samples_after_their_format() {
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
    // A frame's sound is that of 280,896 of 16,777,216 cycles a second.
    let expected = rate * 280_896.0 / 16_777_216.0 * pieces as f64;
    assert!(
        (samples as f64 - expected).abs() < expected * 0.1,
        "{samples} samples in {pieces} of {frames} frames"
    );
}

#[test]
fn a_listener_says_nothing() {
    let server = Server::start();
    let mut socket = socket(&server, "/v1/audio");
    socket.send(Message::text("louder")).unwrap();
    assert_eq!(u16::from(end_of(&mut socket).code), 1003);
}
