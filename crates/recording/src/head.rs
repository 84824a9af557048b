//! The head: the text at the start of a recording.

use std::fmt;
use std::str::FromStr;

use crate::FormatError;

/// The first line of the file, with the version of the format.
const MAGIC: &str = "FRAMEWIRE RECORDING 1\n";

/// The value of [`Head::clock`] if the clock was not recorded. Also the default if a file has no line for the clock.
pub(crate) const WALL: &str = "wall";

/// The largest length of a head in bytes.
pub(crate) const LONGEST: usize = 8 * 1024;

/// The game and the settings of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The game's title.
    pub title: String,
    /// The game's code, as the emulator gave it.
    pub code: String,
    /// The CRC-32 of the ROM.
    pub checksum: u32,
    /// The console: 0 is the Game Boy Advance, 1 the Game Boy.
    pub console: u8,
    /// Where the recording begins.
    pub start: Start,
    /// The emulator's frame counter before the first frame.
    pub frame: u32,
    /// The number of frames from one hash of the picture to the next; 0 if there are no such hashes.
    pub picture_interval: u32,
    /// When the recording was made, as RFC 3339 in UTC.
    pub time: String,
    /// A note from the person or program that made the recording.
    pub note: String,
    /// The time of the console's clock before the first frame, as RFC 3339; from there, the clock advances with the
    /// frames. `wall` if the clock was not recorded, as in a stock mGBA.
    pub clock: String,
    /// Whether the program ended during the recording, and completed the file at a later start.
    pub recovered: bool,
}

/// Where a recording begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the state of the game when the recording was started.
    State,
    /// Directly after a reset of the console.
    PowerOn,
}

impl Start {
    /// The name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Start::State => "state",
            Start::PowerOn => "power-on",
        }
    }
}

impl FromStr for Start {
    type Err = ();

    fn from_str(text: &str) -> Result<Start, ()> {
        [Start::State, Start::PowerOn].into_iter().find(|start| start.name() == text).ok_or(())
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MAGIC)?;
        writeln!(f, "title {}", in_a_line(&self.title))?;
        writeln!(f, "code {}", in_a_line(&self.code))?;
        writeln!(f, "checksum {:08x}", self.checksum)?;
        writeln!(f, "console {}", if self.console == 0 { "gba" } else { "gb" })?;
        writeln!(f, "start {}", self.start.name())?;
        writeln!(f, "frame {}", self.frame)?;
        writeln!(f, "pictures {}", self.picture_interval)?;
        writeln!(f, "time {}", in_a_line(&self.time))?;
        writeln!(f, "note {}", in_a_line(&self.note))?;
        writeln!(f, "clock {}", in_a_line(&self.clock))?;
        if self.recovered {
            writeln!(f, "recovered yes")?;
        }
        writeln!(f)
    }
}

/// Replaces line breaks and other control characters with spaces, because each value in the head is one line.
fn in_a_line(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    text.trim().to_owned()
}

impl Head {
    /// The largest length of a note in bytes.
    pub const MAX_NOTE: usize = 1024;

    /// Reads the head at the beginning of a file. Returns the head and its length in bytes.
    ///
    /// # Errors
    /// If the file does not begin with a head, or a line of the head is missing or cannot be read.
    pub fn read(file: &[u8]) -> Result<(Head, usize), FormatError> {
        if !file.starts_with(MAGIC.as_bytes()) {
            let other_version = file.starts_with(b"FRAMEWIRE RECORDING ");
            return Err(if other_version { FormatError::Version } else { FormatError::Magic });
        }
        let start = &file[..file.len().min(LONGEST)];
        let length = start.windows(2).position(|two| two == b"\n\n").ok_or(FormatError::Unended)? + 2;
        let text = std::str::from_utf8(&file[..length]).map_err(|_| FormatError::NotText)?;
        let lines = Lines(text);
        let head = Head {
            title: lines.text("title")?.to_owned(),
            code: lines.text("code")?.to_owned(),
            checksum: lines.value("checksum", |text| u32::from_str_radix(text, 16).ok())?,
            console: lines.value("console", |text| match text {
                "gba" => Some(0),
                "gb" => Some(1),
                _ => None,
            })?,
            start: lines.value("start", |text| text.parse().ok())?,
            frame: lines.value("frame", |text| text.parse().ok())?,
            picture_interval: lines.value("pictures", |text| text.parse().ok())?,
            time: lines.text("time")?.to_owned(),
            note: lines.text("note")?.to_owned(),
            clock: lines.text("clock").unwrap_or(WALL).to_owned(),
            recovered: lines.text("recovered").is_ok(),
        };
        Ok((head, length))
    }
}

/// The lines of a head.
struct Lines<'a>(&'a str);

impl<'a> Lines<'a> {
    /// The rest of the line that begins with `word`. Other lines are ignored, so that later versions can add lines.
    fn text(&self, word: &'static str) -> Result<&'a str, FormatError> {
        let mut lines = self.0.lines().skip(1);
        let text = lines.find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        text.ok_or(FormatError::Line(word))
    }

    fn value<T>(&self, word: &'static str, read: impl Fn(&str) -> Option<T>) -> Result<T, FormatError> {
        read(self.text(word)?).ok_or(FormatError::Line(word))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn head() -> Head {
        Head {
            title: "FRAMEWIRE".to_owned(),
            code: "AGB-XFWE".to_owned(),
            checksum: 0x0012_ABCD,
            console: 0,
            start: Start::State,
            frame: 1234,
            picture_interval: 60,
            time: "2026-01-02T03:04:05Z".to_owned(),
            note: "über".to_owned(),
            clock: "2026-01-02T04:04:05.678+01:00".to_owned(),
            recovered: false,
        }
    }

    #[test]
    fn a_written_head_is_read_unchanged() {
        for (note, start) in [("", Start::PowerOn), ("a note", Start::State)] {
            let head = Head { note: note.to_owned(), start, ..head() };
            let text = format!("{head}rest");
            assert_eq!(Head::read(text.as_bytes()), Ok((head, text.len() - 4)));
        }
        let lines = Head { note: " two\nlines\n\nand more ".to_owned(), ..head() };
        assert_eq!(Head::read(lines.to_string().as_bytes()).unwrap().0.note, "two lines  and more");
    }

    #[test]
    fn lines_of_later_versions_are_ignored() {
        let text = head().to_string().replace("title ", "titles of a later version\ntitle ");
        assert_eq!(Head::read(text.as_bytes()).unwrap().0, head());
    }

    #[test]
    fn invalid_heads_are_refused_with_the_reason() {
        let text = head().to_string();
        for (text, error) in [
            (String::new(), FormatError::Magic),
            ("\u{89}PNG".to_owned(), FormatError::Magic),
            (text.replace("RECORDING 1", "RECORDING 2"), FormatError::Version),
            (text.trim_end().to_owned(), FormatError::Unended),
            (text.replace("frame 1234", "frame -1"), FormatError::Line("frame")),
            (text.replace("start state", "start here"), FormatError::Line("start")),
            (text.replace("console gba", "console nes"), FormatError::Line("console")),
            (text.replace("code ", "dode "), FormatError::Line("code")),
            (text.replace("\n\n", &format!("{}\n\n", "x".repeat(9000))), FormatError::Unended),
        ] {
            assert_eq!(Head::read(text.as_bytes()).unwrap_err(), error, "{text}");
        }
    }
}
