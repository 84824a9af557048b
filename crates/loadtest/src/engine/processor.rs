use std::time::Duration;

/// Processor time that this thread has used so far.
#[cfg(unix)]
pub(super) fn used() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

/// Unknown here.
#[cfg(not(unix))]
pub(super) fn used() -> Option<Duration> {
    None
}
