use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use framewire_media::Encoder;
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;

use super::picture::SharedPicture;
use super::source::PictureSource;
use crate::operations::emulators::Served;
use crate::problem::Problem;

/// The newest picture of an emulator; pictures that are not taken in time are skipped. It ends when the emulator is gone.
pub(crate) type Newest = watch::Receiver<Option<Arc<SharedPicture>>>;

/// Encodes the pictures of each emulator that has viewers, once for all of them.
pub(crate) struct PictureEncoders {
    /// How long an emulator that must be asked for pictures may take for the first.
    patience: Duration,
    /// By the emulator's name.
    open: Mutex<HashMap<String, watch::Sender<Option<Arc<SharedPicture>>>>>,
}

impl PictureEncoders {
    /// No emulator has viewers yet.
    pub(crate) fn new(patience: Duration) -> PictureEncoders {
        PictureEncoders { patience, open: Mutex::default() }
    }

    /// The pictures of an emulator. A picture that is there already counts as new.
    pub(crate) async fn watch(self: &Arc<Self>, served: &Arc<Served>) -> Result<Newest, Problem> {
        if let Some(sender) = self.open.lock().get(&served.name) {
            return Ok(subscribe(sender));
        }
        let source = PictureSource::open(served, self.patience).await?;
        let mut open = self.open.lock();
        if let Some(sender) = open.get(&served.name) {
            return Ok(subscribe(sender)); // another was faster
        }
        let (sender, newest) = watch::channel(None);
        open.insert(served.name.clone(), sender.clone());
        tokio::spawn(self.clone().run(served.name.clone(), source, sender));
        Ok(newest)
    }

    /// Takes pictures until there is no viewer or no picture comes any more.
    async fn run(
        self: Arc<Self>,
        name: String,
        mut source: PictureSource,
        sender: watch::Sender<Option<Arc<SharedPicture>>>,
    ) {
        let encoder = Arc::new(Mutex::new(Encoder::new()));
        for number in 0.. {
            let picture = tokio::select! {
                biased;
                () = sender.closed() => None,
                picture = source.next() => Some(picture),
            };
            let mut open = self.open.lock();
            let picture = match picture {
                Some(Some(picture)) => picture,
                // A viewer may have come a moment ago.
                None if sender.receiver_count() > 0 => continue,
                _ => {
                    open.remove(&name);
                    return;
                }
            };
            drop(open);
            match SharedPicture::new(picture, number, encoder.clone()) {
                Ok(picture) => drop(sender.send_replace(Some(Arc::new(picture)))),
                Err(error) => warn!("{name}: a picture was left out: {error}"),
            }
        }
    }
}

fn subscribe(sender: &watch::Sender<Option<Arc<SharedPicture>>>) -> Newest {
    let mut newest = sender.subscribe();
    newest.mark_changed();
    newest
}
