//! Waits until a given time with a precision of microseconds, without using the processor for longer than needed.
//!
//! The kernel's timers wake a thread tens of microseconds late, and tokio's timers up to a millisecond late. So the
//! pacer sleeps until shortly before the time, and then yields again and again. Each yield handles the replies that
//! have arrived.

use std::time::{Duration, Instant};

use tokio::task::yield_now;

/// The longest time that a yield takes if nothing has arrived. If a yield takes longer, another program is using the
/// processor.
const LONGEST_YIELD: Duration = Duration::from_micros(10);

/// The timer for sleeping until shortly before a time.
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

    /// By how much the timer wakes up early: twice the lateness of a wake-up on an ordinary machine.
    pub(super) const EARLY: Duration = Duration::from_micros(120);
    /// The shortest wait for which sleeping is worthwhile.
    pub(super) const WORTH: Duration = Duration::from_micros(300);

    /// A timer of the kernel, which is as precise as the kernel's scheduling.
    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // `AsyncFd::new` is deprecated because of types that change their descriptor while it is registered.
            // `OwnedFd` does not do that, and the replacement is unsafe.
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

/// The timer for sleeping until shortly before a time.
#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::time::{Duration, Instant};

    /// By how much the timer wakes up early: the runtime's timers have a precision of one millisecond.
    pub(super) const EARLY: Duration = Duration::from_millis(2);
    /// The shortest wait for which sleeping is worthwhile.
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

/// Waits for points in time.
pub(super) struct Pacer {
    timer: timer::Timer,
    /// Processor time that was spent on waiting, and does not count as work. It is measured with the ordinary clock,
    /// because reading the thread's processor time would need a system call for each yield, which costs as much as the
    /// yield itself.
    idle: Duration,
}

impl Pacer {
    /// Creates a pacer. Must be called inside a runtime.
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Pacer { timer: timer::Timer::new()?, idle: Duration::ZERO })
    }

    /// Waits until `time`, and returns the present time after the wait. The value of `activity` rises whenever another
    /// task does something.
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
