//! Tests with the test vectors of `docs/video.md`, which are also used to test other decoders.

use framewire_media::{Decoder, Encoder, Header, Image, Kind, Stamp};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    streams: Vec<Stream>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Stream {
    name: String,
    messages: Vec<String>,
    pictures: Vec<Picture>,
}

#[derive(Deserialize)]
struct Picture {
    width: u32,
    height: u32,
    frame: u32,
    tick: u32,
    rgb: String,
}

#[derive(Deserialize)]
struct Refused {
    name: String,
    before: Vec<String>,
    message: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../vectors/video.json")).unwrap()
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

#[test]
fn streams_are_decoded_to_their_pictures() {
    for Stream { name, messages, pictures } in vectors().streams {
        assert_eq!(messages.len(), pictures.len(), "{name}");
        let mut decoder = Decoder::new();
        for (message, picture) in messages.iter().zip(&pictures) {
            let header = decoder.decode(&unhex(message)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((header.frame, header.tick), (picture.frame, picture.tick), "{name}");
            let rgb = unhex(&picture.rgb);
            assert_eq!(decoder.image(), Image::new(picture.width, picture.height, &rgb).ok(), "{name}");
        }
    }
}

#[test]
fn pictures_are_encoded_to_their_streams() {
    let mut encoder = Encoder::new();
    for Stream { name, messages, pictures } in vectors().streams {
        let mut before: Option<(&Picture, Vec<u8>)> = None;
        for (message, picture) in messages.iter().zip(&pictures) {
            let message = unhex(message);
            let rgb = unhex(&picture.rgb);
            let image = Image::new(picture.width, picture.height, &rgb).unwrap();
            let stamp = Stamp { frame: picture.frame, tick: picture.tick };
            let encoded = match &before {
                Some((last, rgb)) if Header::read(&message).unwrap().kind == Kind::Delta => {
                    let last_image = Image::new(last.width, last.height, rgb).unwrap();
                    encoder.delta(last_image, last.tick, image, stamp)
                }
                _ => encoder.key(image, stamp),
            };
            assert_eq!(encoded, message, "{name}");
            before = Some((picture, rgb));
        }
    }
}

#[test]
fn wrong_messages_are_refused() {
    for Refused { name, before, message } in vectors().refused {
        let mut decoder = Decoder::new();
        for message in before {
            decoder.decode(&unhex(&message)).unwrap_or_else(|error| panic!("before {name}: {error}"));
        }
        assert!(decoder.decode(&unhex(&message)).is_err(), "{name} was accepted");
    }
}
