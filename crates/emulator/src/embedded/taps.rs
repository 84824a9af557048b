//! Picture and sound for whoever looks and listens, copied only while somebody does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_libmgba::Core;
use framewire_media::Image;
use framewire_protocol::OpError;
use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot, watch};

use crate::{Audio, Past, Picture, PictureOf, Sound, Video};

/// Shortest time between two copies of the picture, however fast frames go by.
const SPARING: Duration = Duration::from_millis(4);
/// Pieces of sound that wait for a listener: about a second.
const SOUNDS: usize = 64;

/// Where pictures and sound are taken.
#[derive(Debug)]
pub(super) struct Taps {
    video: watch::Sender<Option<Arc<Picture>>>,
    audio: broadcast::Sender<Arc<Sound>>,
    /// Pictures of frames that are still to come.
    awaited: Mutex<Vec<Awaited>>,
}

/// Somebody waits for the picture of a frame.
#[derive(Debug)]
struct Awaited {
    frame: u32,
    taker: oneshot::Sender<Result<Arc<Picture>, Past>>,
}

impl Taps {
    pub fn new() -> Taps {
        Taps {
            video: watch::Sender::new(None),
            audio: broadcast::Sender::new(SOUNDS),
            awaited: Mutex::default(),
        }
    }

    pub fn video(&self) -> Video {
        Video::new(self.video.subscribe())
    }

    pub fn picture_of(&self, frame: u32) -> PictureOf {
        let (taker, picture) = oneshot::channel();
        self.awaited.lock().push(Awaited { frame, taker });
        PictureOf::new(picture)
    }

    pub fn audio(&self) -> Audio {
        Audio::new(self.audio.subscribe())
    }
}

/// The core's end of the taps.
#[derive(Debug)]
pub(super) struct Media {
    taps: Arc<Taps>,
    /// When the picture was copied last, and behind how many frames.
    copied: Option<(Instant, u64)>,
    /// Whether somebody listened at the last frame.
    heard: bool,
}

impl Media {
    pub fn new(taps: Arc<Taps>) -> Media {
        Media { taps, copied: None, heard: false }
    }

    /// Gives away what the frame that was just run shows and plays; `ticks` frames were run so far.
    pub fn look(&mut self, core: &mut Core, ticks: u64) {
        self.hand_over(core, ticks);
        if self.taps.video.receiver_count() > 0 {
            let now = Instant::now();
            if self.copied.is_none_or(|(copied, _)| now - copied >= SPARING) {
                self.copy(core, ticks, now);
            }
        }
        if self.heard || self.taps.audio.receiver_count() > 0 {
            self.listen(core);
        }
    }

    /// Gives away the picture as it is, unless that was done or nobody looks.
    pub fn settle(&mut self, core: &mut Core, ticks: u64) {
        if self.copied.is_none_or(|(_, copied)| copied != ticks) {
            self.show(core, ticks);
        }
    }

    /// Gives away the picture as it is, if somebody looks.
    pub fn show(&mut self, core: &mut Core, ticks: u64) {
        self.hand_over(core, ticks);
        if self.taps.video.receiver_count() > 0 {
            self.copy(core, ticks, Instant::now());
        }
    }

    fn copy(&mut self, core: &mut Core, ticks: u64, now: Instant) {
        self.copied = Some((now, ticks));
        self.taps.video.send_replace(Some(Arc::new(picture(core, ticks))));
    }

    /// Gives the picture to those who wait for this frame, and tells those whose frame is past.
    fn hand_over(&self, core: &Core, ticks: u64) {
        let mut awaited = self.taps.awaited.lock();
        if awaited.is_empty() {
            return;
        }
        let now = core.frame_counter();
        let shown =
            awaited.iter().any(|waiting| waiting.frame == now).then(|| Arc::new(picture(core, ticks)));
        for Awaited { frame, taker } in awaited.extract_if(.., |awaited| awaited.frame <= now) {
            // Nobody may wait any more.
            let _ = taker.send(shown.clone().filter(|_| frame == now).ok_or(Past(now)));
        }
        awaited.retain(|awaited| !awaited.taker.is_closed());
    }

    fn listen(&mut self, core: &mut Core) {
        let fresh = !std::mem::replace(&mut self.heard, self.taps.audio.receiver_count() > 0);
        let samples = core.read_samples();
        // Behind a silence there is sound from long ago.
        if fresh || !self.heard || samples.is_empty() {
            return;
        }
        let sound = Sound { frame: core.frame_counter(), rate: core.sample_rate(), samples };
        let _ = self.taps.audio.send(Arc::new(sound));
    }
}

/// The picture now as a PNG file.
pub(super) fn png(core: &Core) -> Result<Vec<u8>, OpError> {
    let Picture { width, height, pixels, .. } = picture(core, 0);
    let image = Image::new(width, height, &pixels).map_err(|error| OpError::failed(error.to_string()))?;
    Ok(framewire_media::png::encode(image))
}

fn picture(core: &Core, ticks: u64) -> Picture {
    let shown = core.frame();
    Picture {
        frame: core.frame_counter(),
        ticks,
        width: shown.width,
        height: shown.height,
        pixels: shown.to_rgb(),
    }
}
