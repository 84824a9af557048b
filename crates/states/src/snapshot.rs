use serde::{Deserialize, Serialize};

use crate::error::StateError;
use crate::png::{self, Chunk};
use crate::state::State;

/// The keyword of the PNG's text chunk that holds an [`About`].
const KEYWORD: &str = "framewire-snapshot";

/// The chunks that make the picture.
const PICTURE: [&[u8; 4]; 4] = [b"IHDR", b"PLTE", b"IDAT", b"IEND"];

/// The game of a snapshot, and when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The game's title.
    pub title: String,
    /// The game's code, as the emulator gave it.
    pub code: String,
    /// The CRC-32 of the ROM.
    pub checksum: u32,
    /// The frame counter.
    pub frame: u32,
    /// When it was made, as RFC 3339 in UTC.
    pub time: String,
    /// A note of the person or program that made it.
    pub note: String,
}

/// A savestate with its picture and its [`About`]: one PNG file, which mGBA loads as a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    file: Vec<u8>,
    about: About,
}

impl Snapshot {
    /// A snapshot of a state that was saved with its picture.
    ///
    /// # Errors
    ///
    /// [`StateError::Format`] if it is not such a state.
    pub fn new(state: &[u8], about: About) -> Result<Snapshot, StateError> {
        if !state.starts_with(png::SIGNATURE) {
            return Err(StateError::Format("there is no picture around it".to_owned()));
        }
        State::read(state)?;
        let mut file = png::SIGNATURE.to_vec();
        for (number, chunk) in png::chunks(state)?.enumerate() {
            let chunk = chunk?;
            if png::text_of(&chunk, KEYWORD).is_none() {
                file.extend(chunk.whole);
            }
            // Behind the first chunk, which must be the picture's size, so that a list need not read whole files.
            if number == 0 {
                file.extend(png::text_chunk(KEYWORD, &serde_json::to_string(&about).unwrap_or_default()));
            }
        }
        Ok(Snapshot { file, about })
    }

    /// Reads a snapshot's file.
    ///
    /// # Errors
    ///
    /// [`StateError::Format`].
    pub fn read(file: Vec<u8>) -> Result<Snapshot, StateError> {
        let about = Snapshot::about_in(&file)?;
        State::read(&file)?;
        Ok(Snapshot { file, about })
    }

    /// Reads its game and time from the beginning of its file.
    ///
    /// # Errors
    ///
    /// [`StateError::Format`].
    pub fn about_in(head: &[u8]) -> Result<About, StateError> {
        let text = png::chunks(head)?.map_while(Result::ok).find_map(|chunk| png::text_of(&chunk, KEYWORD));
        let text =
            text.ok_or_else(|| StateError::Format(format!("the text chunk {KEYWORD:?} is missing")))?;
        serde_json::from_slice(text).map_err(|error| {
            StateError::Format(format!("the text chunk {KEYWORD:?} cannot be read: {error}"))
        })
    }

    /// Its game, and when it was made.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The whole file, which is also a state for mGBA.
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    /// The whole file, for good.
    pub fn into_file(self) -> Vec<u8> {
        self.file
    }

    /// The same with another note.
    ///
    /// # Errors
    ///
    /// None that [`read`](Self::read) did not find.
    pub fn with_note(&self, note: String) -> Result<Snapshot, StateError> {
        Snapshot::new(&self.file, About { note, ..self.about.clone() })
    }

    /// The picture alone, as a PNG file.
    ///
    /// # Errors
    ///
    /// None that [`read`](Self::read) did not find.
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

    /// The state taken apart.
    ///
    /// # Errors
    ///
    /// None that [`read`](Self::read) did not find.
    pub fn state(&self) -> Result<State<'_>, StateError> {
        State::read(&self.file)
    }
}
