//! The entries of a recording, and how they are encoded.

use framewire_protocol::wire::{Reader, Wire};
use framewire_protocol::{DecodeError, Keys};

/// An entry of a recording. The entries follow the head, in the order of the frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The state before the first frame, as mGBA saves it.
    State(Vec<u8>),
    /// The keys that are held in the next frames.
    Keys {
        /// The mask of the keys.
        keys: u16,
        /// The number of frames, at least 1.
        frames: u32,
    },
    /// The CRC-32 of the picture after the frames so far: its pixels row by row, each as red, green and blue.
    Picture(u32),
    /// The CRC-32 of the work RAM after the frames so far.
    Memory(u32),
    /// The end of the recording.
    End {
        /// The number of frames in the recording.
        frames: u64,
        /// Why the recording ended.
        reason: String,
    },
}

pub(crate) mod kind {
    pub const STATE: u8 = b'S';
    pub const KEYS: u8 = b'K';
    pub const PICTURE: u8 = b'P';
    pub const MEMORY: u8 = b'M';
    pub const END: u8 = b'E';
}

impl Wire for Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Entry::State(bytes) => {
                out.push(kind::STATE);
                bytes.encode(out);
            }
            Entry::Keys { keys, frames } => {
                out.push(kind::KEYS);
                put_number(out, (*frames).into());
                keys.encode(out);
            }
            Entry::Picture(hash) => {
                out.push(kind::PICTURE);
                hash.encode(out);
            }
            Entry::Memory(hash) => {
                out.push(kind::MEMORY);
                hash.encode(out);
            }
            Entry::End { frames, reason } => {
                out.push(kind::END);
                put_number(out, *frames);
                reason.encode(out);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Entry, DecodeError> {
        Ok(match reader.get::<u8>()? {
            kind::STATE => Entry::State(reader.get()?),
            kind::KEYS => {
                let (frames, keys) = (number(reader)?, reader.get::<u16>()?);
                let frames = u32::try_from(frames).ok().filter(|frames| *frames > 0);
                match (frames, Keys::from_mask(keys)) {
                    (Some(frames), Some(_)) => Entry::Keys { keys, frames },
                    _ => return Err(DecodeError::Unknown { what: "keys", value: kind::KEYS }),
                }
            }
            kind::PICTURE => Entry::Picture(reader.get()?),
            kind::MEMORY => Entry::Memory(reader.get()?),
            kind::END => Entry::End { frames: number(reader)?, reason: reader.get()? },
            value => return Err(DecodeError::Unknown { what: "entry", value }),
        })
    }
}

/// Writes a number with seven bits per byte, the lowest bits first. All bytes but the last have their top bit set.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number as [`put_number`] writes it. Refuses numbers of more than 9 bytes, which are 2^63 or larger.
fn number(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let byte = reader.get::<u8>()?;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(DecodeError::TooLarge { what: "size of a number", limit: 9 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_entries_are_decoded_unchanged() {
        for entry in [
            Entry::State(vec![1, 2, 3]),
            Entry::Keys { keys: 0x3FF, frames: 1 },
            Entry::Keys { keys: 0, frames: u32::MAX },
            Entry::Picture(0x1234_5678),
            Entry::Memory(0),
            Entry::End { frames: 1 << 40, reason: "stopped".to_owned() },
        ] {
            let bytes = entry.to_bytes();
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.get(), Ok(entry));
            assert_eq!(reader.remaining(), 0);
            for end in 0..bytes.len() {
                let cut = Reader::new(&bytes[..end]).get::<Entry>();
                assert!(matches!(cut, Err(DecodeError::Truncated(_))), "{cut:?}");
            }
        }
    }

    /// The bytes that `docs/recordings.md` shows.
    #[test]
    fn entries_are_encoded_as_documented() {
        let keys = Entry::Keys { keys: 0x0009, frames: 300 };
        assert_eq!(keys.to_bytes(), [b'K', 0xAC, 0x02, 0x09, 0x00]);
        assert_eq!(Entry::Picture(0x0403_0201).to_bytes(), [b'P', 1, 2, 3, 4]);
        let end = Entry::End { frames: 5, reason: "x".to_owned() };
        assert_eq!(end.to_bytes(), [b'E', 5, 1, 0, 0, 0, b'x']);
    }

    #[test]
    fn invalid_entries_are_refused() {
        for bytes in
            [&b"K\0\0\0"[..], b"K\x01\0\x04", b"K\xff\xff\xff\xff\x7f\0\0", b"X\0\0\0\0", &[b'E'; 20]]
        {
            assert!(Reader::new(bytes).get::<Entry>().is_err(), "{bytes:?}");
        }
        assert!(Reader::new(&[b'E', 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).get::<Entry>().is_err());
    }
}
