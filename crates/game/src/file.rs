//! Reads game files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framewire_expression::{Formula, ParseError, Subject};
use framewire_protocol::{Key, Keys, sequence};
use framewire_symbols::{SymbolFiles, Symbols};
use serde::Deserialize;
use toml::Spanned;

use crate::error::GameFileError;
use crate::rom::RomHash;
use crate::scenario::{Actions, Observed, Scenario, Screen, Start};

/// The largest game file that is accepted, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// A game file that was read and checked.
#[derive(Debug, Clone)]
pub struct GameFile {
    /// Where it was read from.
    pub path: PathBuf,
    /// The game's name, for display.
    pub name: String,
    /// The ROM's path, if the file names one.
    pub rom_path: Option<PathBuf>,
    /// The identity of the ROM, if the file has its `sha256`.
    pub rom: Option<RomHash>,
    /// Names for addresses.
    pub symbols: Arc<Symbols>,
    /// The scenarios by name.
    pub scenarios: BTreeMap<String, Scenario>,
}

/// The files that a game file names, with their paths as they are in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFiles {
    /// The ROM, if the file names one.
    pub rom: Option<PathBuf>,
    /// The symbol files and the start states. Before each path is the range of bytes in the text that contains the path
    /// with its quotation marks.
    pub others: Vec<(Range<usize>, PathBuf)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    game: RawGame,
    #[serde(default)]
    scenario: BTreeMap<String, RawScenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the table [game] with `name`")]
struct RawGame {
    name: String,
    rom: Option<PathBuf>,
    sha256: Option<RomHash>,
    #[serde(default)]
    symbols: Vec<Spanned<PathBuf>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [scenario.NAME] with `actions` and `observe`")]
struct RawScenario {
    start: Option<Spanned<RawStart>>,
    actions: Spanned<RawActions>,
    frame_skip: Option<Spanned<u32>>,
    sticky: Option<Spanned<f64>>,
    max_noops: Option<Spanned<u32>>,
    max_frames: Option<Spanned<u32>>,
    observe: Spanned<RawObserve>,
    reward: Option<Spanned<String>>,
    terminated: Option<Spanned<String>>,
    truncated: Option<Spanned<String>>,
    #[serde(default)]
    info: BTreeMap<String, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with either `inputs` or `state`")]
struct RawStart {
    inputs: Option<Spanned<String>>,
    state: Option<Spanned<PathBuf>>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`actions` is a list of keys, such as [\".\", \"Left\", \"Right+A\"], or \"buttons\""
)]
enum RawActions {
    List(Vec<String>),
    All(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `screen`, `memory` or both")]
struct RawObserve {
    screen: Option<Spanned<RawScreen>>,
    #[serde(default)]
    memory: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { size = [84, 84], grey = true }")]
struct RawScreen {
    crop: Option<[u32; 4]>,
    size: Option<[u32; 2]>,
    #[serde(default)]
    grey: bool,
    stack: Option<u32>,
    max: Option<u32>,
}

impl GameFile {
    /// Reads and checks a game file, with the symbol files that it names.
    ///
    /// # Errors
    /// [`GameFileError`] says what is wrong, and where.
    pub fn read(path: &Path) -> Result<GameFile, GameFileError> {
        let text = framewire_files::read_text(path, MAX_FILE)
            .map_err(|source| GameFileError::Read { path: path.to_owned(), source })?;
        GameFile::parse(path, &text)
    }

    /// Like [`read`](GameFile::read), for a file with this text. Paths in it are relative to the folder of `path`.
    ///
    /// # Errors
    /// [`GameFileError`] says what is wrong, and where.
    pub fn parse(path: &Path, text: &str) -> Result<GameFile, GameFileError> {
        let raw = RawFile::parse(path, text)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut files = SymbolFiles::default();
        for symbols in &raw.game.symbols {
            files.load(&folder.join(symbols.get_ref())).map_err(|error| {
                let source = std::error::Error::source(&error);
                let reason = source.map_or(String::new(), |source| format!(": {source}"));
                GameFileError::at(path, text, symbols.span().start, format!("{error}{reason}"))
            })?;
        }
        let symbols = files.read_for(None);
        let reader = Reader { path, text, folder, symbols: &symbols };
        let scenarios = raw.scenario.into_iter();
        let scenarios = scenarios
            .map(|(name, raw)| Ok((name.clone(), reader.scenario(name, raw)?)))
            .collect::<Result<_, _>>()?;
        Ok(GameFile {
            path: path.to_owned(),
            name: raw.game.name,
            rom_path: raw.game.rom.map(|rom| folder.join(rom)),
            rom: raw.game.sha256,
            symbols,
            scenarios,
        })
    }

    /// The scenario with this name. Without a name, the only scenario of the file.
    ///
    /// # Errors
    /// A sentence that lists the scenarios of the file.
    pub fn scenario(&self, name: Option<&str>) -> Result<&Scenario, String> {
        let found = match name {
            Some(name) => self.scenarios.get(name),
            None if self.scenarios.len() == 1 => self.scenarios.values().next(),
            None => None,
        };
        found.ok_or_else(|| {
            let path = self.path.display();
            let names: Vec<&str> = self.scenarios.keys().map(String::as_str).collect();
            match (name, names.as_slice()) {
                (_, []) => format!("{path} has no scenarios; add a table [scenario.NAME]"),
                (Some(name), names) => {
                    format!("{path} has no scenario called {name:?}; it has {}", names.join(", "))
                }
                (None, names) => format!("{path} has several scenarios; choose one of {}", names.join(", ")),
            }
        })
    }
}

impl NamedFiles {
    /// Lists the files that a game file with this text names, without reading them. If `scenario` is given, the start
    /// states of other scenarios are left out.
    ///
    /// # Errors
    /// [`GameFileError`] if the text is not a game file. Formulas and key presses are not checked.
    pub fn parse(path: &Path, text: &str, scenario: Option<&str>) -> Result<NamedFiles, GameFileError> {
        let RawFile { game, scenario: scenarios } = RawFile::parse(path, text)?;
        let chosen = scenarios.into_iter().filter(|(name, _)| scenario.is_none_or(|wanted| wanted == name));
        let states = chosen.filter_map(|(_, raw)| raw.start?.into_inner().state);
        let others = game.symbols.into_iter().chain(states);
        let others = others.map(|file| (file.span(), file.into_inner()));
        Ok(NamedFiles { rom: game.rom, others: others.collect() })
    }
}

impl RawFile {
    fn parse(path: &Path, text: &str) -> Result<RawFile, GameFileError> {
        toml::from_str(text).map_err(|error| {
            let byte = error.span().map_or(0, |span| span.start);
            GameFileError::at(path, text, byte, in_words(error.message()))
        })
    }
}

/// Replaces the names of Rust's types in an error of the parser with words that people know.
fn in_words(problem: &str) -> String {
    let Some((what, expected)) = problem.rsplit_once(", expected ") else { return problem.to_owned() };
    let expected = match expected {
        "u32" => "a whole number from 0 to 4294967295",
        "f64" => "a number",
        "a string" | "path string" => "a text in quotation marks",
        "a sequence" => "a list in square brackets",
        "a map" => "a table",
        "a boolean" => "true or false",
        other => other,
    };
    format!("{what}, expected {expected}")
}

/// Checks the values of a file, and reports errors with their position.
struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    folder: &'a Path,
    symbols: &'a Symbols,
}

impl Reader<'_> {
    fn wrong<T>(&self, at: &Spanned<T>, message: impl Into<String>) -> GameFileError {
        GameFileError::at(self.path, self.text, at.span().start, message)
    }

    fn scenario(&self, name: String, raw: RawScenario) -> Result<Scenario, GameFileError> {
        let RawObserve { screen, memory } = raw.observe.get_ref();
        if screen.is_none() && memory.is_empty() {
            let message = "nothing is observed; add `screen`, `memory` or both";
            return Err(self.wrong(&raw.observe, message));
        }
        let info = raw.info.iter().map(|(name, text)| Ok((name.clone(), self.formula(text)?)));
        let max_frames = self.within(raw.max_frames.as_ref(), "max_frames", 1, u32::MAX)?;
        // An episode has at least one frame after its no-ops.
        let most_noops = max_frames.map_or(u32::MAX, |frames| frames - 1);
        Ok(Scenario {
            name,
            start: self.start(raw.start.as_ref())?,
            actions: self.actions(&raw.actions)?,
            frame_skip: self.within(raw.frame_skip.as_ref(), "frame_skip", 1, 60)?.unwrap_or(1),
            sticky: self.sticky(raw.sticky.as_ref())?,
            max_noops: self.within(raw.max_noops.as_ref(), "max_noops", 0, most_noops)?.unwrap_or(0),
            max_frames,
            screen: screen.as_ref().map(|screen| self.screen(screen)).transpose()?,
            memory: memory.iter().map(|text| self.observed(text)).collect::<Result<_, _>>()?,
            reward: raw.reward.as_ref().map(|text| self.formula(text)).transpose()?,
            terminated: raw.terminated.as_ref().map(|text| self.formula(text)).transpose()?,
            truncated: raw.truncated.as_ref().map(|text| self.formula(text)).transpose()?,
            info: info.collect::<Result<_, _>>()?,
        })
    }

    fn start(&self, raw: Option<&Spanned<RawStart>>) -> Result<Start, GameFileError> {
        let Some(raw) = raw else { return Ok(Start::Inputs(Vec::new())) };
        match raw.get_ref() {
            RawStart { inputs: Some(inputs), state: None } => match sequence::parse(inputs.get_ref()) {
                Ok(inputs) => Ok(Start::Inputs(inputs)),
                Err(error) => Err(self.wrong(inputs, error.to_string())),
            },
            RawStart { inputs: None, state: Some(state) } => {
                Ok(Start::State(self.folder.join(state.get_ref())))
            }
            _ => Err(self.wrong(raw, "`start` has either `inputs` or `state`")),
        }
    }

    fn actions(&self, raw: &Spanned<RawActions>) -> Result<Actions, GameFileError> {
        match raw.get_ref() {
            RawActions::All(all) if all == "buttons" => Ok(Actions::Buttons(Key::ALL.to_vec())),
            RawActions::List(list) if !list.is_empty() => {
                let keys = |text: &String| {
                    sequence::keys(text).ok_or_else(|| {
                        self.wrong(raw, format!("{text:?} is not a set of keys; use names joined by +, such as \"Up+B\", or \".\" for none"))
                    })
                };
                Ok(Actions::List(list.iter().map(keys).collect::<Result<Vec<Keys>, _>>()?))
            }
            _ => Err(self.wrong(
                raw,
                "`actions` is a list of keys, such as [\".\", \"Left\", \"Right+A\"], or \"buttons\"",
            )),
        }
    }

    fn within(
        &self,
        raw: Option<&Spanned<u32>>,
        name: &str,
        least: u32,
        greatest: u32,
    ) -> Result<Option<u32>, GameFileError> {
        let Some(raw) = raw else { return Ok(None) };
        let value = *raw.get_ref();
        if !(least..=greatest).contains(&value) {
            let message = format!("{name} is {value}; use a number from {least} to {greatest}");
            return Err(self.wrong(raw, message));
        }
        Ok(Some(value))
    }

    fn sticky(&self, raw: Option<&Spanned<f64>>) -> Result<f64, GameFileError> {
        let Some(raw) = raw else { return Ok(0.0) };
        let value = *raw.get_ref();
        if !(0.0..=1.0).contains(&value) {
            return Err(self.wrong(raw, format!("sticky is {value}; use a probability from 0.0 to 1.0")));
        }
        Ok(value)
    }

    fn screen(&self, raw: &Spanned<RawScreen>) -> Result<Screen, GameFileError> {
        let RawScreen { crop, size, grey, stack, max } = raw.get_ref();
        if let Some([_, _, 0, _] | [_, _, _, 0]) = crop {
            return Err(self.wrong(raw, "`crop` is empty; use [x, y, width, height] in pixels"));
        }
        if let Some([width, height]) = size
            && !((1..=512).contains(width) && (1..=512).contains(height))
        {
            let message = format!("size is [{width}, {height}]; use [width, height] from 1 to 512 pixels");
            return Err(self.wrong(raw, message));
        }
        let (stack, max) = (stack.unwrap_or(1), max.unwrap_or(1));
        if !(1..=16).contains(&stack) {
            return Err(self.wrong(raw, format!("stack is {stack}; use a number from 1 to 16")));
        }
        if !(1..=2).contains(&max) {
            return Err(self.wrong(raw, format!("max is {max}; use 1 or 2")));
        }
        Ok(Screen { crop: *crop, size: *size, grey: *grey, stack, max })
    }

    fn observed(&self, text: &Spanned<String>) -> Result<Observed, GameFileError> {
        if text.get_ref().trim_start().starts_with("bytes[") {
            match Subject::parse(text.get_ref(), self.symbols) {
                Ok(Subject::Range(range)) => return Ok(Observed::Bytes(range)),
                Ok(Subject::Expression(_) | Subject::Text(_)) => {}
                Err(error) => return Err(self.expression_error(text, &error)),
            }
        }
        self.formula(text).map(Observed::Value)
    }

    fn formula(&self, text: &Spanned<String>) -> Result<Formula, GameFileError> {
        Formula::parse(text.get_ref(), self.symbols).map_err(|error| self.expression_error(text, &error))
    }

    /// Adds the position in the file to an error in an expression. The span of `text` begins with a quotation mark, so
    /// the expression begins one byte after the start of the span. After an escape, or in a string in triple quotation
    /// marks, the position is a few bytes too far to the left.
    fn expression_error(&self, text: &Spanned<String>, error: &ParseError) -> GameFileError {
        let within =
            text.get_ref().char_indices().nth(error.column - 1).map_or(text.get_ref().len(), |(at, _)| at);
        GameFileError::at(self.path, self.text, text.span().start + 1 + within, error.message.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MAP: &str = "[[field]]\nname = \"score\"\naddress = 0x02000044\ntype = \"u32\"\n";

    fn parse(scenario: &str) -> Result<GameFile, GameFileError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("map.toml"), MAP).unwrap();
        let text = format!("[game]\nname = \"Test\"\nsymbols = [\"map.toml\"]\n{scenario}");
        GameFile::parse(&folder.path().join("game.toml"), &text)
    }

    const GOOD: &str = r#"
[scenario.level-1]
start = { inputs = ".:60 Start:2" }
actions = [".", "Left", "Right+A"]
frame_skip = 4
sticky = 0.25
max_frames = 3600
reward = "delta(score) * 0.01"
terminated = "score > 100"
info = { score = "score" }
[scenario.level-1.observe]
screen = { size = [84, 84], grey = true, stack = 4 }
memory = ["score", "bytes[0x02000000, 8]"]
"#;

    #[test]
    fn a_complete_scenario_is_read() {
        let file = parse(GOOD).unwrap();
        let scenario = file.scenario(Some("level-1")).unwrap();
        assert_eq!(scenario.frame_skip, 4);
        assert_eq!(scenario.memory.iter().map(Observed::count).sum::<usize>(), 9);
        let Start::Inputs(inputs) = &scenario.start else { panic!("{:?}", scenario.start) };
        assert_eq!(inputs.as_slice(), [(Keys::default(), 60), (Key::Start.into(), 2)]);
        assert!(file.scenario(Some("level-2")).unwrap_err().contains("it has level-1"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_game_file_without_an_end_is_refused() {
        let error = GameFile::read(Path::new("/dev/zero")).unwrap_err();
        let GameFileError::Read { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.to_string(), "it is too large; use a file of at most 16777216 bytes");
    }

    #[test]
    fn errors_have_line_and_column() {
        for (from, to, line, column, message) in [
            ("delta(score)", "delta(scroe)", 11, 17, "did you mean \"score\""),
            ("delta(score)", "u8[delta(score)]", 11, 14, "cannot be used in an address"),
            ("delta(score)", "u8[1.5]", 11, 14, "addresses, indexes and lengths are whole numbers"),
            ("frame_skip = 4", "frame_skip = 0", 8, 14, "frame_skip is 0"),
            ("frame_skip = 4", "frameskip = 4", 8, 1, "unknown field"),
            ("frame_skip = 4", "frame_skip = \"4\"", 8, 14, "expected a whole number from 0"),
            ("sticky = 0.25", "sticky = true", 9, 10, "expected a number"),
            ("\"Right+A\"", "\"X\"", 7, 11, "not a set of keys"),
            ("Start:2", "Start:0", 6, 20, "Start:0"),
            ("sticky = 0.25", "sticky = 2.5", 9, 10, "sticky is 2.5"),
            ("stack = 4", "stack = 40", 15, 10, "stack is 40"),
            ("sticky = 0.25", "max_noops = 3600", 9, 13, "max_noops is 3600; use a number from 0 to 3599"),
            ("[scenario.level-1]", "[scenario.level-1", 5, 18, ""),
            ("actions = [\".\", \"Left\", \"Right+A\"]", "actions = 5", 7, 11, "`actions` is a list of keys"),
            ("{ inputs = \".:60 Start:2\" }", "5", 6, 9, "expected a table with either `inputs` or `state`"),
            (
                "{ size = [84, 84], grey = true, stack = 4 }",
                "true",
                15,
                10,
                "expected a table, such as { size",
            ),
        ] {
            let text = GOOD.replace(from, to);
            match parse(&text).unwrap_err() {
                GameFileError::Content { line: found_line, column: found_column, message: found, .. } => {
                    assert!(found.contains(message), "{to}: {found}");
                    assert_eq!((found_line, found_column), (line, column), "{to}: {found}");
                }
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn named_files_are_listed_with_their_places_in_the_text() {
        // TOML 1.1 allows a line break after a comma in an inline table, and `\x`.
        let text = r#"
[game]
name = "map.toml"
rom = "game.gba"
symbols = ["map.toml", 'b.sym', "\x63.toml"]
[scenario.one]
start = {
    state = "ü.ss0",
}
actions = ["."]
observe.memory = ["frame"]
[scenario.two]
start.state = """two.ss0"""
actions = ["."]
observe.memory = ["frame"]
"#;
        let listed = |scenario| {
            let files = NamedFiles::parse(Path::new("game.toml"), text, scenario).unwrap();
            assert_eq!(files.rom, Some("game.gba".into()));
            let others = files.others.into_iter();
            others.map(|(span, path)| (path.display().to_string(), &text[span])).collect::<Vec<_>>()
        };
        let pair = |path: &str, written| (path.to_owned(), written);
        let symbols =
            [pair("map.toml", "\"map.toml\""), pair("b.sym", "'b.sym'"), pair("c.toml", "\"\\x63.toml\"")];
        let (one, two) = (pair("ü.ss0", "\"ü.ss0\""), pair("two.ss0", "\"\"\"two.ss0\"\"\""));
        assert_eq!(listed(Some("one")), [&symbols[..], std::slice::from_ref(&one)].concat());
        assert_eq!(listed(None), [&symbols[..], &[one, two]].concat());
        let error = NamedFiles::parse(Path::new("game.toml"), "[game]\n", None).unwrap_err().to_string();
        assert_eq!(error, "game.toml:1:1: missing field `name`");
    }

    #[test]
    fn another_rom_is_refused_with_both_hashes() {
        let rom = RomHash::of(b"one");
        assert!(rom.check(b"one").is_ok());
        let message = rom.check(b"two").unwrap_err().to_string();
        assert!(message.contains(&rom.to_string()), "{message}");
        assert!(message.contains(&RomHash::of(b"two").to_string()), "{message}");
    }
}
