//! Pictures on the wire. No I/O, and nothing in here waits.
//!
//! The stream of `docs/video.md`, a message a picture:
//!
//! - [`Image`]: a picture's pixels, borrowed and checked, which is what all of this works on;
//! - [`Encoder`]: makes messages, whole pictures or what differs from an earlier one;
//! - [`Decoder`]: turns them into pictures again, and survives whatever it is fed;
//! - `header`, `tile` and `palette`: the parts of a message.
//!
//! Whole pictures in the usual formats:
//!
//! - [`png`] writes and reads, [`jpeg`] writes.

mod decode;
mod encode;
mod header;
mod image;
pub mod jpeg;
mod palette;
pub mod png;
mod tile;

pub use decode::{DecodeError, Decoder};
pub use encode::{Encoder, Stamp};
pub use header::{Header, Kind};
pub use image::{Checked, Image, ImageError, MAX_PIXELS};
