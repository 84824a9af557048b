use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::log::Level;

/// The function that gets a script context's messages: the log console of mGBA's scripts, not a game console. The shim
/// stores a plain pointer to it, so this type does the same: by Rust's aliasing rules, moving a `Box` would make the
/// shim's pointer into it invalid.
pub struct Console(NonNull<Sink>);

type Sink = Box<dyn FnMut(Level, &str) + Send>;

// SAFETY: a sink is `Send`, and the pointer points only to a sink.
unsafe impl Send for Console {}

impl Console {
    pub fn new(sink: impl FnMut(Level, &str) + Send + 'static) -> Console {
        let sink: Sink = Box::new(sink);
        Console(NonNull::from(Box::leak(Box::new(sink))))
    }

    pub(super) fn as_user(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box in `new`, and the owner has detached the
        // scripts, so the shim no longer uses it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// The shim's `fw_console_fn`. `user` is the pointer that [`Console::as_user`] returned.
pub(super) extern "C" fn deliver(user: *mut c_void, level: c_int, message: *const c_char) {
    // SAFETY: `user` is the sink of a Console that its owner keeps alive while the script context is attached. There is
    // no other reference to the sink: the owner does not use it meanwhile. The shim calls it from one thread at a time,
    // and never from inside the sink, because the sink has no access to the core.
    let sink = unsafe { &mut *user.cast::<Sink>() };
    // SAFETY: the shim passes a NUL-terminated string that is valid during the call.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    // A panic must not unwind into C. Only the message is lost.
    let _ = catch_unwind(AssertUnwindSafe(|| sink(Level::from_bits(level), &message)));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// The shim's pointer stays valid while the console is moved. Miri can run this test.
    #[test]
    fn a_console_may_move_while_the_shim_has_it() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        let console = Console::new(move |level, line| sink.lock().push((level, line.to_owned())));
        let user = console.as_user();
        deliver(user, 0x08, c"before".as_ptr());
        let mut owner = vec![Some(console)];
        owner.reserve(100);
        deliver(user, 0x04, c"after".as_ptr());
        let moved = owner.remove(0);
        std::thread::spawn(move || drop(moved)).join().unwrap();
        let lines = lines.lock();
        assert_eq!(*lines, [(Level::Info, "before".to_owned()), (Level::Warn, "after".to_owned())]);
    }
}
