//! Measures how much processor time a thread used, and how much it could have used.

use std::time::Duration;

/// The processor time of a thread since it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// The time for which it ran.
    pub(super) used: Duration,
    /// The time for which it was ready to run while another thread had the processor; zero if the system does not
    /// report it.
    pub(super) delayed: Duration,
}

/// This thread's usage so far; `None` if the system does not report it.
pub(super) fn usage() -> Option<Usage> {
    let used = used();
    if used.is_zero() {
        return None;
    }
    Some(Usage { used, delayed: delayed().unwrap_or_default() })
}

/// The processor time that this thread has used so far; zero if the system does not report it.
#[cfg(unix)]
fn used() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().unwrap_or_default()
}

#[cfg(not(unix))]
fn used() -> Duration {
    Duration::ZERO
}

/// The time that this thread has spent on the run queue: the second number of the kernel's statistics, in nanoseconds.
fn delayed() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
}

impl Usage {
    /// The share (0 to 1) of the available processor time since `before` that this thread used for work. `idle` is the
    /// processor time that it spent on waiting, and `elapsed` is the time that has passed.
    pub(super) fn busy(self, before: Usage, idle: Duration, elapsed: Duration) -> f64 {
        let worked = self.used.saturating_sub(before.used).saturating_sub(idle);
        let available = elapsed.saturating_sub(self.delayed.saturating_sub(before.delayed));
        if available.is_zero() { 1.0 } else { (worked.as_secs_f64() / available.as_secs_f64()).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_the_processor_is_neither_idle_nor_available() {
        let usage = |used, delayed| Usage {
            used: Duration::from_millis(used),
            delayed: Duration::from_millis(delayed),
        };
        let busy = |used, delayed, idle| {
            usage(used, delayed).busy(usage(0, 0), Duration::from_millis(idle), Duration::from_secs(1))
        };
        assert_eq!(busy(300, 700, 0), 1.0, "it had three tenths of a processor and used all of them");
        assert_eq!(busy(500, 0, 250), 0.25);
        assert_eq!(busy(0, 1000, 0), 1.0, "it never ran");
    }
}
