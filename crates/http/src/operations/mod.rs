//! Operations on emulators.
//!
//! - `emulators`: the emulators that are served;
//! - `budget`: limits the memory for large replies;
//! - `lockstep`: ends lockstep with the WebSocket that began it.

pub(crate) mod budget;
pub(crate) mod emulators;
pub(crate) mod lockstep;
