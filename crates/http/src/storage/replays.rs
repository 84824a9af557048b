//! Replays under way, and the last one of each emulator.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use framewire_emulator::Emulator;
use framewire_recording::Recording;
use framewire_recording::replay::{Options, ReplayError, Report, replay};
use framewire_states::Name;
use parking_lot::Mutex;
use tokio::sync::watch;

/// How a replay ended.
pub(crate) type Ended = Option<Result<Report, Arc<ReplayError>>>;

/// A replay, under way or over.
pub(crate) struct Job {
    /// What is played.
    pub(crate) name: Name,
    /// Frames of it.
    pub(crate) frames: u64,
    played: AtomicU64,
    cancelled: AtomicBool,
    ended: watch::Sender<Ended>,
}

impl Job {
    /// Frames played so far.
    pub(crate) fn played(&self) -> u64 {
        self.played.load(Relaxed)
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&self) -> Ended {
        self.ended.borrow().clone()
    }

    /// Waits for its end.
    pub(crate) async fn wait(&self) {
        let mut ended = self.ended.subscribe();
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// Has it end soon.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    async fn run(&self, emulator: Arc<dyn Emulator>, recording: Recording, options: Options) {
        let progress = |frames| {
            self.played.store(frames, Relaxed);
            match self.cancelled.load(Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let report = replay(&*emulator, &recording, &options, progress).await;
        self.ended.send_replace(Some(report.map_err(Arc::new)));
    }
}

/// The last replay of each emulator, by its name.
#[derive(Default)]
pub(crate) struct Replays(Mutex<BTreeMap<String, Arc<Job>>>);

impl Replays {
    /// Plays a recording on an emulator, which is called `whose`; `Err` is the one that it is busy with.
    pub(crate) fn start(
        &self,
        whose: &str,
        emulator: Arc<dyn Emulator>,
        name: Name,
        recording: Recording,
        options: Options,
    ) -> Result<Arc<Job>, Arc<Job>> {
        let mut jobs = self.0.lock();
        if let Some(job) = jobs.get(whose).filter(|job| job.ended().is_none()) {
            return Err(job.clone());
        }
        let job = Arc::new(Job {
            name,
            frames: recording.frames(),
            played: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            ended: watch::Sender::new(None),
        });
        jobs.insert(whose.to_owned(), job.clone());
        let running = job.clone();
        tokio::spawn(async move { running.run(emulator, recording, options).await });
        Ok(job)
    }

    /// The last replay of an emulator.
    pub(crate) fn last(&self, whose: &str) -> Option<Arc<Job>> {
        self.0.lock().get(whose).cloned()
    }

    /// Ends all of them and waits for that.
    pub(crate) async fn close(&self) {
        let jobs = std::mem::take(&mut *self.0.lock());
        jobs.values().for_each(|job| job.cancel());
        for job in jobs.values() {
            job.wait().await;
        }
    }
}
