//! Replays in the background, one at a time for each emulator.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use framewire_emulator::Emulator;
use framewire_states::Name;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Recording;
use crate::replay::{PlayOptions, ReplayError, Report, replay};

/// The result of a replay; `None` while it is running.
pub type ReplayResult = Option<Result<Report, Arc<ReplayError>>>;

/// A replay that is running or has ended.
pub struct ReplayTask {
    /// The name of the recording.
    pub name: Name,
    /// The number of frames in the recording.
    pub frames: u64,
    played: AtomicU64,
    cancelled: AtomicBool,
    result: watch::Sender<ReplayResult>,
}

impl ReplayTask {
    /// The number of frames that have been played so far.
    pub fn played(&self) -> u64 {
        self.played.load(Relaxed)
    }

    /// The result, if the replay has ended.
    pub fn result(&self) -> ReplayResult {
        self.result.borrow().clone()
    }

    /// Waits until the replay has ended.
    pub async fn wait(&self) {
        let mut result = self.result.subscribe();
        // This cannot fail: `self` owns the sender, so the sender is not dropped before this ends.
        let _ = result.wait_for(Option::is_some).await;
    }

    /// Makes the replay end after the current slice of frames.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    async fn run(&self, emulator: Arc<dyn Emulator>, recording: Recording, options: PlayOptions) {
        let progress = |frames| {
            self.played.store(frames, Relaxed);
            if self.cancelled.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let report = replay(&*emulator, &recording, &options, progress).await;
        self.result.send_replace(Some(report.map_err(Arc::new)));
    }
}

/// The latest replay of each emulator, by the emulator's name.
#[derive(Default)]
pub struct Replays(Mutex<BTreeMap<String, Arc<ReplayTask>>>);

impl Replays {
    /// Starts to play `recording`, which is called `name`, on the emulator called `emulator_name`.
    ///
    /// # Errors
    /// If a replay is already running on this emulator. The error is that replay.
    pub fn start(
        &self,
        emulator_name: &str,
        emulator: Arc<dyn Emulator>,
        name: Name,
        recording: Recording,
        options: PlayOptions,
    ) -> Result<Arc<ReplayTask>, Arc<ReplayTask>> {
        let mut tasks = self.0.lock();
        if let Some(task) = tasks.get(emulator_name)
            && task.result().is_none()
        {
            return Err(task.clone());
        }
        let task = Arc::new(ReplayTask {
            name,
            frames: recording.frames(),
            played: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            result: watch::Sender::new(None),
        });
        tasks.insert(emulator_name.to_owned(), task.clone());
        let running = task.clone();
        tokio::spawn(async move { running.run(emulator, recording, options).await });
        Ok(task)
    }

    /// The latest replay of an emulator.
    pub fn latest(&self, emulator_name: &str) -> Option<Arc<ReplayTask>> {
        self.0.lock().get(emulator_name).cloned()
    }

    /// Cancels all replays and waits until they have ended.
    pub async fn close(&self) {
        let tasks = std::mem::take(&mut *self.0.lock());
        for task in tasks.values() {
            task.cancel();
        }
        for task in tasks.values() {
            task.wait().await;
        }
    }
}
