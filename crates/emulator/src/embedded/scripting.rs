//! Lua code that clients send. `lua/src/evaluate.lua` runs it, as in an mGBA window.

use std::fmt::Write;
use std::sync::Arc;

use framewire_libmgba::{Core, Error};
use framewire_protocol::{OpError, Status, Value};
use parking_lot::Mutex;

use super::Console;

/// The line with the reply, or with the error in the code, begins with this character.
const REPLY: char = '=';
const PROBLEM: char = '!';

/// The console of a core's scripts, which also takes the reply of the code that a client has sent.
pub(super) struct Scripting {
    /// Creates a console.
    console: fn() -> Console,
    /// The last line while code of a client runs.
    last: Arc<Mutex<LastLine>>,
}

#[derive(Default)]
struct LastLine {
    is_wanted: bool,
    text: String,
}

impl Scripting {
    pub fn new(console: fn() -> Console) -> Scripting {
        Scripting { console, last: Arc::default() }
    }

    /// Creates a console for lines that do not come from scripts.
    pub fn console(&self) -> Console {
        (self.console)()
    }

    /// Lets a core run scripts.
    ///
    /// # Errors
    /// If libmgba was built without them.
    pub fn attach(&self, core: &mut Core) -> Result<(), Error> {
        let (mut console, last) = (self.console(), self.last.clone());
        core.attach_scripts(move |level, line| {
            let mut last = last.lock();
            if last.is_wanted {
                line.clone_into(&mut last.text);
            } else {
                drop(last);
                console(level, line);
            }
        })
    }

    /// Runs code, and returns the reply as JSON.
    pub fn run(&self, core: &mut Core, code: &str) -> Result<Value, OpError> {
        if !core.has_scripts() {
            self.attach(core).map_err(|error| OpError::new(Status::Unsupported, error.to_string()))?;
        }
        *self.last.lock() = LastLine { is_wanted: true, text: String::new() };
        let ran = core.run_script_source("framewire", &program(code));
        let LastLine { text, .. } = std::mem::take(&mut *self.last.lock());
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

/// The Lua that runs `code` and writes the reply as the last line. The evaluator is created once, because it keeps the globals of
/// earlier code.
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
