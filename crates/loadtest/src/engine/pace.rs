//! Waiting to the microsecond without burning the processor for longer than needed.
//!
//! Timers wake late by tens of microseconds, and tokio's by up to a millisecond. So the pacer sleeps to shortly before
//! the time and yields for the rest: each yield looks for arrived replies, which then are handled as they come.

use std::time::{Duration, Instant};

use tokio::task::yield_now;

/// Longest that a yield keeps the processor if nothing has arrived. One that took longer lost the processor to another program.
const LONGEST_YIELD: Duration = Duration::from_micros(10);

/// Sleeps to shortly before a time.
#[cfg(target_os = "linux")]
mod timer {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// How much too early to wake: the lateness of a wake-up on an ordinary machine, doubled.
    pub(super) const EARLY: Duration = Duration::from_micros(120);
    /// Least gap worth sleeping for.
    pub(super) const WORTH: Duration = Duration::from_micros(300);

    /// A timer of the kernel, exact to its scheduling.
    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // Deprecated for types that change their descriptor while registered, which `OwnedFd` cannot; what
            // replaces it is unsafe.
            #[expect(deprecated)]
            Ok(Timer(AsyncFd::new(timer)?))
        }

        pub(super) async fn sleep_until(&mut self, time: Instant) -> io::Result<()> {
            let gap = time.saturating_duration_since(Instant::now());
            if gap.is_zero() {
                return Ok(());
            }
            let once = Itimerspec {
                it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                it_value: Timespec { tv_sec: gap.as_secs() as _, tv_nsec: gap.subsec_nanos().into() },
            };
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
            let mut expirations = [0; 8];
            loop {
                let mut ready = self.0.readable().await?;
                match ready.try_io(|timer| Ok(rustix::io::read(timer, &mut expirations)?)) {
                    Ok(read) => return read.map(drop),
                    Err(_not_yet) => continue,
                }
            }
        }
    }
}

/// Sleeps to shortly before a time.
#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::time::{Duration, Instant};

    /// The runtime's timers are exact to a millisecond.
    pub(super) const EARLY: Duration = Duration::from_millis(2);
    /// Least gap worth sleeping for.
    pub(super) const WORTH: Duration = Duration::from_millis(3);

    /// The runtime's own timer.
    pub(super) struct Timer;

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Timer)
        }

        pub(super) async fn sleep_until(&mut self, time: Instant) -> io::Result<()> {
            tokio::time::sleep_until(time.into()).await;
            Ok(())
        }
    }
}

/// Waits for times.
pub(super) struct Pacer {
    timer: timer::Timer,
    /// Processor time spent on waiting, which is not work. The processor's own clock would cost a system call for each yield:
    /// as much as the yield.
    idle: Duration,
}

impl Pacer {
    /// Must be called inside a runtime.
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Pacer { timer: timer::Timer::new()?, idle: Duration::ZERO })
    }

    /// Waits until `time` and returns the time it is then. `activity` rises whenever anything else was done.
    pub(super) async fn wait(
        &mut self,
        time: Instant,
        activity: impl Fn() -> u64,
    ) -> std::io::Result<Instant> {
        let mut now = Instant::now();
        loop {
            let gap = time.saturating_duration_since(now);
            if gap.is_zero() {
                return Ok(now);
            }
            if gap > timer::WORTH {
                self.timer.sleep_until(time - timer::EARLY).await?;
                now = Instant::now();
            } else {
                let before = activity();
                yield_now().await;
                let after = Instant::now();
                if activity() == before {
                    self.idle += after.saturating_duration_since(now).min(LONGEST_YIELD);
                }
                now = after;
            }
        }
    }

    /// Processor time spent on waiting so far.
    pub(super) fn idle(&self) -> Duration {
        self.idle
    }
}
