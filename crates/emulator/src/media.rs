//! Receivers for an emulator's pictures and sound.

use std::sync::Arc;

use tokio::sync::{broadcast, oneshot, watch};

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The emulator's frame counter after the frame of this picture.
    pub frame: u32,
    /// The number of frames that have run since the emulator started. Resets and loaded states do not change this.
    pub ticks: u64,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// The rows from top to bottom. Each pixel has three bytes: red, green, blue.
    pub pixels: Vec<u8>,
}

/// The sound of one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sound {
    /// The emulator's frame counter after the frame of this sound.
    pub frame: u32,
    /// The number of pairs of samples per second.
    pub rate: u32,
    /// Pairs of samples: left, right.
    pub samples: Vec<i16>,
}

/// Receives the newest picture. An emulator copies pictures only while a receiver exists.
#[derive(Debug)]
pub struct Video(pub(crate) watch::Receiver<Option<Arc<Picture>>>);

impl Video {
    /// Waits until the emulator sends a picture. Returns the newest picture, and skips older ones. The emulator can
    /// send the same picture again, for example when there is a new receiver. The first picture is available at once,
    /// even if the emulator is paused. Returns `None` when the emulator is gone.
    pub async fn next(&mut self) -> Option<Arc<Picture>> {
        loop {
            self.0.changed().await.ok()?;
            if let Some(picture) = self.0.borrow_and_update().clone() {
                return Some(picture);
            }
        }
    }
}

/// The picture of one frame, which may not have run yet.
#[derive(Debug)]
pub struct PendingPicture(pub(crate) oneshot::Receiver<Result<Arc<Picture>, FramePassed>>);

/// The requested frame has passed. The value is the emulator's current frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePassed(pub u32);

impl PendingPicture {
    /// Waits until the picture is drawn. Returns [`FramePassed`] if the frame has passed, and `None` when the emulator
    /// is gone.
    pub async fn picture(self) -> Option<Result<Arc<Picture>, FramePassed>> {
        self.0.await.ok()
    }
}

/// Receives the sound of each frame. An emulator keeps sound only while a receiver exists.
#[derive(Debug)]
pub struct Audio {
    pub(crate) receiver: broadcast::Receiver<Arc<Sound>>,
    pub(crate) skipped: u64,
}

impl Audio {
    /// Waits for the sound of the next frame. Sound that was not read in time is skipped. Returns `None` when the
    /// emulator is gone.
    pub async fn next(&mut self) -> Option<Arc<Sound>> {
        loop {
            match self.receiver.recv().await {
                Ok(sound) => return Some(sound),
                Err(broadcast::error::RecvError::Lagged(frames)) => self.skipped += frames,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// The number of frames whose sound [`next`](Self::next) has skipped since the last call of this function.
    pub fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }
}
