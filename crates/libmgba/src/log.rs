use std::ffi::c_int;
use std::sync::Arc;

use crate::sys;

/// The level of a message in libmgba's log or in a script's console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The emulation cannot continue.
    Fatal,
    /// Something failed. Scripts use it with `console:error`; errors of scripts have it too.
    Error,
    /// Something looks wrong. Scripts use it with `console:warn`.
    Warn,
    /// Information. Scripts use it with `console:log` and `print`.
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

/// The bits of fatal, error, warn and info. A game can produce thousands of messages of
/// the other levels in each frame.
const PASSED_ON: c_int = 0x0F;

/// Passes libmgba's own log, for all cores of this process, to `sink`. The thread that
/// uses the core calls `sink` with the level, the category (such as "GBA Memory") and
/// the message. Only the levels from [`Level::Fatal`] to [`Level::Info`] are passed on.
///
/// Without this call, the log is dropped. It never goes to stdout, which is libmgba's
/// default.
pub fn log_to(sink: impl Fn(Level, &str, &str) + Send + Sync + 'static) {
    sys::set_log(Some(Arc::new(sink)), PASSED_ON);
}

/// Drops libmgba's log again.
pub fn log_off() {
    sys::set_log(None, 0);
}
