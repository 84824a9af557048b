use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use framewire_emulator::Picture;
use framewire_media::{Checked, Encoder, Image, ImageError, Stamp, jpeg, png};

/// A picture, with all that was made of it. Each thing is made when the first viewer needs it, and those who are in step
/// with that one get the same bytes.
pub(crate) struct Shot {
    picture: Arc<Picture>,
    checked: Checked<Pixels>,
    /// Tells it from all others of its studio.
    number: u64,
    encoder: Arc<Mutex<Encoder>>,
    key: OnceLock<Bytes>,
    /// Deltas, each with the number of the shot that it changes.
    deltas: Mutex<Vec<(u64, Bytes)>>,
    png: OnceLock<Bytes>,
    jpeg: OnceLock<Bytes>,
}

/// The pixels of a picture that is shared.
struct Pixels(Arc<Picture>);

impl AsRef<[u8]> for Pixels {
    fn as_ref(&self) -> &[u8] {
        &self.0.pixels
    }
}

impl Shot {
    /// How many came between the other, an earlier one, and this.
    pub(crate) fn skipped_since(&self, before: &Shot) -> u64 {
        self.number.saturating_sub(before.number + 1)
    }

    /// A shot with what its studio's shots have in common.
    pub(crate) fn new(
        picture: Arc<Picture>,
        number: u64,
        encoder: Arc<Mutex<Encoder>>,
    ) -> Result<Shot, ImageError> {
        let checked = Checked::new(picture.width, picture.height, Pixels(picture.clone()))?;
        let (key, deltas, png, jpeg) = Default::default();
        Ok(Shot { picture, checked, number, encoder, key, deltas, png, jpeg })
    }

    /// All of it, as a message.
    pub(crate) fn key(&self) -> Bytes {
        self.key.get_or_init(|| self.encoder().key(self.image(), self.stamp()).into()).clone()
    }

    /// What makes it of `before`, as a message.
    pub(crate) fn delta(&self, before: &Shot) -> Bytes {
        let mut deltas = self.deltas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, delta)) = deltas.iter().find(|(number, _)| *number == before.number) {
            return delta.clone();
        }
        let base = before.stamp().tick;
        let delta = self.encoder().delta(before.image(), base, self.image(), self.stamp());
        let delta = Bytes::from(delta);
        deltas.push((before.number, delta.clone()));
        delta
    }

    /// The picture as a PNG.
    pub(crate) fn png(&self) -> Bytes {
        self.png.get_or_init(|| png::encode(self.image()).into()).clone()
    }

    /// The picture as a JPEG.
    pub(crate) fn jpeg(&self) -> Bytes {
        self.jpeg.get_or_init(|| jpeg::encode(self.image()).into()).clone()
    }

    /// Whether it shows the same as `other`.
    pub(crate) fn looks_like(&self, other: &Shot) -> bool {
        self.image() == other.image()
    }

    fn image(&self) -> Image<'_> {
        self.checked.image()
    }

    fn stamp(&self) -> Stamp {
        // The stream counts with 32 bits, round and round.
        Stamp { frame: self.picture.frame, tick: self.picture.ticks as u32 }
    }

    fn encoder(&self) -> MutexGuard<'_, Encoder> {
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
