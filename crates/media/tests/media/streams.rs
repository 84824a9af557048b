use fastrand::Rng;
use framewire_media::{Decoder, Encoder, Header, Kind, Stamp};

use crate::scene::Scene;

/// The number of streams of random pictures: 60, unless the environment variable `FUZZ` sets another number.
fn streams() -> u64 {
    std::env::var("FUZZ").map_or(60, |count| count.parse().expect("FUZZ is a number"))
}

#[test]
fn decoded_pictures_are_equal_to_encoded_ones() {
    let mut encoder = Encoder::new();
    for seed in 0..streams() {
        let random = &mut Rng::with_seed(seed);
        let mut decoder = Decoder::new();
        let mut before: Option<(Scene, u32)> = None;
        let mut scene = Scene::random(random);
        for step in 0..6 {
            let stamp = Stamp { frame: random.u32(..), tick: random.u32(..) };
            let message = match &before {
                Some((last, base)) if random.u8(0..8) > 0 => {
                    encoder.delta(last.image(), *base, scene.image(), stamp)
                }
                _ => encoder.key(scene.image(), stamp),
            };
            let header = decoder.decode(&message).unwrap_or_else(|error| panic!("{seed}, {step}: {error}"));
            assert_eq!((header.frame, header.tick), (stamp.frame, stamp.tick));
            assert!(decoder.image() == Some(scene.image()), "stream {seed}, picture {step} differs");
            before = Some((scene.clone(), stamp.tick));
            match random.u8(0..6) {
                0 => {}
                1 => scene.noise(random, 500),
                2 => scene = Scene::random(random),
                _ => scene.change(random),
            }
        }
    }
}

#[test]
fn unchanged_tiles_are_not_sent() {
    let random = &mut Rng::with_seed(1);
    let scene = Scene::random(random);
    let mut encoder = Encoder::new();
    let stamp = Stamp { frame: 7, tick: 9 };
    let message = encoder.delta(scene.image(), 8, scene.image(), stamp);
    assert_eq!(message.len(), Header::LEN);

    let mut after = scene.clone();
    after.pixels[0] ^= 1;
    let message = encoder.delta(scene.image(), 8, after.image(), stamp);
    // The message has a palette and one run of one tile.
    assert!(message.len() < Header::LEN + 64 * 3 + 4 + 1 + 64, "{}", message.len());
}

#[test]
fn another_size_makes_a_key_picture() {
    let (small, large) = (vec![3; 8 * 8 * 3], vec![3; 16 * 8 * 3]);
    let small = framewire_media::Image::new(8, 8, &small).unwrap();
    let large = framewire_media::Image::new(16, 8, &large).unwrap();
    let message = Encoder::new().delta(small, 1, large, Stamp { frame: 2, tick: 2 });
    assert_eq!(Header::read(&message).unwrap().kind, Kind::Key);
}
