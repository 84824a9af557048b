use fastrand::Rng;
use framewire_media::{Decoder, Encoder, Stamp};

use crate::scene::Scene;

/// The number of inputs, unless the environment variable `FUZZ` sets it.
const DEFAULT_INPUTS: u64 = 5_000;
/// Bytes with a meaning in the format.
const MEANINGFUL: [u8; 9] = [0, 1, 2, 4, 5, 16, 17, 127, 255];

fn mutate(random: &mut Rng, message: &mut Vec<u8>) {
    for _ in 0..random.usize(1..4) {
        let end = if random.bool() { message.len().min(40) } else { message.len() };
        let at = random.usize(..=end);
        match random.u8(0..5) {
            0 if at < message.len() => message[at] = random.u8(..),
            1 if at < message.len() => message[at] = *random.choice(&MEANINGFUL).unwrap(),
            2 => message.insert(at, random.u8(..)),
            3 => drop(message.drain(at..(at + random.usize(1..9)).min(message.len()).max(at))),
            _ => message.truncate(at),
        }
    }
}

#[test]
fn malformed_messages_are_rejected_and_change_nothing() {
    let count =
        std::env::var("FUZZ").map_or(DEFAULT_INPUTS, |count| count.parse().expect("FUZZ is a number"));
    let mut encoder = Encoder::new();
    let mut refused = 0;
    for seed in 0..count {
        let random = &mut Rng::with_seed(seed);
        let scene = Scene::small(random);
        let key = encoder.key(scene.image(), Stamp { frame: 1, tick: 1 });
        let mut after = scene.clone();
        after.change(random);
        let delta = encoder.delta(scene.image(), 1, after.image(), Stamp { frame: 2, tick: 2 });

        let mut decoder = Decoder::new();
        decoder.decode(&key).unwrap();
        let mut message = if random.bool() { key } else { delta.clone() };
        mutate(random, &mut message);
        if decoder.decode(&message).is_err() {
            refused += 1;
            assert!(
                decoder.image() == Some(scene.image()),
                "input {seed} was refused and changed the picture"
            );
            decoder.decode(&delta).unwrap();
            assert!(decoder.image() == Some(after.image()), "input {seed}");
        }
    }
    assert!(refused > count / 4, "only {refused} of {count} were refused: the inputs are too harmless");
}

#[test]
fn decoding_random_bytes_ends_without_a_panic() {
    let random = &mut Rng::with_seed(0);
    for _ in 0..DEFAULT_INPUTS {
        let length = random.usize(0..200);
        let mut bytes: Vec<u8> =
            std::iter::repeat_with(|| *random.choice(&MEANINGFUL).unwrap()).take(length).collect();
        if let Some(version) = bytes.get_mut(1) {
            *version = 1;
        }
        // With any input, the decoder must end and must not use more memory than a picture needs.
        let _ = Decoder::new().decode(&bytes);
    }
}
