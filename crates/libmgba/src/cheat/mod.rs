//! Cheats: codes that change the ROM, or that change memory at the end of each frame.

mod code;
mod file;

use std::ffi::{CStr, CString};
use std::fmt;
use std::str::FromStr;

pub use file::read_cheats;

use crate::core::Core;
use crate::error::Error;
use crate::sys::{CheatCodes, CheatProblem, Status};

/// The largest number of codes of a cheat.
const MAX_CODES: usize = 1000;
/// The longest name of a cheat, in bytes.
const MAX_NAME: usize = 200;

/// The format of codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheatKind {
    /// Detected from the form of each code. The encryption is detected by trying to decrypt the code.
    #[default]
    Auto,
    /// GameShark or Action Replay v1 and v2 for the Game Boy Advance, encrypted; or GameShark for the Game Boy.
    GameShark,
    /// GameShark or Action Replay v1 and v2 for the Game Boy Advance, not encrypted.
    GameSharkRaw,
    /// Action Replay v3 and v4 (Action Replay MAX) for the Game Boy Advance, encrypted.
    ActionReplay,
    /// Action Replay v3 and v4 for the Game Boy Advance, not encrypted.
    ActionReplayRaw,
    /// CodeBreaker.
    CodeBreaker,
    /// Game Genie for the Game Boy.
    GameGenie,
    /// `ADDRESS:VALUE`.
    Raw,
}

impl CheatKind {
    /// The kinds in the order of the enum. Each kind has its name in operations, and the word for its encryption in
    /// mGBA's cheat files, where the word comes after a `!`; `None` if there is no such word.
    const ALL: [(CheatKind, &'static str, Option<&'static CStr>); 8] = [
        (CheatKind::Auto, "auto", None),
        (CheatKind::GameShark, "gameshark", Some(c"GSAv1")),
        (CheatKind::GameSharkRaw, "gameshark_raw", Some(c"GSAv1 raw")),
        (CheatKind::ActionReplay, "action_replay", Some(c"PARv3")),
        (CheatKind::ActionReplayRaw, "action_replay_raw", Some(c"PARv3 raw")),
        (CheatKind::CodeBreaker, "codebreaker", None),
        (CheatKind::GameGenie, "game_genie", None),
        (CheatKind::Raw, "raw", None),
    ];
    /// Compiles only if each kind is at its own index in `ALL`.
    const IS_IN_ORDER: () = {
        let mut index = 0;
        while index < CheatKind::ALL.len() {
            assert!(CheatKind::ALL[index].0 as usize == index);
            index += 1;
        }
    };

    /// Its name in operations, such as `game_genie`.
    pub fn name(self) -> &'static str {
        let () = CheatKind::IS_IN_ORDER;
        CheatKind::ALL[self as usize].1
    }
}

impl fmt::Display for CheatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CheatKind {
    type Err = String;

    fn from_str(text: &str) -> Result<CheatKind, String> {
        let found = CheatKind::ALL.iter().find(|(_, name, _)| *name == text);
        found.map(|(kind, ..)| *kind).ok_or_else(|| {
            let names = CheatKind::ALL.map(|(_, name, _)| name).join(", ");
            format!("is {text:?}; accepted is {names}")
        })
    }
}

/// A code of a cheat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The number of its line in the file, or in the text of the cheat, counted from 1.
    pub line: usize,
    /// The code.
    pub text: String,
}

/// A cheat: codes that are switched on and off together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cheat {
    /// Its display name.
    pub name: String,
    /// The format of its codes.
    pub kind: CheatKind,
    /// Its codes in order.
    pub codes: Vec<Code>,
    /// Whether it is on.
    pub enabled: bool,
    /// The file that it was read from, if there is one. A cheat from a file can have codes of several forms. If its
    /// kind is `Auto`, it has the encryption of the cheat before it, as in mGBA.
    pub file: Option<String>,
}

impl Cheat {
    /// A cheat that is on, with these codes, one on each line.
    pub fn new(name: &str, kind: CheatKind, codes: &str) -> Cheat {
        let lines = codes.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let codes = lines.map(|(index, line)| Code { line: index + 1, text: line.trim().to_owned() });
        Cheat { name: name.to_owned(), kind, codes: codes.collect(), enabled: true, file: None }
    }

    /// An error about one of its codes.
    fn refused(&self, code: &Code, problem: String) -> Error {
        let place = match &self.file {
            Some(file) => format!("{file} line {} ({:?})", code.line, code.text),
            None => format!("line {} ({:?})", code.line, code.text),
        };
        Error::Cheat { place, problem }
    }

    /// An error about the whole cheat.
    fn refused_whole(&self, problem: String) -> Error {
        let place = match &self.file {
            Some(file) => format!("{file}, cheat {:?}", self.name),
            None => format!("cheat {:?}", self.name),
        };
        Error::Cheat { place, problem }
    }
}

/// Cheats are removed when a game is loaded, even the same one, and when a script loads a state that contains cheats.
/// Resets and other states do not change them.
impl Core {
    /// Adds a cheat after the others. If it is on, its codes are applied now, and then at the end of each frame. If it
    /// has a master code, they are applied whenever the game executes the instruction at the master code's address.
    ///
    /// A master code, and the keys of encrypted CodeBreaker codes, also apply to the cheats after this one.
    ///
    /// # Errors
    /// [`Error::Cheat`] with the line and the reason, or [`Error::OutOfMemory`]. Then nothing is added.
    pub fn add_cheat(&mut self, cheat: &Cheat) -> Result<(), Error> {
        if cheat.name.len() > MAX_NAME || cheat.name.contains(char::is_control) {
            let problem = format!("the name is longer than {MAX_NAME} bytes, or has a control character");
            return Err(cheat.refused_whole(problem));
        }
        if cheat.codes.is_empty() || cheat.codes.len() > MAX_CODES {
            let problem =
                format!("it has {} codes; accepted is 1 to {MAX_CODES}, one on each line", cheat.codes.len());
            return Err(cheat.refused_whole(problem));
        }
        let platform = self.platform();
        let form = if cheat.file.is_some() { CheatKind::Auto } else { cheat.kind };
        let mut lines = Vec::with_capacity(cheat.codes.len());
        for code in &cheat.codes {
            let line =
                code::for_mgba(platform, form, &code.text).map_err(|problem| cheat.refused(code, problem))?;
            lines.push(c_string(line));
        }
        let codes = CheatCodes {
            name: c_string(cheat.name.clone()),
            directive: CheatKind::ALL[cheat.kind as usize].2,
            keeps_encryption: cheat.file.is_some(),
            lines,
            enabled: cheat.enabled,
        };
        self.handle.add_cheat(&codes).map_err(|(status, problem)| refusal(cheat, status, problem))
    }
}

/// The error for a cheat that libmgba or the shim does not accept.
fn refusal(cheat: &Cheat, status: Status, CheatProblem { line, value }: CheatProblem) -> Error {
    let Some(code) = cheat.codes.get(line) else { return Error::OutOfMemory };
    let problem = match status {
        Status::CheatLine => {
            "mGBA does not know this kind of code, or it is a second master code; check the code, or name its device \
             as the kind"
                .to_owned()
        }
        Status::CheatIncomplete => {
            "the code is not complete: another line, or the end of its block, is missing".to_owned()
        }
        Status::CheatAddress => format!(
            "it writes to 0x{value:08X}, where the console has no memory to write; the code is damaged, or of another kind"
        ),
        Status::CheatOutside => format!("it changes the ROM at 0x{value:08X}, where the ROM has no byte"),
        Status::CheatOtherGame => format!(
            "it replaces the byte 0x{value:02X}, which the ROM does not have at that address; the code is for \
             another game or version"
        ),
        _ => return Error::OutOfMemory,
    };
    cheat.refused(code, problem)
}

/// Converts a text to a C string. The caller has checked that it contains no NUL.
fn c_string(text: String) -> CString {
    CString::new(text).unwrap_or_default()
}
