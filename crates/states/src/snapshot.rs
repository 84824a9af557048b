use serde::{Deserialize, Serialize};

use crate::error::StateError;
use crate::png::{self, Chunk};
use crate::state::State;

/// The keyword of the PNG's text chunk that holds an [`About`].
const KEYWORD: &str = "framewire-snapshot";

/// The kinds of the chunks that the picture needs.
const PICTURE: [&[u8; 4]; 4] = [b"IHDR", b"PLTE", b"IDAT", b"IEND"];

/// What a snapshot contains in addition to the state: its game, when it was made, and a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The game's title.
    pub title: String,
    /// The game's code, as the emulator gave it.
    pub code: String,
    /// The CRC-32 of the ROM.
    pub checksum: u32,
    /// The emulator's frame counter when the state was saved.
    pub frame: u32,
    /// When the snapshot was made, as RFC 3339 in UTC.
    pub time: String,
    /// A note from the person or program that made the snapshot.
    pub note: String,
}

/// A savestate with its picture and its [`About`]: one PNG file, which mGBA loads as a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    file: Vec<u8>,
    about: About,
}

impl Snapshot {
    /// Makes a snapshot from a state that was saved with its picture.
    ///
    /// # Errors
    /// [`StateError::Format`] if `state` is not a state with a picture.
    pub fn new(state: &[u8], about: About) -> Result<Snapshot, StateError> {
        if !state.starts_with(png::SIGNATURE) {
            return Err(StateError::Format("it has no picture".to_owned()));
        }
        State::read(state)?;
        let mut file = png::SIGNATURE.to_vec();
        for (number, chunk) in png::chunks(state)?.enumerate() {
            let chunk = chunk?;
            if png::text_of(&chunk, KEYWORD).is_none() {
                file.extend(chunk.whole);
            }
            // The text comes early, so that listing snapshots does not read whole files. The PNG format requires that
            // the first chunk is the picture's size, so the text comes second.
            if number == 0 {
                file.extend(png::text_chunk(KEYWORD, &serde_json::to_string(&about).unwrap_or_default()));
            }
        }
        Ok(Snapshot { file, about })
    }

    /// Reads a snapshot's file.
    ///
    /// # Errors
    /// [`StateError::Format`].
    pub fn read(file: Vec<u8>) -> Result<Snapshot, StateError> {
        let about = Snapshot::about_in(&file)?;
        State::read(&file)?;
        Ok(Snapshot { file, about })
    }

    /// Reads the [`About`] from the beginning of a snapshot's file.
    ///
    /// # Errors
    /// [`StateError::Format`].
    pub fn about_in(head: &[u8]) -> Result<About, StateError> {
        let text = png::chunks(head)?.map_while(Result::ok).find_map(|chunk| png::text_of(&chunk, KEYWORD));
        let text =
            text.ok_or_else(|| StateError::Format(format!("the text chunk {KEYWORD:?} is missing")))?;
        serde_json::from_slice(text).map_err(|error| {
            StateError::Format(format!("the text chunk {KEYWORD:?} cannot be read: {error}"))
        })
    }

    /// The game of the snapshot, when it was made, and its note.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The whole file, which is also a state for mGBA.
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    /// Converts the snapshot into the bytes of its file.
    pub fn into_file(self) -> Vec<u8> {
        self.file
    }

    /// The same snapshot with another note.
    ///
    /// # Errors
    /// [`StateError::Format`]. This does not happen, because the file was already checked when the snapshot was made.
    pub fn with_note(&self, note: String) -> Result<Snapshot, StateError> {
        Snapshot::new(&self.file, About { note, ..self.about.clone() })
    }

    /// The picture alone, as a PNG file.
    ///
    /// # Errors
    /// As for [`with_note`](Self::with_note).
    pub fn picture(&self) -> Result<Vec<u8>, StateError> {
        let mut picture = png::SIGNATURE.to_vec();
        for chunk in png::chunks(&self.file)? {
            let Chunk { kind, whole, .. } = chunk?;
            if PICTURE.contains(&&kind) {
                picture.extend(whole);
            }
        }
        Ok(picture)
    }

    /// The parts of the state.
    ///
    /// # Errors
    /// As for [`with_note`](Self::with_note).
    pub fn state(&self) -> Result<State<'_>, StateError> {
        State::read(&self.file)
    }
}
