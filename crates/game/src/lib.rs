//! A game file describes a game once for all tools: its ROM, its symbols, and its scenarios. A scenario says where an
//! episode starts, which actions there are, what is observed, how the reward is computed, and when the episode ends.
//! docs/game-file.md describes the format.
//!
//! - [`GameFile`]: a file that was read and checked;
//! - [`NamedFiles`]: the files that a game file names;
//! - [`Scenario`]: one of its scenarios;
//! - [`GameFileError`]: what is wrong, and on which line and in which column;
//! - [`RomHash`]: identifies the ROM.
//!
//! This crate does not use an emulator.

mod error;
mod file;
mod rom;
mod scenario;

pub use error::GameFileError;
pub use file::{GameFile, NamedFiles};
pub use rom::{RomHash, WrongRom};
pub use scenario::{Actions, Observed, Scenario, Screen, Start};
