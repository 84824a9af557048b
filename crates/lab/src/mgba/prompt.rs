//! Runs Lua code in mGBA by typing at the prompt of its scripting window, and gets the result back.
//!
//! The typed line is as short as possible, such as `dofile'3'`. The file `3` is in mGBA's working folder. It runs the
//! code in `3.lua`, and the code's result goes to `3.result`. This way, long paths and unusual characters cause no
//! problems. If a line was lost, it can be typed again, because `3` runs the code only once.

use std::fs;
use std::path::{Path, PathBuf};

use super::{AGAIN, STEP, TRIES};
use crate::process::text_of;
use crate::{Desktop, Error, Key, Process, Result};

/// The distance of the prompt's middle from the left edge of the scripting window, in pixels.
const FROM_LEFT: i16 = 300;
/// The distance of the prompt's middle from the lower edge of the scripting window, in pixels.
const FROM_BELOW: i16 = 43;

/// The file to which [`KEEP_CONSOLE`] copies the console.
const CONSOLE: &str = "console.log";

/// Lua code that makes `console` also write to a file. It is called with the folder as `...`.
pub(super) const KEEP_CONSOLE: &str = r#"
local real, file = console, io.open((...) .. "console.log", "a")
file:setvbuf("line")
local levels = {log = true, warn = true, error = true}
console = setmetatable({}, {__index = function(_, key)
  return function(_, ...)
    if levels[key] then file:write(key, " ", tostring(...), "\n") end
    return real[key](real, ...)
  end
end})
"#;

/// Lua code that runs `<n>.lua` once, and writes its outcome to `<n>.result`.
///
/// It keeps no file open while `<n>.lua` runs. mGBA 0.10.1 closes the file descriptor of a closed socket a second time
/// when Lua collects the socket as garbage. By then, the descriptor can belong to a file, whose text would be lost.
const RUNNER: &str = r#"
local folder, name = FOLDER, NAME
local result = folder .. name .. ".result"
local started = io.open(result .. ".part", "r") or io.open(result, "r")
if started then started:close() return end
io.open(result .. ".part", "w"):close()
local function outcome(ok, ...)
  local values = table.pack(...)
  for i = 1, values.n do values[i] = tostring(values[i]) end
  local text = (ok and "ok\n" or "error\n") .. table.concat(values, "\t")
  local file = io.open(result .. ".part", "w")
  file:write(text)
  file:close()
  os.rename(result .. ".part", result)
end
local code, problem = loadfile(folder .. name .. ".lua")
if code then outcome(pcall(code, folder)) else outcome(false, problem) end
"#;

/// The scripting window's prompt.
#[derive(Debug)]
pub(super) struct Prompt {
    /// The scripting window. [`Prompt::run`] works only after this is set.
    pub(super) window: u32,
    folder: PathBuf,
    count: u32,
}

impl Prompt {
    /// A prompt of an mGBA that runs in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Self { window: 0, folder: folder.into(), count: 0 }
    }

    /// The lines of the console, from the file that [`KEEP_CONSOLE`] writes.
    pub(super) fn console(&self) -> String {
        text_of(&self.folder.join(CONSOLE)).unwrap_or_default()
    }

    /// Runs Lua code and returns the values that it returns, as text.
    pub(super) fn run(&mut self, desktop: &Desktop, process: &mut Process, code: &str) -> Result<String> {
        self.count += 1;
        let name = self.count.to_string();
        let write = |file: &str, text: &str| {
            fs::write(self.folder.join(file), text).map_err(Error::io(format!("write {file} for mGBA")))
        };
        write(&format!("{name}.lua"), code)?;
        let folder = quoted(&self.folder.join(""));
        write(&name, &RUNNER.replace("NAME", &format!("\"{name}\"")).replace("FOLDER", &folder))?;

        let result = self.folder.join(format!("{name}.result"));
        let part = self.folder.join(format!("{name}.result.part"));
        let what = format!("Lua typed at the prompt had run ({})", code.trim());
        for _ in 0..TRIES {
            self.type_line(desktop, &format!("dofile'{name}'"))?;
            let seen = |_: &mut Process| Ok((part.exists() || result.exists()).then_some(()));
            match process.wait_for(&what, AGAIN, seen) {
                Err(Error::Timeout { .. }) => {}
                started => {
                    started?;
                    break;
                }
            }
        }
        let text = process.wait_for(&what, STEP, |_| Ok(text_of(&result)))?;
        match text.split_once('\n') {
            Some(("ok", values)) => Ok(values.into()),
            Some((_, message)) => Err(Error::Lua(message.into())),
            None => Err(Error::Lua(format!("a broken result: {text:?}"))),
        }
    }

    fn type_line(&self, desktop: &Desktop, line: &str) -> Result<()> {
        let gone = || Error::X11("the scripting window is gone".into());
        let window = desktop.window(self.window).ok_or_else(gone)?;
        desktop.focus(window.id)?;
        let below = window.y + i16::try_from(window.height).unwrap_or(i16::MAX) - FROM_BELOW;
        desktop.click(window.x + FROM_LEFT, below)?;
        // Selects any text that an incomplete line left in the prompt, so that typing replaces it.
        desktop.press(&[Key::CONTROL, Key::of('a')])?;
        desktop.type_text(line)?;
        desktop.press(&[Key::RETURN])
    }
}

/// A path as a Lua string.
pub(super) fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}
