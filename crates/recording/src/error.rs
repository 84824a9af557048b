//! Why a file is not a recording or is damaged, and why a recording could not be made.

use std::fmt;

use framewire_emulator::EmulatorError;
use framewire_protocol::OpError;
use framewire_states::FolderError;

/// Why a file is not a recording that can be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The file does not start like a recording.
    #[error("not a recording: it does not start with `FRAMEWIRE RECORDING 1`")]
    Magic,
    /// The recording has another version.
    #[error("a recording of another version; this program reads version 1")]
    Version,
    /// The head does not end.
    #[error("not a recording: the text at its start is not followed by an empty line")]
    Unended,
    /// The head is not text.
    #[error("not a recording: the text at its start is not UTF-8")]
    NotText,
    /// A line of the head is missing or cannot be read.
    #[error("the line `{0} …` at the start of the recording is missing or cannot be read")]
    Line(&'static str),
    /// The recording is damaged before its first frame, so that there is nothing to play.
    #[error(transparent)]
    Start(Damage),
    /// The file is too large.
    #[error("the file has {0} bytes; a recording may have at most {limit} bytes", limit = crate::MAX_FILE)]
    TooLarge(u64),
}

/// Where a recording is damaged. Everything before that place is valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Damage {
    /// The first damaged frame of the recording, counted from 1. 0 means the head or the state before the first frame.
    pub frame: u64,
    /// The offset of the damaged entry in the file, in bytes. For [`DamageKind::More`], the offset of the last entry.
    pub offset: usize,
    /// What is wrong with that entry.
    pub kind: DamageKind,
}

/// What is wrong with an entry of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// The file ends within or before the entry.
    Cut,
    /// The entry was changed, or an entry before it was removed.
    Checksum,
    /// The entry is not valid, or is not allowed at this place.
    Entry,
    /// There are bytes after the last entry.
    More,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { frame, offset, kind } = self;
        let what = match kind {
            DamageKind::Cut => "the file ends there",
            DamageKind::Checksum => "it was changed there: a checksum does not match",
            DamageKind::Entry => "there is something that is not part of a recording",
            DamageKind::More => "there are bytes after its end",
        };
        match frame {
            0 => write!(
                f,
                "the recording is damaged before its first frame, in its text or its state (byte {offset} of the file): {what}"
            ),
            _ => write!(f, "the recording is damaged at frame {frame} (byte {offset} of the file): {what}"),
        }
    }
}

/// Why a recording could not be started or completed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The emulator refused an operation, or did not answer.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The name is taken, or the file cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The file could not be completed, or could not get its name. It stays in the folder under its temporary name.
    #[error("{0}; the file stays in the folder, and Framewire completes the recording at the next start")]
    Unfinished(std::sync::Arc<FolderError>),
    /// The emulator is already being recorded.
    #[error("{0} is already being recorded, as {1}; stop that recording first")]
    Recording(String, framewire_states::Name),
    /// The emulator is not being recorded.
    #[error("{0} is not being recorded")]
    NotRecording(String),
}

impl From<OpError> for RecordError {
    fn from(error: OpError) -> RecordError {
        RecordError::Emulator(error.into())
    }
}
