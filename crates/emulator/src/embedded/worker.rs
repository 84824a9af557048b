use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use framewire_protocol::{Effect, FrameRate};

use super::Job;
use super::driver::{Driver, NextFrame};
use super::lease::Lease;
use super::machine::Machine;
use super::pace::{Next, Pace, Speed};
use super::perform::needs_picture;
use super::run::RunState;
use crate::{EmulatorError, EventKind};

/// Time between two updates of the report: the state that other threads see.
const REPORT: Duration = Duration::from_millis(50);
/// Time between two updates while the core is paused.
const PAUSED_REPORT: Duration = Duration::from_millis(500);
/// If a frame is due, no further batch is started after this time. Without this limit, many batches could stop the
/// game.
const SERVICE: Duration = Duration::from_millis(4);

/// The core's thread. It runs frames when they are due, and performs batches between frames.
pub(super) struct Worker {
    machine: Lease,
    inbox: Receiver<Job>,
    driver: Option<Box<dyn Driver>>,
    pace: Pace,
    /// The machine's run state when `pace` and the report were last updated.
    run_state: RunState,
    frame_rate: FrameRate,
    /// When the report was last updated.
    reported: Instant,
}

/// Says that the worker's loop must end.
struct Stop;

impl Worker {
    pub fn new(machine: Lease, inbox: Receiver<Job>, driver: Option<Box<dyn Driver>>) -> Self {
        let now = Instant::now();
        let core = &machine.core;
        let period = Duration::from_secs_f64(f64::from(core.frame_cycles()) / f64::from(core.frequency()));
        let run_state = machine.run.run_state();
        let mut pace = Pace::new(period, run_state.speed, now);
        pace.set_paused(run_state.stopped, now);
        let mut worker = Worker {
            machine,
            inbox,
            driver,
            pace,
            run_state,
            frame_rate: FrameRate::default(),
            reported: now,
        };
        worker.publish(now);
        worker
    }

    pub fn run(mut self) {
        while !self.machine.shared.stop.load(Relaxed)
            && let Ok(()) = self.turn()
        {}
        let Machine { core, saves, shared, .. } = &mut *self.machine;
        // Write the save before scripts are detached, because a script may never end. Write it again after that,
        // because the script may have changed it.
        saves.hand_over_all(core);
        core.detach_scripts();
        shared.finishing.store(true, Relaxed);
        saves.finish(core);
    }

    /// One pass of the loop: runs a frame, or waits for a job or for the time of the next frame.
    fn turn(&mut self) -> Result<(), Stop> {
        let now = Instant::now();
        if now - self.reported >= REPORT {
            self.publish(now);
            if let Some(driver) = &mut self.driver {
                driver.check();
            }
        }
        // Ends the runs (requests to run frames, see runs.rs) that no client waits for. While no frames run, nothing
        // else notices that a client has left.
        self.machine.settle_runs();
        if self.machine.runs.are_driving() {
            // A run is a request that has not ended yet, so the time-out of lockstep starts again.
            self.machine.run.note_request();
        } else if self.machine.run.expire(now) {
            self.machine.report();
            self.machine.send_event(EventKind::LockstepOver);
            self.apply_run_state(now);
        }
        if let Some(driver) = &mut self.driver {
            driver.serve(&mut self.machine);
            // The client's batch may have taken a long time.
            let now = Instant::now();
            self.apply_run_state(now);
            // A batch of the client may have run frames that ended runs.
            if !self.machine.answers.is_empty() {
                self.answer(true, now);
            }
        }
        let decision = self.next_of_driver();
        let next = match decision {
            // A run that began while the game was stopped makes frames run.
            NextFrame::Scheduled if self.machine.runs.are_driving() => Next::Now,
            NextFrame::Scheduled => self.pace.next(now),
            NextFrame::Now => Next::Now,
            NextFrame::NotYet => Next::At(now + REPORT),
        };
        if self.machine.tried_to_load {
            self.identify();
        }
        match next {
            Next::Now => {
                self.serve_waiting(now + SERVICE)?;
                // A batch that needed a picture may have run the last frame that the client has requested.
                if decision == NextFrame::Now && self.next_of_driver() != NextFrame::Now {
                    return Ok(());
                }
                if decision == NextFrame::Scheduled {
                    if !self.run_state.stopped {
                        self.pace.ran(now);
                    } else if !self.machine.runs.are_driving() {
                        return Ok(()); // One of the batches has just stopped the game.
                    }
                }
                let draw = match &self.driver {
                    Some(driver) => driver.needs_picture(),
                    None => self.run_state.speed != Speed::Unlimited,
                };
                self.run_frame(draw || self.machine.runs.need_picture());
                Ok(())
            }
            Next::At(due) => self.wait(due.min(now + REPORT)),
            Next::Never => {
                let rest = if self.driver.is_some() { REPORT } else { PAUSED_REPORT };
                let end = self.machine.run.lockstep_end();
                self.wait(end.map_or(now + rest, |end| end.min(now + rest)))
            }
        }
    }

    /// When the driver wants the next frame to run.
    fn next_of_driver(&self) -> NextFrame {
        self.driver.as_ref().map_or(NextFrame::Scheduled, |driver| driver.next_frame())
    }

    /// Makes sure that the current frame has a picture, because the game is about to stop or a client wants the
    /// picture. If the last frame was not drawn, runs one more frame with drawing.
    fn draw(&mut self) {
        if !self.machine.drawn {
            self.run_frame(true);
        }
    }

    fn run_frame(&mut self, draw: bool) {
        if let Some(driver) = &mut self.driver {
            driver.before();
        }
        self.machine.run_frame(draw);
        if let Some(driver) = &mut self.driver {
            driver.after(&mut self.machine, true);
        }
        if !self.machine.answers.is_empty() {
            self.answer(true, Instant::now());
        }
    }

    /// Waits for a job or for a request of the driver's client, until `end` at the latest.
    fn wait(&mut self, end: Instant) -> Result<(), Stop> {
        let Some(driver) = &mut self.driver else {
            let inbox = &self.inbox;
            return match self.machine.lend_during(|| inbox.recv_deadline(end)) {
                Ok(job) => self.job(job),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => Err(Stop),
            };
        };
        let inbox = &self.inbox;
        driver.wait(end.saturating_duration_since(Instant::now()), &|| !inbox.is_empty());
        self.serve_waiting(Instant::now())
    }

    /// Performs the jobs in the queue: at least one if there is one, and the others until `end`.
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
                    "the core was busy until the deadline of the request, so the request was not performed"
                        .to_owned(),
                )));
            }
            Job::Batch { batch, responder, .. } => {
                let changes = batch.effect() == Effect::Change;
                if batch.ops.iter().any(needs_picture) {
                    self.draw();
                }
                if changes && let Some(driver) = &mut self.driver {
                    driver.before();
                }
                self.machine.submit(batch, responder);
                if changes && let Some(driver) = &mut self.driver {
                    driver.after(&mut self.machine, false);
                }
                // The batch may have taken a long time.
                self.answer(changes, Instant::now());
            }
            Job::Show => {
                self.draw();
                self.machine.show_picture();
            }
            Job::Stop => return Err(Stop),
        }
        self.machine.end_job();
        Ok(())
    }

    /// Updates the report if the batches `changed` something, and then sends the outcomes of the finished batches. So
    /// when a client gets an outcome, it also sees the new state.
    fn answer(&mut self, changed: bool, now: Instant) {
        if self.machine.tried_to_load {
            self.identify();
        }
        if changed {
            self.machine.report();
            self.apply_run_state(now);
            if self.run_state.stopped {
                self.machine.show_picture();
            }
        }
        for (responder, outcome) in self.machine.answers.drain(..) {
            responder.respond(Ok(outcome));
        }
    }

    /// If pause, lockstep or speed has changed: updates the schedule of frames and the report. Sends an event if frames
    /// have stopped or have started again.
    fn apply_run_state(&mut self, now: Instant) {
        let (run_state, before) = (self.machine.run.run_state(), self.run_state);
        if run_state == before {
            return;
        }
        self.run_state = run_state;
        if run_state.speed != before.speed {
            self.pace.set_speed(run_state.speed, now);
        }
        if run_state.stopped != before.stopped {
            self.pace.set_paused(run_state.stopped, now);
        }
        self.publish(now);
        match (run_state.stopped, before.stopped) {
            (true, false) => {
                self.machine.settle_picture();
                self.machine.send_event(EventKind::Paused);
            }
            (false, true) => self.machine.send_event(EventKind::Running),
            _ => {}
        }
    }

    /// If another game is loaded: updates the game in the report, and sends an event.
    fn identify(&mut self) {
        self.machine.tried_to_load = false;
        let Machine { core, cheats, shared, .. } = &mut *self.machine;
        let (title, code, checksum) = (core.title(), core.code(), core.crc32());
        let mut report = shared.report.lock();
        // The same game can be loaded again with or without its patch.
        report.patch = core.patch().map(|patch| patch.display().to_string());
        if (&report.title, &report.code, report.checksum) == (&title, &code, checksum) {
            return;
        }
        report.checksum = checksum;
        report.title.clone_from(&title);
        report.code.clone_from(&code);
        report.rom_problems = core.rom_problems();
        drop(report);
        cheats.drop_if_removed(core);
        let named = |name: String| if name.is_empty() { None } else { Some(name) };
        let (title, code) = (named(title), named(code));
        self.machine.send_event(EventKind::Game { title, code, checksum: Some(checksum) });
    }

    /// Updates the report, and checks the saves.
    fn publish(&mut self, now: Instant) {
        // Scripts can load games, too.
        self.identify();
        self.reported = now;
        let Machine { core, saves, .. } = &mut *self.machine;
        saves.check(core, now);
        let rate = self.frame_rate.note(now, self.machine.ticks as u32);
        let mut report = self.machine.shared.report.lock();
        report.at = now;
        report.frame = self.machine.core.frame_counter();
        report.run_state = self.run_state;
        if self.run_state.stopped {
            report.frames_per_second = 0.0;
        } else if let Some(rate) = rate {
            report.frames_per_second = rate;
        }
    }
}
