use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use parking_lot::Mutex;

use super::Speed;
use super::media::MediaOutputs;
use super::run::RunState;
use super::saves::SaveProblems;
use super::watches::WatchQueues;
use crate::EventKind;
use crate::event::EventSender;
use crate::history::History;

/// The state that the core's thread shares with [`Embedded`](super::Embedded).
#[derive(Debug)]
pub(super) struct EmbeddedState {
    pub report: Mutex<Report>,
    pub events: EventSender,
    pub queues: Arc<WatchQueues>,
    pub outputs: Arc<MediaOutputs>,
    pub history: Arc<History>,
    /// Whether the thread must end. Needed in addition to [`Job::Stop`](super::Job::Stop), because the queue may be
    /// full.
    pub stop: AtomicBool,
    /// Whether the thread is writing the last saves before it ends.
    pub finishing: AtomicBool,
}

/// The state of the emulator, as the core's thread last published it. The thread that writes saves also updates
/// `save_problems`.
#[derive(Debug)]
pub(super) struct Report {
    /// When the thread last updated the report, or last showed that it is not stuck.
    pub at: Instant,
    pub frame: u32,
    pub frames_per_second: f64,
    pub run_state: RunState,
    pub title: String,
    pub code: String,
    pub checksum: u32,
    pub save_problems: SaveProblems,
    /// The path of the patch that was applied to the ROM.
    pub patch: Option<String>,
    pub rom_problems: Vec<String>,
}

/// The thread counts as stuck if its last report is older than this.
const SILENCE: Duration = Duration::from_secs(2);

impl Report {
    /// Whether the thread is stuck.
    pub fn is_silent(&self) -> bool {
        self.at.elapsed() > SILENCE
    }

    fn new(speed: Speed) -> Report {
        Report {
            at: Instant::now(),
            frame: 0,
            frames_per_second: 0.0,
            run_state: RunState { speed, stopped: false, lockstep: false },
            title: String::new(),
            code: String::new(),
            checksum: 0,
            save_problems: SaveProblems::default(),
            patch: None,
            rom_problems: Vec::new(),
        }
    }
}

impl EmbeddedState {
    /// Records that the thread is busy, but not stuck.
    pub fn alive(&self) {
        self.report.lock().at = Instant::now();
    }

    /// The state of a new emulator, whose history may take `history` bytes.
    pub fn new(speed: Speed, history: usize) -> Arc<EmbeddedState> {
        Arc::new(EmbeddedState {
            report: Mutex::new(Report::new(speed)),
            events: EventSender::new(),
            queues: Arc::default(),
            outputs: Arc::new(MediaOutputs::new()),
            history: Arc::new(History::new(history)),
            stop: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
        })
    }
}

/// The time between two checks of `watch_over`.
const CHECK: Duration = Duration::from_millis(250);

/// Sends an event when the core's thread is stuck, for example in a script that does not end, and when it continues.
/// Returns when the thread has `ended` or must end.
pub(super) fn watch_over(shared: &Arc<EmbeddedState>, ended: &Receiver<()>) {
    let mut stuck = false;
    while ended.recv_timeout(CHECK) == Err(RecvTimeoutError::Timeout) && !shared.stop.load(Relaxed) {
        let (silent, stopped, frame) = {
            let report = shared.report.lock();
            (report.is_silent(), report.run_state.stopped, report.frame)
        };
        if silent == stuck {
            continue;
        }
        stuck = silent;
        let what = match (stuck, stopped) {
            (true, _) => EventKind::Stalled,
            (false, true) => EventKind::Paused,
            (false, false) => EventKind::Running,
        };
        shared.events.send(frame, what);
    }
}
