//! Whether frames run, and how fast, as set by operations.

use std::time::{Duration, Instant};

use framewire_protocol::OpError;

use super::pace::Speed;

/// The longest time-out of lockstep, in milliseconds.
const MAX_TIMEOUT: u32 = 60_000;

/// The settings for pause, speed and lockstep. The core's thread (`worker.rs`) applies them.
#[derive(Debug)]
pub(super) struct RunControl {
    pub speed: Speed,
    pub paused: bool,
    lockstep: Option<Lockstep>,
}

/// Whether frames run, and how fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunState {
    pub speed: Speed,
    /// Whether frames run only on request.
    pub stopped: bool,
    /// Whether the emulator is in lockstep, in which each frame waits for a request.
    pub lockstep: bool,
}

#[derive(Debug)]
struct Lockstep {
    timeout: Duration,
    /// When lockstep ends if there is no request before then.
    end: Instant,
}

impl RunControl {
    pub fn new(speed: Speed, paused: bool) -> RunControl {
        RunControl { speed, paused, lockstep: None }
    }

    /// Whether frames run, and how fast, according to these settings.
    pub fn run_state(&self) -> RunState {
        let lockstep = self.lockstep.is_some();
        RunState { speed: self.speed, stopped: self.paused || lockstep, lockstep }
    }

    /// Ends the pause and lockstep.
    pub fn resume(&mut self) {
        self.paused = false;
        self.lockstep = None;
    }

    /// Sets the speed in thousandths of the console's rate; 0 is unlimited.
    ///
    /// # Errors
    /// If the core cannot run at this speed.
    pub fn set_speed(&mut self, thousandths: u32) -> Result<(), OpError> {
        self.speed = Speed::from_thousandths(thousandths).map_err(|_| {
            OpError::bad_argument(format!(
                "thousandths is {thousandths}; use 10 to 1000000, or 0 for unlimited"
            ))
        })?;
        Ok(())
    }

    /// Starts lockstep with a time-out in milliseconds, or ends it with 0.
    ///
    /// # Errors
    /// If the time-out is too long.
    pub fn set_lockstep(&mut self, timeout: u32) -> Result<(), OpError> {
        if timeout > MAX_TIMEOUT {
            let message = format!("timeout is {timeout} ms; use 1 to {MAX_TIMEOUT}, or 0 to end lockstep");
            return Err(OpError::bad_argument(message));
        }
        let timeout = Duration::from_millis(timeout.into());
        let lockstep = Lockstep { timeout, end: Instant::now() + timeout };
        self.lockstep = if timeout.is_zero() { None } else { Some(lockstep) };
        Ok(())
    }

    /// Restarts the time-out of lockstep, because there was a request.
    pub fn note_request(&mut self) {
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.end = Instant::now() + lockstep.timeout;
        }
    }

    /// When lockstep ends by itself; `None` without lockstep.
    pub fn lockstep_end(&self) -> Option<Instant> {
        self.lockstep.as_ref().map(|lockstep| lockstep.end)
    }

    /// Ends lockstep if its time-out has passed. Returns whether it did.
    pub fn expire(&mut self, now: Instant) -> bool {
        self.lockstep.take_if(|lockstep| lockstep.end <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lockstep_ends_after_its_time_out() {
        let mut run = RunControl::new(Speed::Times(1.0), false);
        run.set_lockstep(1000).expect("a time-out");
        let end = run.lockstep_end().expect("an end");
        assert!(run.run_state().stopped && !run.expire(end - Duration::from_millis(1)));
        assert!(run.expire(end) && !run.run_state().stopped);
        assert!(!run.expire(end), "it ends only once");
    }

    #[test]
    fn values_out_of_range_change_nothing() {
        let mut run = RunControl::new(Speed::Times(1.0), false);
        assert!(run.set_lockstep(MAX_TIMEOUT + 1).is_err());
        for thousandths in [1, 9, 1_000_001, u32::MAX] {
            assert!(run.set_speed(thousandths).is_err(), "{thousandths}");
        }
        let run_state = RunState { speed: Speed::Times(1.0), stopped: false, lockstep: false };
        assert_eq!(run.run_state(), run_state);
        run.set_speed(0).expect("unlimited");
        assert_eq!(run.speed, Speed::Unlimited);
    }
}
