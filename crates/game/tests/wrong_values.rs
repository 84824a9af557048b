//! For every value of a game file, writes values of every wrong type in its place, leaves its key out, and misspells it.

use std::fs;
use std::path::Path;

use framewire_game::{GameFile, GameFileError};
use toml::{Table, Value};

/// A file with every key.
const COMPLETE: &str = r#"
[game]
name = "Test"
rom = "game.gba"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
symbols = ["map.toml"]

[scenario.one]
start = { inputs = ".:60 Start:2" }
actions = [".", "Left", "Right+A"]
frame_skip = 4
sticky = 0.25
max_noops = 30
max_frames = 3600
reward = "delta(score) * 0.01"
terminated = "score > 100"
truncated = "score > 200"
info = { points = "score" }

[scenario.one.observe]
screen = { crop = [0, 0, 8, 8], size = [84, 84], grey = true, stack = 4, max = 2 }
memory = ["score", "bytes[0x02000000, 8]"]

[scenario.two]
start = { state = "start.ss1" }
actions = "buttons"
observe = { screen = { grey = true }, memory = ["score"] }
"#;

/// A key of a table, or an index of a list.
#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// The places of all values, from the outside to the inside.
fn places(value: &Value, place: &[Step], all: &mut Vec<Vec<Step>>) {
    let inner: Vec<(Step, &Value)> = match value {
        Value::Table(table) => table.iter().map(|(key, value)| (Step::Key(key.clone()), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, value)| (Step::Index(at), value)).collect(),
        _ => Vec::new(),
    };
    for (step, value) in inner {
        let place = [place, &[step]].concat();
        all.push(place.clone());
        places(value, &place, all);
    }
}

fn at<'a>(value: &'a mut Value, place: &[Step]) -> &'a mut Value {
    place.iter().fold(value, |value, step| match step {
        Step::Key(key) => &mut value[key],
        Step::Index(at) => &mut value[*at],
    })
}

/// Rust's types in the errors of the parser, which must be replaced with words that people know.
const RUST: [&str; 7] = ["u32", "f64", "a sequence", "a map", "struct ", "path string", "tuple"];

struct Folder(tempfile::TempDir);

impl Folder {
    fn read(&self, file: &Value) -> (String, Result<GameFile, GameFileError>) {
        let text = toml::to_string(file).unwrap();
        let read = GameFile::parse(&self.0.path().join("game.toml"), &text);
        (text, read)
    }

    /// Reads a file that must be refused. The error must name a line that contains this word or begins with the wrong
    /// key `"?"`.
    fn assert_refused(&self, file: &Value, word: &str) {
        let (text, read) = self.read(file);
        let Err(GameFileError::Content { line, column, message, .. }) = read else {
            panic!("{read:?}\n{text}")
        };
        let found = text.lines().nth(line - 1).unwrap_or_default();
        assert!(
            found.contains(word) || found.starts_with("\"?\""),
            "{line}:{column}: {message}\nThe error is not about {word}:\n{text}"
        );
        assert!(column <= found.chars().count() + 1, "{line}:{column}: {message}\n{text}");
        let expected = message.split("expected ").nth(1).unwrap_or_default();
        assert!(!RUST.iter().any(|word| expected.contains(word)), "{message}\n{text}");
    }
}

fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let map = "[[field]]\nname = \"score\"\naddress = 0x02000044\ntype = \"u32\"\n";
    fs::write(folder.path().join("map.toml"), map).unwrap();
    Folder(folder)
}

fn complete() -> (Value, Vec<Vec<Step>>) {
    let file = Value::Table(COMPLETE.parse::<Table>().unwrap());
    let mut all = Vec::new();
    places(&file, &[], &mut all);
    (file, all)
}

/// The last key of a place.
fn key_of(place: &[Step]) -> &str {
    place
        .iter()
        .rev()
        .find_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        })
        .unwrap()
}

#[test]
fn a_value_of_a_wrong_type_is_refused_with_its_line() {
    let folder = folder();
    let (file, places) = complete();
    assert!(folder.read(&file).1.is_ok());
    let date = "1979-05-27".parse::<toml::value::Datetime>().unwrap();
    let values = [
        Value::Boolean(true),
        Value::Integer(-7),
        Value::Float(f64::NAN),
        Value::String("?".to_owned()),
        Value::Datetime(date),
        Value::Array(vec![Value::Array(Vec::new())]),
        Value::Table(Table::from_iter([("?".to_owned(), Value::Integer(1))])),
    ];
    for place in places {
        for value in &values {
            let mut wrong = file.clone();
            let old = at(&mut wrong, &place);
            // Names and paths can be any text.
            let is_free = ["name", "rom", "state"].contains(&key_of(&place)) && value.is_str();
            if !is_free && *old != *value {
                *old = value.clone();
                folder.assert_refused(&wrong, key_of(&place));
            }
        }
    }
}

#[test]
fn a_misspelled_key_is_refused_with_its_line_and_a_missing_one_if_it_is_required() {
    let folder = folder();
    let (file, places) = complete();
    for place in places {
        let Some((Step::Key(key), outer)) = place.split_last() else { continue };
        let mut without = file.clone();
        let value = at(&mut without, outer).as_table_mut().unwrap().remove(key).unwrap();
        let is_required =
            ["game", "name", "symbols", "actions", "observe", "inputs", "state"].contains(&key.as_str());
        let read = folder.read(&without).1;
        assert_eq!(
            matches!(read, Err(GameFileError::Content { .. })),
            is_required,
            "without {key}: {read:?}"
        );
        // These are names that the file gives.
        if !["one", "two", "points"].contains(&key.as_str()) {
            let misspelled = format!("{key}_");
            at(&mut without, outer).as_table_mut().unwrap().insert(misspelled.clone(), value);
            folder.assert_refused(&without, &misspelled);
        }
    }
}

#[test]
fn a_file_that_is_cut_or_has_a_wrong_character_does_not_panic() {
    let folder = folder();
    let path = Path::new(folder.0.path()).join("game.toml");
    for at in 0..COMPLETE.len() {
        let (before, after) = COMPLETE.split_at(at);
        for text in [before.to_owned(), format!("{before}\u{0}{after}"), format!("{before}\"ß{after}")] {
            if let Err(GameFileError::Content { message, .. }) = GameFile::parse(&path, &text) {
                assert!(!message.is_empty(), "{text}");
            }
        }
    }
}
