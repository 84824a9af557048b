use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use framewire_protocol::{Effect, Pulse};

use super::Job;
use super::guest::{Clock, Guest};
use super::machine::Machine;
use super::pace::{Next, Pace};
use super::run::Going;
use super::shared::Shared;
use crate::{EmulatorError, Happening};

/// How often the frame rate is measured and published.
const REPORT: Duration = Duration::from_millis(50);
/// How often a paused core says that it is alive.
const ALIVE: Duration = Duration::from_millis(500);
/// Longest time that batches may keep a frame waiting that is due, so that a flood of them cannot stop the game.
const SERVICE: Duration = Duration::from_millis(4);

/// The core's thread: runs frames when they are due, and serves batches in between.
pub(super) struct Worker {
    machine: Machine,
    inbox: Receiver<Job>,
    guest: Option<Box<dyn Guest>>,
    shared: Arc<Shared>,
    pace: Pace,
    /// How frames go by, as far as the schedule and the report know.
    going: Going,
    pulse: Pulse,
    reported: Instant,
    /// Which of the machine's games the report names.
    identified: u32,
}

/// The worker is to end.
struct Stop;

impl Worker {
    pub fn new(machine: Machine, inbox: Receiver<Job>, guest: Option<Box<dyn Guest>>) -> Self {
        let now = Instant::now();
        let core = &machine.core;
        let period = Duration::from_secs_f64(f64::from(core.frame_cycles()) / f64::from(core.frequency()));
        let going = machine.run.going();
        let mut pace = Pace::new(period, going.speed, now);
        pace.set_paused(going.stopped, now);
        let mut worker = Worker {
            shared: machine.shared.clone(),
            machine,
            inbox,
            guest,
            pace,
            going,
            pulse: Pulse::default(),
            reported: now,
            identified: 0,
        };
        worker.publish(now);
        worker
    }

    pub fn run(mut self) {
        while !self.shared.stop.load(Relaxed)
            && let Ok(()) = self.turn()
        {}
        let Machine { core, saves, .. } = &mut self.machine;
        // A script may never end, and its last action may change the save.
        saves.hand_over_all(core);
        core.detach_scripts();
        self.shared.finishing.store(true, Relaxed);
        saves.finish(core);
    }

    fn turn(&mut self) -> Result<(), Stop> {
        let now = Instant::now();
        if now - self.reported >= REPORT {
            self.publish(now);
            if let Some(guest) = &mut self.guest {
                guest.look();
            }
        }
        if self.machine.run.expire(now) {
            self.machine.tell(Happening::LockstepOver);
            self.settle(now);
        }
        let clock = self.guest.as_mut().map_or(Clock::Ours, |guest| guest.serve(&mut self.machine));
        if self.guest.is_some() {
            self.settle(now);
        }
        let next = match clock {
            Clock::Ours => self.pace.next(now),
            Clock::Frame => Next::Now,
            Clock::Still => Next::At(now + REPORT),
        };
        if self.machine.games != self.identified {
            self.identify();
        }
        match next {
            Next::Now => {
                self.serve_waiting(now + SERVICE)?;
                if clock == Clock::Ours {
                    if self.going.stopped {
                        return Ok(()); // by what was served just now, and said so already
                    }
                    self.pace.ran(now);
                }
                self.run_frame();
                Ok(())
            }
            Next::At(due) => self.wait(due.min(now + REPORT)),
            Next::Never => {
                let rest = if self.guest.is_some() { REPORT } else { ALIVE };
                let end = self.machine.run.lockstep_end();
                self.wait(end.map_or(now + rest, |end| end.min(now + rest)))
            }
        }
    }

    fn run_frame(&mut self) {
        if let Some(guest) = &mut self.guest {
            guest.before();
        }
        self.machine.run_frame();
        if let Some(guest) = &mut self.guest {
            guest.after(&mut self.machine, true);
        }
    }

    /// Waits for a job, or for what the guest is asked, until `end` at the latest.
    fn wait(&mut self, end: Instant) -> Result<(), Stop> {
        let Some(guest) = &mut self.guest else {
            return match self.inbox.recv_deadline(end) {
                Ok(job) => self.job(job),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => Err(Stop),
            };
        };
        let inbox = &self.inbox;
        guest.wait(end.saturating_duration_since(Instant::now()), &|| !inbox.is_empty());
        match self.inbox.try_recv() {
            Ok(job) => self.job(job),
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => Err(Stop),
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
                let changes = batch.effect() == Effect::Change;
                let guest = self.guest.as_mut().filter(|_| changes);
                let outcome = match guest {
                    None => self.machine.perform(batch),
                    Some(guest) => {
                        guest.before();
                        let outcome = self.machine.perform(batch);
                        guest.after(&mut self.machine, false);
                        outcome
                    }
                };
                if self.machine.games != self.identified {
                    self.identify();
                }
                if changes {
                    self.shared.report.lock().frame = outcome.frame;
                    self.settle(now);
                    if self.going.stopped {
                        self.machine.media.show(&mut self.machine.core, self.machine.ticks);
                    }
                }
                responder.respond(Ok(outcome));
            }
            Job::Speed(speed) => {
                self.machine.run.speed = speed;
                self.settle(now);
            }
            Job::Pause(paused) => {
                match paused {
                    true => self.machine.run.paused = true,
                    false => self.machine.run.resume(),
                }
                self.settle(now);
            }
            Job::Show => self.machine.media.show(&mut self.machine.core, self.machine.ticks),
            Job::Stop => return Err(Stop),
        }
        Ok(())
    }

    /// Has the schedule follow what was asked of the clock, and tells of it.
    fn settle(&mut self, now: Instant) {
        let (going, before) = (self.machine.run.going(), self.going);
        if going == before {
            return;
        }
        self.going = going;
        if going.speed != before.speed {
            self.pace.set_speed(going.speed, now);
        }
        if going.stopped != before.stopped {
            self.pace.set_paused(going.stopped, now);
        }
        self.publish(now);
        match (going.stopped, before.stopped) {
            (true, false) => {
                self.machine.media.settle(&mut self.machine.core, self.machine.ticks);
                self.machine.tell(Happening::Paused);
            }
            (false, true) => self.machine.tell(Happening::Running),
            _ => {}
        }
    }

    /// Publishes which game it is.
    fn identify(&mut self) {
        self.identified = self.machine.games;
        let core = &self.machine.core;
        let (title, code, checksum) = (core.title(), core.code(), core.crc32());
        let mut report = self.shared.report.lock();
        if (&report.title, &report.code, report.checksum) == (&title, &code, checksum) {
            return;
        }
        report.checksum = checksum;
        report.title.clone_from(&title);
        report.code.clone_from(&code);
        drop(report);
        let named = |name: String| Some(name).filter(|name| !name.is_empty());
        let (title, code) = (named(title), named(code));
        self.machine.tell(Happening::Game { title, code, checksum: Some(checksum) });
    }

    fn publish(&mut self, now: Instant) {
        // Scripts put in other games too.
        self.identify();
        self.reported = now;
        self.machine.saves.look(&mut self.machine.core, now);
        let rate = self.pulse.beat(now, self.machine.ticks as u32);
        let mut report = self.shared.report.lock();
        report.at = now;
        report.frame = self.machine.core.frame_counter();
        report.going = self.going;
        if self.going.stopped {
            report.frames_per_second = 0.0;
        } else if let Some(rate) = rate {
            report.frames_per_second = rate;
        }
    }
}
