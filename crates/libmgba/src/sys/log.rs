use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use parking_lot::RwLock;

use super::ffi;
use crate::log::Level;

/// Receives level, category and message.
pub type LogSink = Arc<dyn Fn(Level, &str, &str) + Send + Sync>;

static SINK: RwLock<Option<LogSink>> = RwLock::new(None);
static INSTALLED: Once = Once::new();

/// Redirects libmgba's log from stdout, once for the whole process.
pub(super) fn install() {
    INSTALLED.call_once(|| ffi::fw_log_install(deliver));
}

/// Sets where libmgba's own log goes and which levels (bits of `mLogLevel`) are
/// passed on.
pub fn set_log(sink: Option<LogSink>, levels: c_int) {
    install();
    ffi::fw_log_levels(if sink.is_some() { levels } else { 0 });
    *SINK.write() = sink;
}

extern "C" fn deliver(level: c_int, category: *const c_char, message: *const c_char) {
    // The sink is cloned and the lock is released, so that the sink may set another one.
    let sink = SINK.read().clone();
    let Some(sink) = sink else { return };
    // SAFETY: the shim passes NUL-terminated strings that are valid during the call.
    let (category, message) = unsafe { (CStr::from_ptr(category), CStr::from_ptr(message)) };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        sink(Level::from_bits(level), &category.to_string_lossy(), &message.to_string_lossy());
    }));
}
