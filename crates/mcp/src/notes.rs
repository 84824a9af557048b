//! Notes that agents write for later, in one file of JSON lines for each game.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::session::Session;
use crate::tools::ToolError;

/// The longest note, in bytes.
const MAX_NOTE: usize = 1024;
/// A file that has more bytes than this gets no further notes.
const MAX_FILE: u64 = 4 << 20;

/// How many notes a summary contains: the latest ones. To find out whether a repeated call has already
/// written its note, only these notes are searched.
pub(crate) const LATEST: usize = 12;
/// How many bytes at the end of the file are read. The latest notes take less: a note in JSON has up to 6 bytes for
/// each byte of its text, and the rest of its line is short.
const END: u64 = 256 << 10;

#[derive(Serialize, Deserialize)]
pub(crate) struct Note {
    /// The frame counter when the note was written.
    pub(crate) frame: u32,
    /// The recording that was being made at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recording: Option<String>,
    /// The idempotency key of the call, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    pub(crate) note: String,
}

/// Checks that a note can be kept.
pub(crate) fn check(session: &Session, note: &str) -> Result<(), ToolError> {
    if session.options.notes.is_none() {
        return Err(ToolError(
            "note: there is no folder for notes; leave note out, or start the server with --data DIR".into(),
        ));
    }
    if note.is_empty() || note.len() > MAX_NOTE {
        return Err(ToolError(format!("note has {} bytes; use 1 to {MAX_NOTE}", note.len())));
    }
    Ok(())
}

/// Appends a note to the file of the running game. Without a folder for notes, does nothing. `key` is the idempotency
/// key of the call.
pub(crate) async fn add(
    session: &Session,
    frame: u32,
    note: &str,
    key: Option<&str>,
) -> Result<(), ToolError> {
    let Some(path) = file(session).await? else { return Ok(()) };
    // A call that is repeated with its key has the same note again. The note must not be written twice, even if other
    // notes were written since.
    if key.is_some() && last(session, LATEST).await?.iter().any(|known| known.key.as_deref() == key) {
        return Ok(());
    }
    let recording = session.recording().await;
    let note = Note { frame, recording, key: key.map(str::to_owned), note: note.to_owned() };
    let written = || {
        let line = serde_json::to_string(&note)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        append(&path, line)
    };
    written().map_err(|error| {
        ToolError(format!(
            "the note cannot be written to {}: {error}; the frames were played",
            path.display()
        ))
    })
}

/// Appends a line to a file. If a crash has cut off the last line of the file, inserts a line break first.
fn append(path: &Path, mut line: String) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    let length = file.metadata()?.len();
    if length > MAX_FILE {
        return Err(io::Error::other("the file is full; move it away to begin a new one"));
    }
    line.push('\n');
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            line.insert(0, '\n');
        }
    }
    file.write_all(line.as_bytes())
}

/// The last notes about the running game, the oldest first. Empty if there is no file that can be read.
pub(crate) async fn last(session: &Session, count: usize) -> Result<Vec<Note>, ToolError> {
    let Some(path) = file(session).await? else { return Ok(Vec::new()) };
    let Ok(bytes) = end(&path) else { return Ok(Vec::new()) };
    let text = String::from_utf8_lossy(&bytes);
    // A crash, or the limit of `end`, may have cut off a line. Such a line is skipped.
    let notes: Vec<Note> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let skipped = notes.len().saturating_sub(count);
    Ok(notes.into_iter().skip(skipped).collect())
}

/// The last bytes of a file, at most [`END`].
fn end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The file for notes about the running game. `None` if there is no folder for notes.
async fn file(session: &Session) -> Result<Option<PathBuf>, ToolError> {
    let Some(folder) = &session.options.notes else { return Ok(None) };
    let state = session.call("emulatorState", json!({})).await?;
    let title = state["title"].as_str().unwrap_or_default();
    let checksum = state["checksum"].as_str().unwrap_or("unknown");
    let name: String = format!("{title}-{checksum}")
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
        .collect();
    Ok(Some(folder.join(format!("{name}.jsonl"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_after_a_line_that_was_cut_off_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.jsonl");
        append(&path, "one".to_owned()).unwrap();
        append(&path, "two".to_owned()).unwrap();
        std::fs::write(&path, "one\ntw").unwrap();
        append(&path, "three".to_owned()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntw\nthree\n");
    }

    #[test]
    fn only_the_end_of_a_large_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.jsonl");
        for (length, expected) in [(0, 5), (END - 5, END), (4 * END, END)] {
            File::create(&path).unwrap().set_len(length).unwrap();
            OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\nlast").unwrap();
            let bytes = end(&path).unwrap();
            assert_eq!((bytes.len() as u64, bytes.ends_with(b"\nlast")), (expected, true));
        }
    }
}
