//! Picture and sound as they are made.

use std::sync::Arc;

use tokio::sync::{broadcast, oneshot, watch};

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The emulator's frame counter after its frame.
    pub frame: u32,
    /// Frames run since the emulator started. Resets and states do not change this.
    pub ticks: u64,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// The rows from the top, each pixel red, green, blue.
    pub pixels: Vec<u8>,
}

/// Sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sound {
    /// The emulator's frame counter after its frame.
    pub frame: u32,
    /// Pairs of samples a second.
    pub rate: u32,
    /// Left and right in turn.
    pub samples: Vec<i16>,
}

/// Receives the newest picture. An emulator copies pictures only while a receiver exists.
#[derive(Debug)]
pub struct Video(watch::Receiver<Option<Arc<Picture>>>);

impl Video {
    #[cfg(feature = "embedded")]
    pub(crate) fn new(receiver: watch::Receiver<Option<Arc<Picture>>>) -> Video {
        Video(receiver)
    }

    /// The newest picture that was not taken yet. Older ones are skipped. The first one is available at once, even if the
    /// emulator is paused. `None` when the emulator is gone.
    pub async fn next(&mut self) -> Option<Arc<Picture>> {
        loop {
            self.0.changed().await.ok()?;
            if let Some(picture) = self.0.borrow_and_update().clone() {
                return Some(picture);
            }
        }
    }
}

/// Receives the picture of one frame.
#[derive(Debug)]
pub struct PictureOf(oneshot::Receiver<Result<Arc<Picture>, Past>>);

/// The frame has passed; the emulator is at this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past(pub u32);

impl PictureOf {
    #[cfg(feature = "embedded")]
    pub(crate) fn new(receiver: oneshot::Receiver<Result<Arc<Picture>, Past>>) -> PictureOf {
        PictureOf(receiver)
    }

    /// The picture, once it is drawn. `None` when the emulator is gone.
    pub async fn taken(self) -> Option<Result<Arc<Picture>, Past>> {
        self.0.await.ok()
    }
}

/// Receives the sound of each frame. An emulator keeps sound only while a receiver exists.
#[derive(Debug)]
pub struct Audio(broadcast::Receiver<Arc<Sound>>);

impl Audio {
    #[cfg(feature = "embedded")]
    pub(crate) fn new(receiver: broadcast::Receiver<Arc<Sound>>) -> Audio {
        Audio(receiver)
    }

    /// The next sound. Sound that was not taken in time is skipped. `None` when the emulator is gone.
    pub async fn next(&mut self) -> Option<Arc<Sound>> {
        loop {
            match self.0.recv().await {
                Ok(sound) => return Some(sound),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
