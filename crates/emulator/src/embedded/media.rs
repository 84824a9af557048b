//! Sends pictures and sound to receivers. Pictures and sound are copied only while there are receivers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_libmgba::Core;
use framewire_media::Image;
use framewire_protocol::OpError;
use parking_lot::Mutex;
use tokio::sync::{broadcast, oneshot, watch};

use crate::{Audio, FramePassed, PendingPicture, Picture, Sound, Video};

/// The shortest time between two copies of the picture, even if the game runs faster.
const MIN_INTERVAL: Duration = Duration::from_millis(4);
/// The number of frames whose sound is kept for a slow receiver: about a second.
const SOUND_QUEUE: usize = 64;

/// The senders of pictures and sound. The emulator creates receivers from them.
#[derive(Debug)]
pub(super) struct MediaOutputs {
    video: watch::Sender<Option<Arc<Picture>>>,
    audio: broadcast::Sender<Arc<Sound>>,
    /// The open requests, each for the picture of a certain frame.
    awaited: Mutex<Vec<Awaited>>,
}

/// A request for the picture of one frame.
#[derive(Debug)]
struct Awaited {
    frame: u32,
    taker: oneshot::Sender<Result<Arc<Picture>, FramePassed>>,
}

impl MediaOutputs {
    pub fn new() -> MediaOutputs {
        MediaOutputs {
            video: watch::Sender::new(None),
            audio: broadcast::Sender::new(SOUND_QUEUE),
            awaited: Mutex::default(),
        }
    }

    pub fn video(&self) -> Video {
        Video(self.video.subscribe())
    }

    pub fn picture_of(&self, frame: u32) -> PendingPicture {
        let (taker, picture) = oneshot::channel();
        self.awaited.lock().push(Awaited { frame, taker });
        PendingPicture(picture)
    }

    pub fn audio(&self) -> Audio {
        Audio { receiver: self.audio.subscribe(), skipped: 0 }
    }
}

/// Copies the core's pictures and sound to the outputs.
#[derive(Debug)]
pub(super) struct Media {
    outputs: Arc<MediaOutputs>,
    /// When the picture was last copied, and how many frames had run by then.
    copied: Option<(Instant, u64)>,
    /// Whether there was a receiver of sound after the last frame.
    heard: bool,
}

impl Media {
    pub fn new(outputs: Arc<MediaOutputs>) -> Media {
        Media { outputs, copied: None, heard: false }
    }

    /// Whether a receiver needs the picture of the next frame.
    pub fn need_picture(&self) -> bool {
        let due = || self.copied.is_none_or(|(copied, _)| copied.elapsed() >= MIN_INTERVAL);
        (self.outputs.video.receiver_count() > 0 && due()) || !self.outputs.awaited.lock().is_empty()
    }

    /// Sends the sound of the last frame, and its picture if it was `drawn`. `ticks` frames have run so far.
    pub fn after_frame(&mut self, core: &mut Core, ticks: u64, drawn: bool) {
        self.answer_requests(core, ticks, drawn);
        if drawn && self.outputs.video.receiver_count() > 0 {
            let now = Instant::now();
            if self.copied.is_none_or(|(copied, _)| now - copied >= MIN_INTERVAL) {
                self.copy(core, ticks, now);
            }
        }
        if self.heard || self.outputs.audio.receiver_count() > 0 {
            self.listen(core);
        }
    }

    /// Sends the current picture, unless it was already sent or there is no receiver.
    pub fn settle(&mut self, core: &mut Core, ticks: u64) {
        if self.copied.is_none_or(|(_, copied)| copied != ticks) {
            self.show(core, ticks);
        }
    }

    /// Sends the current picture, if there is a receiver.
    pub fn show(&mut self, core: &mut Core, ticks: u64) {
        self.answer_requests(core, ticks, true);
        if self.outputs.video.receiver_count() > 0 {
            self.copy(core, ticks, Instant::now());
        }
    }

    fn copy(&mut self, core: &mut Core, ticks: u64, now: Instant) {
        self.copied = Some((now, ticks));
        self.outputs.video.send_replace(Some(Arc::new(picture(core, ticks))));
    }

    /// Answers the requests for the picture of the current frame, and refuses the requests for frames that have passed.
    fn answer_requests(&self, core: &Core, ticks: u64, drawn: bool) {
        let mut awaited = self.outputs.awaited.lock();
        if awaited.is_empty() {
            return;
        }
        let now = core.frame_counter();
        let asked = drawn && awaited.iter().any(|waiting| waiting.frame == now);
        let shown = if asked { Some(Arc::new(picture(core, ticks))) } else { None };
        // If the current frame was not drawn, there is no picture of it. A request for this frame is refused only after
        // the next frame. Otherwise, the error would say that the frame has passed, and also that the emulator is still
        // at this frame.
        let is_over = |awaited: &mut Awaited| awaited.frame < now || drawn && awaited.frame == now;
        for Awaited { frame, taker } in awaited.extract_if(.., is_over) {
            let picture = if frame == now { shown.clone() } else { None };
            // The receiver may be gone.
            let _ = taker.send(picture.ok_or(FramePassed(now)));
        }
        awaited.retain(|awaited| !awaited.taker.is_closed());
    }

    fn listen(&mut self, core: &mut Core) {
        let fresh = !std::mem::replace(&mut self.heard, self.outputs.audio.receiver_count() > 0);
        let samples = core.read_samples();
        // After a time without receivers, the first samples are from earlier frames. Do not send them.
        if fresh || !self.heard || samples.is_empty() {
            return;
        }
        let sound = Sound { frame: core.frame_counter(), rate: core.sample_rate(), samples };
        let _ = self.outputs.audio.send(Arc::new(sound));
    }
}

/// The current picture as a PNG file.
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
