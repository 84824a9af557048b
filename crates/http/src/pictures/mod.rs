//! The pictures of an emulator, which all viewers share.
//!
//! - `encoder`: reads the pictures of each emulator that has viewers, and limits how many viewers there are;
//! - `screenshots`: pictures of an emulator that sends them only on request;
//! - `picture`: a picture, encoded once for all viewers.

pub(crate) mod encoder;
pub(crate) mod picture;
pub(crate) mod screenshots;
