use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Speed;
use super::run::Going;
use super::saves::SaveProblems;
use super::taps::Taps;
use super::watches::Feeds;
use crate::event::Teller;

/// What the core's thread and its emulator share.
#[derive(Debug)]
pub(super) struct Shared {
    pub report: Mutex<Report>,
    pub teller: Teller,
    pub feeds: Arc<Feeds>,
    pub taps: Arc<Taps>,
    /// The thread is to end. Beside [`Job::Stop`](super::Job::Stop), because the queue may be full.
    pub stop: AtomicBool,
    /// The thread writes what is left to write, and ends then.
    pub finishing: AtomicBool,
}

/// What the core's thread publishes.
#[derive(Debug)]
pub(super) struct Report {
    /// When it last did.
    pub at: Instant,
    pub frame: u32,
    pub frames_per_second: f64,
    pub going: Going,
    pub title: String,
    pub code: String,
    pub checksum: u32,
    pub save_problems: SaveProblems,
}

/// How old the last report of a thread may be that is not stuck.
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
            going: Going { speed, stopped: false, lockstep: false },
            title: String::new(),
            code: String::new(),
            checksum: 0,
            save_problems: SaveProblems::default(),
        }
    }
}

impl Shared {
    /// The thread is busy, and not stuck.
    pub fn alive(&self) {
        self.report.lock().at = Instant::now();
    }

    pub fn new(speed: Speed) -> Arc<Shared> {
        Arc::new(Shared {
            report: Mutex::new(Report::new(speed)),
            teller: Teller::new(),
            feeds: Arc::default(),
            taps: Arc::new(Taps::new()),
            stop: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
        })
    }
}
