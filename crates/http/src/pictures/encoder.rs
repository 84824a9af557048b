//! Reads the pictures of each emulator that has viewers, and limits how many viewers there are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use framewire_emulator::{Picture, Video};
use framewire_media::Encoder;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::warn;

use super::picture::SharedPicture;
use super::screenshots::Screenshots;
use crate::failure::Failure;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::transport::streams::OpenStream;

/// The newest picture of an emulator. A viewer that is slow skips pictures. The channel closes when the emulator is
/// gone.
pub(crate) type Newest = watch::Receiver<Option<Arc<SharedPicture>>>;

/// Reads the pictures of each emulator that has viewers. Each picture is encoded only once for all of these viewers.
pub(crate) struct PictureEncoders {
    /// How long an emulator that sends pictures only on request may take for the first one.
    time_limit: Duration,
    /// The newest pictures, by the emulator's name.
    open: Mutex<HashMap<String, watch::Sender<Option<Arc<SharedPicture>>>>>,
}

impl PictureEncoders {
    pub(crate) fn new(time_limit: Duration) -> PictureEncoders {
        PictureEncoders { time_limit, open: Mutex::default() }
    }

    /// The pictures of an emulator. If there is already a picture, it counts as new.
    pub(crate) async fn watch(self: &Arc<Self>, served: &Arc<Served>) -> Result<Newest, Problem> {
        if let Some(sender) = self.open.lock().get(&served.name) {
            return Ok(subscribe(sender));
        }
        let source = PictureSource::open(served, self.time_limit).await?;
        let mut open = self.open.lock();
        if let Some(sender) = open.get(&served.name) {
            return Ok(subscribe(sender)); // another viewer was faster
        }
        let (sender, newest) = watch::channel(None);
        open.insert(served.name.clone(), sender.clone());
        tokio::spawn(self.clone().run(served.name.clone(), source, sender));
        Ok(newest)
    }

    /// Passes on pictures until there are no viewers, or the emulator sends no more pictures.
    async fn run(
        self: Arc<Self>,
        name: String,
        mut source: PictureSource,
        sender: watch::Sender<Option<Arc<SharedPicture>>>,
    ) {
        let encoder = Arc::new(Mutex::new(Encoder::new()));
        let mut number = 0;
        loop {
            let picture = tokio::select! {
                biased;
                () = sender.closed() => None,
                picture = source.next() => Some(picture),
            };
            let mut open = self.open.lock();
            let picture = match picture {
                Some(Some(picture)) => picture,
                // A viewer has come in the meantime.
                None if sender.receiver_count() > 0 => continue,
                _ => {
                    open.remove(&name);
                    return;
                }
            };
            drop(open);
            match SharedPicture::new(picture, number, encoder.clone()) {
                Ok(picture) => drop(sender.send_replace(Some(Arc::new(picture)))),
                Err(error) => warn!("{name}: a picture was skipped: {error}"),
            }
            number += 1;
        }
    }
}

fn subscribe(sender: &watch::Sender<Option<Arc<SharedPicture>>>) -> Newest {
    let mut newest = sender.subscribe();
    newest.mark_changed();
    newest
}

/// Where an emulator's pictures come from.
pub(crate) enum PictureSource {
    /// The emulator sends each picture when it is made.
    Pushed(Video),
    /// The emulator sends pictures only on request.
    Requested(Box<Screenshots>),
}

impl PictureSource {
    /// Opens the source of an emulator. If the emulator sends pictures only on request, this waits for the first
    /// picture, for at most `time_limit`.
    pub(crate) async fn open(served: &Arc<Served>, time_limit: Duration) -> Result<PictureSource, Problem> {
        if let Some(video) = served.emulator.video() {
            return Ok(PictureSource::Pushed(video));
        }
        let screenshots = Screenshots::begin(served.clone(), time_limit).await?;
        Ok(PictureSource::Requested(Box::new(screenshots)))
    }

    /// The newest picture that this function has not returned yet; `None` when there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Arc<Picture>> {
        match self {
            PictureSource::Pushed(video) => video.next().await,
            PictureSource::Requested(screenshots) => screenshots.next().await,
        }
    }
}

/// Limits how many clients can get a stream of pictures or sound, or wait for the picture of a frame, at once. These
/// cost more than other streams.
#[derive(Clone)]
pub(crate) struct ViewerLimit {
    all: u32,
    free: Arc<Semaphore>,
}

/// The place of a viewer or listener, which is free again when this is dropped.
pub(crate) struct ViewerPlace {
    _permit: OwnedSemaphorePermit,
    _stream: OpenStream,
}

impl ViewerLimit {
    pub(crate) fn new(count: u32) -> ViewerLimit {
        ViewerLimit { all: count, free: Arc::new(Semaphore::new(count as usize)) }
    }

    pub(crate) fn take(&self, stream: OpenStream) -> Result<ViewerPlace, Problem> {
        match self.free.clone().try_acquire_owned() {
            Ok(permit) => Ok(ViewerPlace { _permit: permit, _stream: stream }),
            Err(_) => Err(Failure::busy(format!(
                "{} viewers and listeners are connected, which is the limit; close one and try again",
                self.all
            ))
            .into()),
        }
    }
}
