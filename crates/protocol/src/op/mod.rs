//! The table of operations. Each operation is defined only in this table, in `table.rs`.
//!
//! From the table, a macro makes the [`Op`] type, its binary codec, mGBA-http's text message for each operation that
//! has one ([`marker`](crate::marker)), and [`OPS`]. From [`OPS`], the server makes the OpenAPI document, and
//! `make generate` makes the tables of the script and of the LuaJIT library, and docs/operations.md.

mod kinds;
#[macro_use]
mod macros;
mod table;

pub use kinds::{ArgInfo, ArgKind, Effect, OpInfo, ResultKind};
pub use table::{OPS, Op, OpKind};

use crate::error::OpError;
use crate::timeline;

/// The sensors, and the smallest value of each in thousandths.
const SENSORS: [(&str, i32); 4] = [("tilt_x", -1000), ("tilt_y", -1000), ("gyro", -1000), ("light", 0)];

/// An upper limit for the size of a savestate with its picture and the game's save, in bytes.
const LARGEST_STATE: usize = 1024 * 1024;
/// An upper limit for the size of a list of cheats, in bytes.
const LARGEST_CHEATS: usize = 2 * 1024 * 1024;
/// An upper limit for the size of the list of frozen values, in bytes: 256 values with names of up to 1,024 bytes.
const LARGEST_FROZEN: usize = 512 * 1024;
/// An upper limit for the size of a screenshot, in bytes.
const LARGEST_SCREENSHOT: usize = 128 * 1024;

impl Op {
    /// Checks the rules for its arguments that the table cannot express, as far as that is possible without an
    /// emulator. Does not check the ranges in the table.
    ///
    /// # Errors
    /// If an argument is not accepted. The error says what is accepted.
    pub fn check(&self) -> Result<(), OpError> {
        match self {
            Op::SetSpeed { thousandths: thousandths @ 1..=9 } => Err(OpError::bad_argument(format!(
                "thousandths is {thousandths}; use 10 to 1000000, or 0 for unlimited"
            ))),
            Op::HoldKeys { keys: 0, .. } => Err(OpError::bad_argument("`keys` names no key")),
            Op::PlayKeys { steps } | Op::AppendKeys { steps } => timeline::decode(steps).map(drop),
            Op::SetSensor { sensor, thousandths } => check_sensor(sensor, *thousandths),
            _ => Ok(()),
        }
    }

    /// Whether it loads a game: another one, or the same one again.
    pub fn loads_game(&self) -> bool {
        matches!(self, Op::LoadFile { .. } | Op::LoadRom { .. })
    }

    /// The largest number of bytes that its result can have; 0 if the result is always small.
    pub fn largest_result(&self) -> usize {
        match self {
            Op::ReadRange { length, .. } | Op::DomainReadRange { length, .. } => *length as usize,
            Op::ReadAt { length, .. } => *length as usize + size_of::<u32>(),
            Op::SaveState { .. } => LARGEST_STATE,
            Op::Screenshot {} => LARGEST_SCREENSHOT,
            Op::Cheats {} => LARGEST_CHEATS,
            Op::Frozen {} => LARGEST_FROZEN,
            Op::Echo { data } => data.len(),
            _ => 0,
        }
    }
}

fn check_sensor(name: &str, thousandths: i32) -> Result<(), OpError> {
    let Some((_, least)) = SENSORS.iter().find(|(known, _)| *known == name) else {
        let names = SENSORS.map(|(name, _)| name).join(", ");
        return Err(OpError::bad_argument(format!("there is no sensor {name:?}; there are {names}")));
    };
    if !(*least..=1000).contains(&thousandths) {
        let message = format!("{name} is {thousandths} thousandths; use {least} to 1000");
        return Err(OpError::bad_argument(message));
    }
    Ok(())
}
