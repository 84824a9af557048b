//! Tests the decoders with mutated input. `make fuzz` runs each test with a million inputs; the environment variable
//! `FUZZ` sets the number.

use std::panic::{self, AssertUnwindSafe};

use fastrand::Rng;
use framewire_protocol::{
    Decoder, Frame, FrameError, KeyStep, MemoryRange, Op, PROTOCOL_VERSION, Welcome, marker, timeline, watch,
};

/// How many inputs a test uses by default.
const DEFAULT_INPUTS: usize = 20_000;
/// Bytes that have a meaning in some format.
const SPECIAL: [u8; 12] = [0, 1, 2, 4, 6, 7, 127, 128, 255, b'<', b'|', b','];

fn unhex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

/// The bytes in the last column of each row of a vector file.
fn hex_vectors(text: &str) -> Vec<Vec<u8>> {
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.filter_map(|row| row.rsplit('\t').next()).map(unhex).collect()
}

/// Complete frames of every kind, and each operation in a request.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = hex_vectors(include_str!("../vectors/frames.tsv"));
    for op in hex_vectors(include_str!("../vectors/ops.tsv")) {
        // A request (kind 1) with id 7, `answered` 5, and one operation.
        let mut body = vec![1, 7, 0, 0, 0, 5, 0, 0, 0, 1, 0];
        body.extend(op);
        let length = u32::try_from(body.len()).expect("short");
        frames.push([&length.to_le_bytes()[..], &body].concat());
    }
    frames
}

fn mutate(random: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.choice(seeds).expect("seeds").clone();
    for _ in 0..random.usize(0..4) {
        let at = random.usize(..=bytes.len());
        match random.u8(0..6) {
            0 if at < bytes.len() => bytes[at] = random.u8(..),
            1 if at < bytes.len() => bytes[at] = *random.choice(&SPECIAL).expect("some"),
            2 => bytes.insert(at, random.u8(..)),
            3 => drop(bytes.drain(at..(at + random.usize(1..9)).min(bytes.len()).max(at))),
            4 => bytes.truncate(at),
            _ => {
                let other = random.choice(seeds).expect("seeds");
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.usize(..other.len())..]);
            }
        }
    }
    bytes
}

/// Runs a test with many inputs. Panics with the input that fails.
fn fuzz(seeds: &[Vec<u8>], test: impl Fn(&mut Rng, &[u8])) {
    let count =
        std::env::var("FUZZ").map_or(DEFAULT_INPUTS, |count| count.parse().expect("FUZZ is a number"));
    for seed in 0..count as u64 {
        let mut random = Rng::with_seed(seed);
        let input = mutate(&mut random, seeds);
        let result = panic::catch_unwind(AssertUnwindSafe(|| test(&mut random, &input)));
        assert!(result.is_ok(), "seed {seed}: {input:02x?} ({})", String::from_utf8_lossy(&input));
    }
}

/// Decodes bytes that arrive in these pieces. Returns the frames, and the error if there is one.
fn decoded<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, Option<FrameError>) {
    let (mut decoder, mut frames) = (Decoder::new(), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

#[test]
fn mutated_frames_decode_alike_in_one_piece_and_in_many() {
    fuzz(&frames(), |random, input| {
        let (whole, end) = decoded([input].into_iter());
        let (in_pieces, other_end) = decoded(input.chunks(random.usize(1..9)));
        assert_eq!((&in_pieces, &other_end), (&whole, &end));
        // Encoding the decoded frames gives the same bytes.
        let mut again = Vec::new();
        whole.iter().for_each(|frame| frame.encode(&mut again));
        assert_eq!(again, input[..again.len()]);
    });
}

#[test]
fn frames_before_garbage_are_decoded() {
    let good = frames();
    fuzz(&good, |random, garbage| {
        let before = random.choice(&good).expect("frames");
        let (wanted, _) = decoded([&before[..]].into_iter());
        let stream = [before, garbage].concat();
        let (found, _) = decoded(stream.chunks(random.usize(1..50)));
        assert_eq!(found[..wanted.len()], wanted);
    });
}

#[test]
fn mutated_timelines_and_ranges_encode_to_the_same_bytes_or_are_refused() {
    let steps: Vec<KeyStep> =
        (0..4).map(|step| KeyStep { offset: 3 * step, keys: 3 - step as u16 }).collect();
    let ranges = [None, Some("wram".to_owned())].map(|domain| MemoryRange::new(domain, 0x0200_0000, 4));
    fuzz(&[timeline::encode(&steps), watch::encode(&ranges)], |_, input| {
        if let Ok(steps) = timeline::decode(input) {
            assert_eq!(timeline::encode(&steps), input);
        }
        if let Ok(ranges) = watch::decode(input) {
            assert_eq!(watch::encode(&ranges), input);
        }
    });
}

#[test]
fn mutated_replies_cause_no_panic() {
    let seeds =
        ["d3,00,ea", "0x0200002C", "33554432", "true", "<|SUCCESS|>", "<|ERROR|>", "A,Start,L", "-1", "wram"];
    let seeds: Vec<_> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    let asked = [
        Op::Read8 { address: 0 },
        Op::ReadRange { address: 0, length: 3 },
        Op::GetKeys {},
        Op::Reset {},
        Op::GameTitle {},
        Op::AutoloadSave {},
        Op::SaveState { flags: 29 },
    ];
    fuzz(&seeds, |random, input| {
        let text = String::from_utf8_lossy(input);
        let op = random.choice(&asked).expect("operations");
        let _ = marker::parse_reply(op, &text);
    });
}

#[test]
fn a_welcome_read_from_mutated_text_contains_only_parts_of_it() {
    let seeds = [format!("framewire.welcome,{PROTOCOL_VERSION},0.1.0,5f3a,1"), "<|ERROR|>".to_owned()];
    let seeds = seeds.map(String::into_bytes);
    fuzz(&seeds, |_, input| {
        let text = String::from_utf8_lossy(input);
        if let Some(welcome) = Welcome::from_reply(&text) {
            assert!(text.contains(&welcome.boot) && text.contains(&welcome.script_version), "{welcome:?}");
        }
    });
}
