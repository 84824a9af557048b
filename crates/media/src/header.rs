use crate::decode::DecodeError;
use crate::image::checked_size;

/// The version of the stream format that `docs/video.md` describes.
const VERSION: u8 = 1;

/// What a message contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A whole picture.
    Key = 1,
    /// The tiles that differ from an earlier picture.
    Delta = 2,
}

/// The fixed part at the start of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Whether the message contains a whole picture.
    pub kind: Kind,
    /// The width in pixels.
    pub width: u16,
    /// The height in pixels.
    pub height: u16,
    /// The number of colours in the message's palette.
    pub colors: u16,
    /// The emulator's frame counter, which changes with a reset or a loaded state.
    pub frame: u32,
    /// The number of frames that have run since the emulator started. It only grows.
    pub tick: u32,
    /// The tick of the picture that a delta changes; 0 in a key picture.
    pub base: u32,
}

impl Header {
    /// The length of a header in bytes.
    pub const LEN: usize = 20;

    /// Appends the header.
    pub(crate) fn write(&self, message: &mut Vec<u8>) {
        message.extend([self.kind as u8, VERSION]);
        for field in [self.width, self.height, self.colors] {
            message.extend(field.to_le_bytes());
        }
        for field in [self.frame, self.tick, self.base] {
            message.extend(field.to_le_bytes());
        }
    }

    /// Reads the header of a message.
    ///
    /// # Errors
    /// If the message is too short, its kind or version is unknown, or its size in pixels is not allowed.
    pub fn read(message: &[u8]) -> Result<Header, DecodeError> {
        let head: &[u8; Header::LEN] = message.first_chunk().ok_or(DecodeError::Short)?;
        let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let long = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let kind = match head[0] {
            1 => Kind::Key,
            2 => Kind::Delta,
            other => return Err(DecodeError::Kind(other)),
        };
        if head[1] != VERSION {
            return Err(DecodeError::Version(head[1]));
        }
        let (width, height) = (short(2), short(4));
        checked_size(width.into(), height.into())?;
        let (colors, frame, tick, base) = (short(6), long(8), long(12), long(16));
        Ok(Header { kind, width, height, colors, frame, tick, base })
    }
}
