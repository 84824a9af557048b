//! Whether frames go by, and how fast, as operations set it.

use std::time::{Duration, Instant};

use framewire_protocol::OpError;

use super::pace::Speed;

/// Longest time-out of lockstep.
const MAX_TIMEOUT: u32 = 60_000;

/// What was asked of the core's clock. The worker sees to it.
#[derive(Debug)]
pub(super) struct RunControl {
    pub speed: Speed,
    pub paused: bool,
    lockstep: Option<Lockstep>,
}

/// How frames go by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Going {
    pub speed: Speed,
    /// No frame is due by itself.
    pub stopped: bool,
    /// Because each waits to be asked for.
    pub lockstep: bool,
}

#[derive(Debug)]
struct Lockstep {
    timeout: Duration,
    /// When it ends unless something is asked before.
    end: Instant,
}

impl RunControl {
    pub fn new(speed: Speed, paused: bool) -> RunControl {
        RunControl { speed, paused, lockstep: None }
    }

    /// How frames are to go by.
    pub fn going(&self) -> Going {
        let lockstep = self.lockstep.is_some();
        Going { speed: self.speed, stopped: self.paused || lockstep, lockstep }
    }

    /// Ends pause and lockstep.
    pub fn resume(&mut self) {
        self.paused = false;
        self.lockstep = None;
    }

    /// Sets the speed in thousandths, 0 for unlimited.
    ///
    /// # Errors
    /// If it is no speed.
    pub fn set_speed(&mut self, thousandths: u32) -> Result<(), OpError> {
        self.speed = Speed::from_thousandths(thousandths).map_err(|_| {
            OpError::bad_argument(format!(
                "thousandths: {thousandths}; 10 to 1000000 are accepted, or 0 for unlimited"
            ))
        })?;
        Ok(())
    }

    /// Begins lockstep with a time-out in milliseconds, or ends it with 0.
    ///
    /// # Errors
    /// If the time-out is too long.
    pub fn set_lockstep(&mut self, timeout: u32) -> Result<(), OpError> {
        if timeout > MAX_TIMEOUT {
            let message =
                format!("timeout: {timeout} ms; 1 to {MAX_TIMEOUT} are accepted, or 0 to end lockstep");
            return Err(OpError::bad_argument(message));
        }
        let timeout = Duration::from_millis(timeout.into());
        self.lockstep = (!timeout.is_zero()).then(|| Lockstep { timeout, end: Instant::now() + timeout });
        Ok(())
    }

    /// Something was asked, so lockstep goes on.
    pub fn asked(&mut self) {
        if let Some(lockstep) = &mut self.lockstep {
            lockstep.end = Instant::now() + lockstep.timeout;
        }
    }

    /// When lockstep ends by itself.
    pub fn lockstep_end(&self) -> Option<Instant> {
        self.lockstep.as_ref().map(|lockstep| lockstep.end)
    }

    /// Ends lockstep if its time is out. Whether it did.
    pub fn expire(&mut self, now: Instant) -> bool {
        self.lockstep.take_if(|lockstep| lockstep.end <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lockstep_ends_when_nothing_is_asked_for_its_time_out() {
        let mut run = RunControl::new(Speed::Times(1.0), false);
        run.set_lockstep(1000).expect("a time-out");
        let end = run.lockstep_end().expect("an end");
        assert!(run.going().stopped && !run.expire(end - Duration::from_millis(1)));
        assert!(run.expire(end) && !run.going().stopped);
        assert!(!run.expire(end), "once");
    }

    #[test]
    fn what_is_out_of_range_changes_nothing() {
        let mut run = RunControl::new(Speed::Times(1.0), false);
        assert!(run.set_lockstep(MAX_TIMEOUT + 1).is_err());
        for thousandths in [1, 9, 1_000_001, u32::MAX] {
            assert!(run.set_speed(thousandths).is_err(), "{thousandths}");
        }
        let going = Going { speed: Speed::Times(1.0), stopped: false, lockstep: false };
        assert_eq!(run.going(), going);
        run.set_speed(0).expect("unlimited");
        assert_eq!(run.speed, Speed::Unlimited);
    }
}
