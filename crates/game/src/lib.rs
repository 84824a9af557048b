//! Game files describe a game once for every tool: its ROM, its symbols, and scenarios. A scenario says where an episode
//! starts, which actions there are, what is observed, and what the reward and the end are. docs/game-file.md describes the
//! format.
//!
//! - [`GameFile`]: a file that was read and checked;
//! - [`Scenario`]: one of its scenarios;
//! - [`GameFileError`]: what is wrong, in which line and column;
//! - [`Rom`]: identifies the ROM.
//!
//! This crate knows nothing about emulators.

mod error;
mod file;
mod rom;
mod scenario;

pub use error::GameFileError;
pub use file::GameFile;
pub use rom::{Rom, WrongRom};
pub use scenario::{Actions, Observed, Scenario, Screen, Start};
