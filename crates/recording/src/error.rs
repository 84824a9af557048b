use std::fmt;

use framewire_emulator::EmulatorError;
use framewire_protocol::OpError;
use framewire_states::FolderError;

/// Why a file is no recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It begins otherwise.
    #[error("not a recording: it does not begin with `FRAMEWIRE RECORDING 1`")]
    Magic,
    /// It is one of another version.
    #[error("a recording of another version; this program reads version 1")]
    Version,
    /// Its head does not end.
    #[error("not a recording: the text at its beginning is not ended by an empty line")]
    Unended,
    /// Its head is no text.
    #[error("not a recording: the text at its beginning is not UTF-8")]
    NotText,
    /// A line of its head is missing or cannot be read.
    #[error("the line `{0} …` at the beginning of the recording is missing, or cannot be read")]
    Line(&'static str),
    /// Its start cannot be used, so that there is nothing to play.
    #[error(transparent)]
    Start(Damage),
    /// It is larger than any.
    #[error("{0} bytes; recordings of at most {limit} bytes are read", limit = crate::MAX_FILE)]
    TooLarge(u64),
}

/// Where a recording is damaged. What is before that is sound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Damage {
    /// The frame of the recording, counted from 1, whose keys or picture cannot be trusted; 0 is the state before the first.
    /// Keys of the frames before it can be.
    pub frame: u64,
    /// Where in the file its entry begins, in bytes.
    pub offset: usize,
    /// What is wrong there.
    pub what: Wrong,
}

/// What is wrong with an entry of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The file ends there.
    Cut,
    /// It has been changed, or something before it was taken out.
    Checksum,
    /// It is none that there is.
    Entry,
    /// There is more behind the end.
    More,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { frame, offset, what } = self;
        let what = match what {
            Wrong::Cut => "the file ends there",
            Wrong::Checksum => "it was changed there: a checksum does not hold",
            Wrong::Entry => "what is there is no part of a recording",
            Wrong::More => "there is more behind its end",
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

/// Why a recording could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The emulator did not do its part.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The file cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The file could not be completed, or could not get its name. It stays in the folder.
    #[error("{0}; what was recorded is kept, and becomes a recording at the next start")]
    Unfinished(std::sync::Arc<FolderError>),
    /// A recording is being made there already.
    #[error("{0} is being recorded already, as {1}; stop that first")]
    Recording(String, framewire_states::Name),
    /// None is being made there.
    #[error("{0} is not being recorded")]
    NotRecording(String),
}

impl From<OpError> for RecordError {
    fn from(error: OpError) -> RecordError {
        RecordError::Emulator(error.into())
    }
}
