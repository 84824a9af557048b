//! Encodes and decodes pictures, and compresses sound. Does no I/O and never waits.
//!
//! The stream format that `docs/video.md` describes, with one message per picture:
//!
//! - [`Image`]: a picture's pixels, borrowed and checked;
//! - [`Encoder`]: encodes whole pictures, or the difference from an earlier one;
//! - [`Decoder`]: decodes the messages, and rejects malformed ones;
//! - `header`, `tile` and `palette`: the parts of a message.
//!
//! Whole pictures in common formats: [`png`] encodes and decodes, [`jpeg`] encodes. [`Transform`] crops and scales
//! them, and [`ColorCorrection`] gives them the colours of a screen. [`adpcm`] encodes and decodes sound.

pub mod adpcm;
mod colors;
mod decode;
mod encode;
mod header;
mod image;
pub mod jpeg;
mod palette;
pub mod png;
mod tile;
mod transform;

pub use colors::{ColorCorrection, UnknownColors};
pub use decode::{DecodeError, Decoder};
pub use encode::{Encoder, Stamp};
pub use header::{Header, Kind};
pub use image::{Checked, Image, ImageError, MAX_PIXELS};
pub use transform::{SCALES, Transform, TransformError};
