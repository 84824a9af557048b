use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use framewire_link::Pulse;
use framewire_protocol::Op;
use parking_lot::Mutex;

use super::pace::{Next, Pace, Speed};
use super::perform::Machine;
use super::{Job, Report};
use crate::EmulatorError;

/// How often the frame rate is measured and published.
const REPORT: Duration = Duration::from_millis(50);
/// Longest time that batches may keep a frame waiting that is due, so that a flood of them cannot stop the game.
const SERVICE: Duration = Duration::from_millis(4);

/// The core's thread: runs frames when they are due, and serves batches in between.
pub(super) struct Worker {
    machine: Machine,
    inbox: Receiver<Job>,
    report: Arc<Mutex<Report>>,
    pace: Pace,
    paused: bool,
    /// Frames run, whatever the core's own counter says after a reset or a state.
    frames: u32,
    pulse: Pulse,
    reported: Instant,
}

/// The worker is to end.
struct Stop;

impl Worker {
    pub fn new(
        machine: Machine,
        inbox: Receiver<Job>,
        report: Arc<Mutex<Report>>,
        speed: Speed,
        paused: bool,
    ) -> Self {
        let now = Instant::now();
        let core = &machine.core;
        let period = Duration::from_secs_f64(f64::from(core.frame_cycles()) / f64::from(core.frequency()));
        let mut pace = Pace::new(period, speed, now);
        pace.set_paused(paused, now);
        let mut worker = Worker {
            machine,
            inbox,
            report,
            pace,
            paused,
            frames: 0,
            pulse: Pulse::default(),
            reported: now,
        };
        worker.publish(now);
        worker.identify();
        worker
    }

    pub fn run(mut self) {
        while let Ok(()) = self.turn() {}
    }

    fn turn(&mut self) -> Result<(), Stop> {
        let now = Instant::now();
        if now - self.reported >= REPORT {
            self.publish(now);
        }
        match self.pace.next(now) {
            Next::Now => {
                self.serve_waiting(now + SERVICE)?;
                self.pace.ran(now);
                self.machine.run_frame();
                self.frames = self.frames.wrapping_add(1);
                Ok(())
            }
            Next::At(due) => match self.inbox.recv_deadline(due.min(now + REPORT)) {
                Ok(job) => self.job(job),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => Err(Stop),
            },
            Next::Never => match self.inbox.recv() {
                Ok(job) => self.job(job),
                Err(_) => Err(Stop),
            },
        }
    }

    /// Serves what waits already, until `end` at the latest.
    fn serve_waiting(&mut self, end: Instant) -> Result<(), Stop> {
        loop {
            match self.inbox.try_recv() {
                Ok(job) => self.job(job)?,
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(Stop),
            }
            if Instant::now() >= end {
                return Ok(());
            }
        }
    }

    fn job(&mut self, job: Job) -> Result<(), Stop> {
        let now = Instant::now();
        match job {
            Job::Batch { deadline, responder, .. } if deadline <= now => {
                responder.respond(Err(EmulatorError::Deadline(
                    "the core was busy until the request's deadline; it was not done".to_owned(),
                )));
            }
            Job::Batch { batch, responder, .. } => {
                let new_game =
                    batch.ops.iter().any(|op| matches!(op, Op::LoadFile { .. } | Op::LoadRom { .. }));
                let outcome = self.machine.perform(batch);
                if new_game {
                    self.identify();
                }
                responder.respond(Ok(outcome));
            }
            Job::Speed(speed) => self.pace.set_speed(speed, now),
            Job::Pause(paused) => {
                self.pace.set_paused(paused, now);
                self.paused = paused;
                self.publish(now);
            }
            Job::Stop => return Err(Stop),
        }
        Ok(())
    }

    /// Publishes which game it is.
    fn identify(&mut self) {
        let mut report = self.report.lock();
        report.title = self.machine.core.title();
        report.code = self.machine.core.code();
    }

    fn publish(&mut self, now: Instant) {
        self.reported = now;
        let rate = self.pulse.beat(now, self.frames);
        let mut report = self.report.lock();
        report.frame = self.machine.core.frame_counter();
        report.paused = self.paused;
        if self.paused {
            report.frames_per_second = 0.0;
        } else if let Some(rate) = rate {
            report.frames_per_second = rate;
        }
    }
}
