use std::ffi::c_int;
use std::sync::Arc;

use crate::sys;

/// The level of a message: of libmgba's log, or of a script's console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The emulation cannot continue.
    Fatal,
    /// Something failed; `console:error` and errors of scripts.
    Error,
    /// Something looks wrong; `console:warn`.
    Warn,
    /// Information; `console:log` and `print`.
    Info,
    /// Detail; text of buffers made with `console:createBuffer`.
    Debug,
    /// The game used something libmgba does not emulate.
    Stub,
    /// The game itself did something wrong.
    GameError,
}

impl Level {
    /// From the bits of libmgba's `mLogLevel`.
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

/// Fatal, error, warn and info. A game can produce thousands of the others in
/// each frame.
const PASSED_ON: c_int = 0x0F;

/// Sends libmgba's own log, of all cores of this process, to `sink`, called with
/// level, category (such as "GBA Memory") and message on the thread of the core
/// concerned. Levels below [`Level::Info`] are left out.
///
/// Without this the log goes nowhere; never to stdout, as libmgba's default does.
pub fn log_to(sink: impl Fn(Level, &str, &str) + Send + Sync + 'static) {
    sys::set_log(Some(Arc::new(sink)), PASSED_ON);
}

/// Ends the effect of [`log_to`].
pub fn log_off() {
    sys::set_log(None, 0);
}
