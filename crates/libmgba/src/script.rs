use std::ffi::CString;
use std::path::Path;

use crate::MAX_SCRIPT;
use crate::core::{Core, c_path};
use crate::error::Error;
use crate::log::Level;
use crate::sys::Status;

/// Lua scripts, with the globals that mGBA's window gives them: `emu`, `console`, `callbacks`, `socket`, `util`, `C`.
///
/// Scripts run on the thread that uses the core: while they are being loaded, and in their callbacks. `frame` is called
/// at the end of [`run_frame`](Core::run_frame), `reset` at the end of [`reset`](Core::reset), and `keysRead`,
/// `savedataUpdated`, `crashed`, `sleep`, `stop` and `alarm` during emulation. `shutdown` is called when the scripts
/// are detached or the core is dropped.
impl Core {
    /// Makes a script context, which replaces an earlier one. The function `console` gets the messages that scripts
    /// write with mGBA's `console` and with `print` (which mGBA would send to stdout), and all errors of scripts. If a
    /// callback fails with the same error in each frame, the error is reported only once.
    ///
    /// If SIGPIPE would end the process, it is ignored from now on, because scripts write to sockets that the other
    /// side may close.
    ///
    /// # Errors
    /// [`Error::NoScripting`] and [`Error::OutOfMemory`].
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

    /// Moves the scripts of another core to this core, with their state, and calls their `start` callbacks. They
    /// replace the scripts of this core. mGBA's window does the same when another game is opened. From then on, the
    /// global `emu` is this core. Copies of the old `emu` that a script has stored no longer work, as in mGBA.
    pub fn adopt_scripts(&mut self, from: &mut Core) {
        self.handle.adopt_scripts(&mut from.handle);
    }

    /// Loads and runs a Lua file, in addition to scripts that already run. The same file can be loaded again.
    ///
    /// # Errors
    /// [`Error::Script`] (its message is also sent to the console),
    /// [`Error::ScriptsNotAttached`], [`Error::Io`], [`Error::NotAFile`], [`Error::OutOfMemory`].
    pub fn load_script(&mut self, path: &Path) -> Result<(), Error> {
        let source = framewire_files::read(path, MAX_SCRIPT).map_err(|e| Error::read(path, e))?;
        self.run(&c_path(path)?, &source)
    }

    /// Runs Lua from memory. `name` stands for the file in messages.
    ///
    /// # Errors
    /// As for [`load_script`](Core::load_script), except for the errors of the file.
    pub fn run_script_source(&mut self, name: &str, source: &str) -> Result<(), Error> {
        // In mGBA, an asterisk means that this is not the name of a file.
        let name: Vec<u8> = format!("*{name}").replace('\0', " ").into();
        let name = CString::new(name).unwrap_or_default();
        self.run(&name, source.as_bytes())
    }

    fn run(&mut self, name: &CString, source: &[u8]) -> Result<(), Error> {
        // libmgba cannot make a virtual file of 0 bytes.
        let source = if source.is_empty() { b"\n" } else { source };
        self.handle.run_script(name, source).map_err(|(status, message)| match status {
            Status::ScriptFailed => Error::Script { message },
            Status::NoScripting => Error::ScriptsNotAttached,
            _ => Error::OutOfMemory,
        })
    }
}
