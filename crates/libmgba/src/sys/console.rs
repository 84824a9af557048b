use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::log::Level;

/// Where a script context's messages go. Boxed twice so that its address, which
/// the shim keeps, is one plain pointer and stays put when the owner moves.
pub struct Console(Box<Sink>);

type Sink = Box<dyn FnMut(Level, &str) + Send>;

impl Console {
    pub fn new(sink: impl FnMut(Level, &str) + Send + 'static) -> Console {
        Console(Box::new(Box::new(sink)))
    }

    pub(super) fn as_user(&mut self) -> *mut c_void {
        (&raw mut *self.0).cast()
    }
}

/// The shim's `fw_console_fn`. `user` is what [`Console::as_user`] gave.
pub(super) extern "C" fn deliver(user: *mut c_void, level: c_int, message: *const c_char) {
    // SAFETY: `user` is the sink of a Console that its owner keeps alive as long
    // as the script context is attached, and no other reference to it exists: the
    // owner never touches it meanwhile, and the shim calls on one thread at a
    // time and not from inside the sink, which cannot reach the core.
    let sink = unsafe { &mut *user.cast::<Sink>() };
    // SAFETY: the shim passes a NUL-terminated string that outlives the call.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    // A panic must not unwind into C; the message is lost and that is all.
    let _ = catch_unwind(AssertUnwindSafe(|| sink(Level::from_bits(level), &message)));
}
