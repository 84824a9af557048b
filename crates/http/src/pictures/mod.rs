//! The pictures of an emulator, which all viewers share.
//!
//! - `source`: where pictures come from; an emulator that does not give them is asked for `screenshots`;
//! - `encoder`: reads the source of each emulator that has viewers;
//! - `picture`: a picture, encoded once for all viewers;
//! - `viewers`: limits how many clients watch and listen at once.

pub(crate) mod encoder;
pub(crate) mod picture;
pub(crate) mod screenshots;
mod source;
pub(crate) mod viewers;
