//! Runs Lua code that clients send. As in an mGBA window, `lua/src/evaluate.lua` evaluates it.

use std::fmt::Write;
use std::sync::Arc;

use framewire_libmgba::{Core, Error};
use framewire_protocol::{OpError, Status, Value};
use parking_lot::Mutex;

use super::Console;

/// The line with the reply of the code begins with this character.
const REPLY: char = '=';
/// If the code is not valid Lua, the line with the error begins with this character.
const PROBLEM: char = '!';

/// Runs code of clients, and receives the log lines of a core's scripts. The code's reply is also a log line.
pub(super) struct Scripting {
    /// Creates a receiver of log lines.
    console: fn() -> Console,
    /// The last log line that a client's code has written, while that code runs; otherwise `None`.
    last: Arc<Mutex<Option<String>>>,
}

impl Scripting {
    pub fn new(console: fn() -> Console) -> Scripting {
        Scripting { console, last: Arc::default() }
    }

    /// Creates a receiver for log lines that do not come from scripts.
    pub fn console(&self) -> Console {
        (self.console)()
    }

    /// Lets a core run scripts.
    ///
    /// # Errors
    /// If libmgba was built without scripts.
    pub fn attach(&self, core: &mut Core) -> Result<(), Error> {
        let (mut console, last) = (self.console(), self.last.clone());
        core.attach_scripts(move |level, line| {
            let mut last = last.lock();
            if let Some(text) = &mut *last {
                line.clone_into(text);
            } else {
                drop(last);
                console(level, line);
            }
        })
    }

    /// Runs code, and returns the reply as JSON.
    ///
    /// # Errors
    /// If libmgba was built without scripts, if the code is not valid Lua, or if it cannot be run.
    pub fn run(&self, core: &mut Core, code: &str) -> Result<Value, OpError> {
        if !core.has_scripts() {
            self.attach(core).map_err(|error| OpError::new(Status::Unsupported, error.to_string()))?;
        }
        *self.last.lock() = Some(String::new());
        let ran = core.run_script_source("framewire", &program(code));
        let text = self.last.lock().take().unwrap_or_default();
        ran.map_err(|error| OpError::failed(error.to_string()))?;
        match text.strip_prefix(REPLY) {
            Some(reply) => Ok(Value::Text(reply.to_owned())),
            None => {
                let problem = text.trim_start_matches(PROBLEM);
                Err(OpError::bad_argument(format!("the code is not Lua: {problem}")))
            }
        }
    }
}

/// A Lua program that evaluates `code` and logs the reply as its last line. The evaluator is loaded only once, because
/// it keeps the global variables of earlier code.
fn program(code: &str) -> String {
    let evaluator = framewire_script::EVALUATOR;
    let code = quoted(code);
    format!(
        "local loaded = package.loaded\n\
         if not loaded['framewire.evaluate'] then\n\
         loaded['framewire.evaluate'] = (function()\n{evaluator}\nend)()\n\
         end\n\
         local reply, problem = loaded['framewire.evaluate']({code})\n\
         console:log(reply and '{REPLY}' .. reply or '{PROBLEM}' .. problem)\n"
    )
}

/// A string as a Lua literal.
fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'"' && byte != b'\\' => literal.push(char::from(byte)),
            _ => drop(write!(literal, "\\{byte:03}")),
        }
    }
    literal.push('"');
    literal
}
