//! A picture, encoded once for all viewers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use framewire_emulator::Picture;
use framewire_media::{Checked, Encoder, Image, ImageError, Stamp, jpeg, png};
use parking_lot::Mutex;

/// A picture, and its encodings for viewers. Each encoding is made when the first viewer needs it; others get the same
/// bytes.
pub(crate) struct SharedPicture {
    picture: Arc<Picture>,
    checked: Checked<Pixels>,
    /// The number of the picture. The pictures of an emulator are numbered in order.
    number: u64,
    encoder: Arc<Mutex<Encoder>>,
    /// The key picture: see [`SharedPicture::key`].
    key: OnceLock<Bytes>,
    /// The differences from earlier pictures, each with the number of the earlier picture.
    deltas: Mutex<Vec<(u64, Bytes)>>,
    png: OnceLock<Bytes>,
    jpeg: OnceLock<Bytes>,
}

struct Pixels(Arc<Picture>);

impl AsRef<[u8]> for Pixels {
    fn as_ref(&self) -> &[u8] {
        &self.0.pixels
    }
}

impl SharedPicture {
    /// How many pictures there were between an earlier picture and this one.
    pub(crate) fn skipped_since(&self, before: &SharedPicture) -> u64 {
        self.number.saturating_sub(before.number + 1)
    }

    /// Creates a shared picture. All pictures of an emulator use the same encoder.
    pub(crate) fn new(
        picture: Arc<Picture>,
        number: u64,
        encoder: Arc<Mutex<Encoder>>,
    ) -> Result<SharedPicture, ImageError> {
        let checked = Checked::new(picture.width, picture.height, Pixels(picture.clone()))?;
        let (key, deltas, png, jpeg) = Default::default();
        Ok(SharedPicture { picture, checked, number, encoder, key, deltas, png, jpeg })
    }

    /// The whole picture as a message of the stream of pictures: a *key picture* (docs/video.md).
    pub(crate) fn key(&self) -> Bytes {
        self.key.get_or_init(|| self.encoder.lock().key(self.image(), self.stamp()).into()).clone()
    }

    /// The difference from `before`, as a message.
    pub(crate) fn delta(&self, before: &SharedPicture) -> Bytes {
        let mut deltas = self.deltas.lock();
        if let Some((_, delta)) = deltas.iter().find(|(number, _)| *number == before.number) {
            return delta.clone();
        }
        let base = before.stamp().tick;
        let delta = self.encoder.lock().delta(before.image(), base, self.image(), self.stamp());
        let delta = Bytes::from(delta);
        deltas.push((before.number, delta.clone()));
        delta
    }

    pub(crate) fn png(&self) -> Bytes {
        self.png.get_or_init(|| png::encode(self.image()).into()).clone()
    }

    pub(crate) fn jpeg(&self) -> Bytes {
        self.jpeg.get_or_init(|| jpeg::encode(self.image()).into()).clone()
    }

    pub(crate) fn looks_like(&self, other: &SharedPicture) -> bool {
        self.image() == other.image()
    }

    fn image(&self) -> Image<'_> {
        self.checked.image()
    }

    fn stamp(&self) -> Stamp {
        // The counters of the stream have 32 bits and wrap around.
        Stamp { frame: self.picture.frame, tick: self.picture.ticks as u32 }
    }
}
