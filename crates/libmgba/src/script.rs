use std::ffi::CString;
use std::fs;
use std::path::Path;

use crate::core::{Core, c_path};
use crate::error::Error;
use crate::log::Level;
use crate::sys::Status;

/// Lua scripts, with the globals that mGBA's window gives them: `emu`, `console`,
/// `callbacks`, `socket`, `util`, `C`.
///
/// Scripts run on the thread that uses the core: while they are loaded, in their
/// `frame` callback at the end of [`run_frame`](Core::run_frame), in `reset` at
/// the end of [`reset`](Core::reset), and in `keysRead`, `savedataUpdated`,
/// `crashed`, `sleep`, `stop` and `alarm` inside the emulation. `shutdown` is
/// called when they are detached or the core is dropped.
impl Core {
    /// Makes a script context, in place of an earlier one. `console` takes what
    /// scripts write to `console` (and by `print`, which mGBA would send to
    /// stdout), and every error of theirs: an error of a callback is reported once, not
    /// again each frame while it stays the same.
    ///
    /// If the process would die of SIGPIPE it is set to ignore it, because
    /// scripts write to sockets that the other side may close.
    ///
    /// # Errors
    ///
    /// [`Error::NoScripting`].
    pub fn attach_scripts(&mut self, console: impl FnMut(Level, &str) + Send + 'static) -> Result<(), Error> {
        self.handle.attach_scripts(console).map_err(|status| match status {
            Status::NoMemory => Error::OutOfMemory,
            _ => Error::NoScripting,
        })
    }

    /// Whether this core has a script context.
    pub fn has_scripts(&self) -> bool {
        self.handle.has_scripts()
    }

    /// Ends all scripts of this core.
    pub fn detach_scripts(&mut self) {
        self.handle.detach_scripts();
    }

    /// Moves the scripts of another core, as they are, to this one in place of its own, and calls their `start` callbacks:
    /// what happens in mGBA's window when another game is opened. The global `emu` is this core from then on; copies of it
    /// that a script keeps no longer work, as in mGBA.
    pub fn adopt_scripts(&mut self, from: &mut Core) {
        self.handle.adopt_scripts(&mut from.handle);
    }

    /// Loads a Lua file and runs it, in addition to those already running. The same file
    /// may be loaded again.
    ///
    /// # Errors
    ///
    /// [`Error::Script`] (its message has gone to the console too),
    /// [`Error::ScriptsNotAttached`], [`Error::Io`].
    pub fn load_script(&mut self, path: &Path) -> Result<(), Error> {
        let source = fs::read(path).map_err(|e| Error::read(path, e))?;
        self.run(&c_path(path)?, &source)
    }

    /// Runs Lua from memory. `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// As for [`load_script`](Core::load_script).
    pub fn run_script_source(&mut self, name: &str, source: &str) -> Result<(), Error> {
        // The asterisk means for mGBA that this is not a file.
        let name: Vec<u8> = format!("*{name}").replace('\0', " ").into();
        let name = CString::new(name).unwrap_or_default();
        self.run(&name, source.as_bytes())
    }

    fn run(&mut self, name: &CString, source: &[u8]) -> Result<(), Error> {
        // libmgba makes no file of 0 bytes.
        let source = if source.is_empty() { b"\n" } else { source };
        self.handle.run_script(name, source).map_err(|(status, message)| match status {
            Status::ScriptFailed => Error::Script { message },
            Status::NoScripting => Error::ScriptsNotAttached,
            _ => Error::OutOfMemory,
        })
    }
}
