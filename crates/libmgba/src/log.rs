use std::ffi::c_int;

/// The level of a message in a script's console, as in libmgba's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The emulation cannot continue.
    Fatal,
    /// Something failed. Messages of `console:error` and errors of scripts have this level.
    Error,
    /// Something looks wrong. Messages of `console:warn` have this level.
    Warn,
    /// Information. Messages of `console:log` and `print` have this level.
    Info,
    /// Details. Text in buffers from `console:createBuffer` has this level.
    Debug,
    /// The game used a feature that libmgba does not emulate.
    Stub,
    /// The game itself did something wrong.
    GameError,
}

impl Level {
    /// The level for the bits of libmgba's `mLogLevel`.
    pub(crate) fn from_bits(bits: c_int) -> Level {
        match bits {
            0x01 => Level::Fatal,
            0x02 => Level::Error,
            0x04 => Level::Warn,
            0x10 => Level::Debug,
            0x20 => Level::Stub,
            0x40 => Level::GameError,
            _ => Level::Info,
        }
    }
}
