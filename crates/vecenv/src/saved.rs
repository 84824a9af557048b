//! The format of an environment's saved state.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use framewire_expression::Number;
use framewire_protocol::DecodeError;
use framewire_protocol::wire::{Reader, Wire};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The first bytes of a state; the digit is the version of the format.
const MAGIC: &[u8; 4] = b"FWE3";

/// The largest size of a decompressed state in bytes, so that a damaged state cannot fill the memory.
const MAX_BYTES: u64 = 16 << 20;

/// The numbers of an observation: the observed memory, and the values of `info`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observed {
    pub(crate) memory: Vec<f32>,
    pub(crate) info: Vec<f64>,
}

/// Everything that the next steps of an environment depend on, and its last observation.
pub(crate) struct Saved {
    /// The scenario's name.
    pub(crate) scenario: String,
    /// The number of frames since the start of the episode.
    pub(crate) frames: u32,
    /// The sum of the episode's rewards.
    pub(crate) earned: f64,
    /// The keys of the previous frame.
    pub(crate) keys: u16,
    /// Whether the episode has ended.
    pub(crate) over: bool,
    pub(crate) random: ChaCha8Rng,
    /// What each formula remembers of earlier frames.
    pub(crate) histories: Vec<Vec<Number>>,
    /// The newest picture, the one before it, the newest one in the size of the observation, and the pictures of the
    /// observed steps.
    pub(crate) pictures: Option<[Vec<u8>; 4]>,
    /// The numbers of the last observation; `None` before the first one.
    pub(crate) last: Option<Observed>,
    /// The console's state, in mGBA's format.
    pub(crate) machine: Vec<u8>,
}

impl Saved {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.machine.len() + 1024);
        self.scenario.encode(&mut out);
        self.frames.encode(&mut out);
        put_real(&mut out, self.earned);
        self.keys.encode(&mut out);
        self.over.encode(&mut out);
        out.extend_from_slice(&self.random.get_seed());
        out.extend_from_slice(&self.random.get_stream().to_le_bytes());
        out.extend_from_slice(&self.random.get_word_pos().to_le_bytes());
        (self.histories.len() as u32).encode(&mut out);
        for history in &self.histories {
            (history.len() as u32).encode(&mut out);
            history.iter().for_each(|number| put_number(&mut out, *number));
        }
        self.pictures.is_some().encode(&mut out);
        for part in self.pictures.iter().flatten() {
            part.encode(&mut out);
        }
        self.last.is_some().encode(&mut out);
        if let Some(Observed { memory, info }) = &self.last {
            (memory.len() as u32).encode(&mut out);
            memory.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
            (info.len() as u32).encode(&mut out);
            info.iter().for_each(|number| put_real(&mut out, *number));
        }
        self.machine.encode(&mut out);
        let mut encoder = ZlibEncoder::new(MAGIC.to_vec(), Compression::fast());
        // Writing to memory does not fail.
        let _ = encoder.write_all(&out);
        encoder.finish().unwrap_or_default()
    }

    /// Reads the bytes that [`encode`](Saved::encode) returned. The error is a sentence.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Saved, String> {
        fn damaged(error: impl std::fmt::Display) -> String {
            format!("the state of the environment is damaged: {error}")
        }
        let Some(compressed) = bytes.strip_prefix(MAGIC) else {
            return Err("this is not the state of an environment, or another version of Framewire saved it"
                .to_owned());
        };
        let mut out = Vec::new();
        ZlibDecoder::new(compressed).take(MAX_BYTES).read_to_end(&mut out).map_err(damaged)?;
        Saved::read(&mut Reader::new(&out)).map_err(damaged)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Saved, DecodeError> {
        let scenario = reader.get()?;
        let frames = reader.get()?;
        let earned = real(reader)?;
        let keys = reader.get()?;
        let over = reader.get()?;
        let mut random = ChaCha8Rng::from_seed(array(reader)?);
        random.set_stream(u64::from_le_bytes(array(reader)?));
        random.set_word_pos(u128::from_le_bytes(array(reader)?));
        let histories = (0..reader.get::<u32>()?)
            .map(|_| (0..reader.get::<u32>()?).map(|_| number(reader)).collect())
            .collect::<Result<_, _>>()?;
        let pictures = if reader.get()? {
            Some([reader.get()?, reader.get()?, reader.get()?, reader.get()?])
        } else {
            None
        };
        let last = if reader.get()? {
            let memory = (0..reader.get::<u32>()?).map(|_| array(reader).map(f32::from_le_bytes));
            let memory = memory.collect::<Result<_, _>>()?;
            let info = (0..reader.get::<u32>()?).map(|_| real(reader)).collect::<Result<_, _>>()?;
            Some(Observed { memory, info })
        } else {
            None
        };
        let machine = reader.get()?;
        reader.finish()?;
        Ok(Saved { scenario, frames, earned, keys, over, random, histories, pictures, last, machine })
    }
}

fn array<const LEN: usize>(reader: &mut Reader<'_>) -> Result<[u8; LEN], DecodeError> {
    let mut array = [0; LEN];
    array.copy_from_slice(reader.take(LEN, "a number")?);
    Ok(array)
}

fn put_real(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn real(reader: &mut Reader<'_>) -> Result<f64, DecodeError> {
    array(reader).map(f64::from_le_bytes)
}

fn put_number(out: &mut Vec<u8>, number: Number) {
    match number {
        Number::Whole(number) => {
            out.push(0);
            number.encode(out);
        }
        Number::Real(number) => {
            out.push(1);
            put_real(out, number);
        }
    }
}

fn number(reader: &mut Reader<'_>) -> Result<Number, DecodeError> {
    match reader.get::<u8>()? {
        0 => Ok(Number::Whole(reader.get()?)),
        1 => Ok(Number::Real(real(reader)?)),
        value => Err(DecodeError::Unknown { what: "number", value }),
    }
}
