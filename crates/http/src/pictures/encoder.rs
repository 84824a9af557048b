use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use framewire_media::Encoder;
use tokio::sync::watch;
use tracing::warn;

use super::picture::Shot;
use super::source::Source;
use crate::operations::emulators::Served;
use crate::problem::Problem;

/// The newest shot of an emulator, skipping what is not taken in time. It ends when the emulator is gone.
pub(crate) type Newest = watch::Receiver<Option<Arc<Shot>>>;

/// Where the pictures of each emulator that somebody looks at are made ready, once for all who look.
#[derive(Default)]
pub(crate) struct Studios {
    /// By the emulator's name.
    open: Mutex<HashMap<String, watch::Sender<Option<Arc<Shot>>>>>,
}

impl Studios {
    /// Looks at an emulator. The shot that is there already counts as new.
    pub(crate) async fn look(
        self: &Arc<Self>,
        served: &Arc<Served>,
        patience: Duration,
    ) -> Result<Newest, Problem> {
        if let Some(sender) = self.lock().get(&served.name) {
            return Ok(subscribe(sender));
        }
        let source = Source::open(served, patience).await?;
        let mut open = self.lock();
        if let Some(sender) = open.get(&served.name) {
            return Ok(subscribe(sender)); // another was faster
        }
        let (sender, newest) = watch::channel(None);
        open.insert(served.name.clone(), sender.clone());
        tokio::spawn(self.clone().run(served.name.clone(), source, sender));
        Ok(newest)
    }

    /// Takes pictures until nobody looks or no more come.
    async fn run(
        self: Arc<Self>,
        name: String,
        mut source: Source,
        sender: watch::Sender<Option<Arc<Shot>>>,
    ) {
        let encoder = Arc::new(Mutex::new(Encoder::new()));
        for number in 0.. {
            let picture = tokio::select! {
                biased;
                () = sender.closed() => None,
                picture = source.next() => Some(picture),
            };
            let mut open = self.lock();
            let picture = match picture {
                Some(Some(picture)) => picture,
                // Somebody may have come a moment ago.
                None if sender.receiver_count() > 0 => continue,
                _ => {
                    open.remove(&name);
                    return;
                }
            };
            drop(open);
            match Shot::new(picture, number, encoder.clone()) {
                Ok(shot) => drop(sender.send_replace(Some(Arc::new(shot)))),
                Err(error) => warn!("{name}: a picture was left out: {error}"),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Option<Arc<Shot>>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn subscribe(sender: &watch::Sender<Option<Arc<Shot>>>) -> Newest {
    let mut newest = sender.subscribe();
    newest.mark_changed();
    newest
}
