//! The cheats of a core. Each cheat has a number.

use std::path::Path;

use framewire_libmgba::{Cheat, CheatKind, Core, read_cheats};
use framewire_protocol::{OpError, Status, Value};

use super::errors::failed;

/// The largest number of cheats of a core.
const MAX_CHEATS: usize = 1000;

/// The largest total of [`size`] for all cheats.
const MAX_BYTES: usize = 1 << 20;

/// The cheats of a core, in the same order as in libmgba.
#[derive(Debug, Default)]
pub struct Cheats {
    all: Vec<Numbered>,
    last: u32,
}

#[derive(Debug)]
struct Numbered {
    id: u32,
    cheat: Cheat,
}

impl Cheats {
    /// Removes all cheats if the core has dropped its own list, as it does when another game is loaded.
    pub fn drop_if_removed(&mut self, core: &mut Core) {
        if !self.all.is_empty() && core.cheats() != self.all.len() {
            core.clear_cheats();
            self.all.clear();
        }
    }

    /// Why no recording or replay can begin: a cheat is on. `None` if all cheats are off.
    pub fn recording_problem(&self) -> Option<String> {
        if !self.all.iter().any(|numbered| numbered.cheat.enabled) {
            return None;
        }
        Some("a cheat is on, and recordings do not hold cheats; switch all cheats off first".to_owned())
    }

    /// The result of the operation `cheats`. It has five texts for each cheat: its number, `on` or `off`, its kind, its
    /// name, and its codes, one per line.
    pub fn list(&self) -> Value {
        let texts = self.all.iter().flat_map(|Numbered { id, cheat }| {
            let codes: Vec<&str> = cheat.codes.iter().map(|code| code.text.as_str()).collect();
            [
                id.to_string(),
                if cheat.enabled { "on" } else { "off" }.to_owned(),
                cheat.kind.to_string(),
                cheat.name.clone(),
                codes.join("\n"),
            ]
        });
        Value::List(texts.map(Value::Text).collect())
    }

    /// Adds a cheat. `codes` has one code on each line. Returns the cheat's number.
    ///
    /// # Errors
    /// If `kind` is not a kind of cheat, if a code is not valid, or if there are too many cheats or they take too much
    /// memory. The error for a code contains its line and the reason.
    pub fn add(
        &mut self,
        core: &mut Core,
        name: &str,
        kind: &str,
        codes: &str,
        enabled: bool,
    ) -> Result<u32, OpError> {
        let kind: CheatKind =
            kind.parse().map_err(|problem| OpError::bad_argument(format!("kind {problem}")))?;
        self.push(core, Cheat { enabled, ..Cheat::new(name, kind, codes) })
    }

    /// Adds all cheats of a file. Returns how many were added.
    ///
    /// # Errors
    /// If the file cannot be read, if a code is not valid, or if there are too many cheats or they take too much
    /// memory. Then no cheat is added. The error for a code contains its line and the reason.
    pub fn load(&mut self, core: &mut Core, path: &Path) -> Result<usize, OpError> {
        let cheats = read_cheats(path).map_err(failed)?;
        let (before, count) = (self.all.len(), cheats.len());
        let mut on = Vec::new();
        for cheat in cheats {
            // A cheat that is on changes memory at once. So all of them stay off until the last one has been added.
            if cheat.enabled {
                on.push(self.all.len());
            }
            if let Err(error) = self.push(core, Cheat { enabled: false, ..cheat }) {
                for index in (before..self.all.len()).rev() {
                    core.remove_cheat(index);
                }
                self.all.truncate(before);
                return Err(OpError { status: Status::Failed, ..error });
            }
        }
        for index in on {
            self.all[index].cheat.enabled = true;
            core.enable_cheat(index, true);
        }
        Ok(count)
    }

    fn push(&mut self, core: &mut Core, cheat: Cheat) -> Result<u32, OpError> {
        if self.all.len() >= MAX_CHEATS {
            let message = format!("there are {MAX_CHEATS} cheats, which is the limit; remove one first");
            return Err(OpError::new(Status::Busy, message));
        }
        if self.all.iter().map(|numbered| size(&numbered.cheat)).sum::<usize>() + size(&cheat) > MAX_BYTES {
            let message = format!("the cheats would take more than {MAX_BYTES} bytes; remove some first");
            return Err(OpError::new(Status::TooLarge, message));
        }
        core.add_cheat(&cheat).map_err(|error| OpError::bad_argument(error.to_string()))?;
        self.last = self.last.wrapping_add(1);
        self.all.push(Numbered { id: self.last, cheat });
        Ok(self.last)
    }

    /// Switches a cheat on or off.
    ///
    /// # Errors
    /// If there is no such cheat.
    pub fn enable(&mut self, core: &mut Core, id: u32, enabled: bool) -> Result<(), OpError> {
        let index = self.find(id)?;
        if self.all[index].cheat.enabled != enabled {
            self.all[index].cheat.enabled = enabled;
            core.enable_cheat(index, enabled);
        }
        Ok(())
    }

    /// Removes a cheat, or all cheats if `id` is 0.
    ///
    /// # Errors
    /// If there is no such cheat.
    pub fn remove(&mut self, core: &mut Core, id: u32) -> Result<(), OpError> {
        if id == 0 {
            core.clear_cheats();
            self.all.clear();
            return Ok(());
        }
        let index = self.find(id)?;
        core.remove_cheat(index);
        self.all.remove(index);
        Ok(())
    }

    fn find(&self, id: u32) -> Result<usize, OpError> {
        self.all.iter().position(|numbered| numbered.id == id).ok_or_else(|| {
            let ids: Vec<String> = self.all.iter().map(|numbered| numbered.id.to_string()).collect();
            let there = if ids.is_empty() {
                "there are none".to_owned()
            } else {
                format!("numbers in use: {}", ids.join(", "))
            };
            OpError::new(Status::NotFound, format!("there is no cheat {id}; {there}"))
        })
    }
}

/// The approximate size of a cheat in bytes, with its name and its codes.
fn size(cheat: &Cheat) -> usize {
    64 + cheat.name.len() + cheat.codes.iter().map(|code| 1 + code.text.len()).sum::<usize>()
}
