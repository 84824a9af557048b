//! The console's clock of an embedded core.

use framewire_libmgba::{Clock as CoreClock, Core, Time};

use crate::{Clock, ClockTime};

/// Sets the clock of a new core.
pub(super) fn begin(clock: Clock, core: &mut Core) {
    core.set_clock(match clock {
        Clock::Wall => CoreClock::Host,
        Clock::Frames => CoreClock::Frames(Time::now()),
        Clock::At(ClockTime { unix_ms, zone }) => CoreClock::Frames(Time { unix_ms, zone: Some(zone) }),
    });
}

/// Replaces the host's clock by one that counts frames while that is needed.
pub(super) fn settle(clock: Clock, core: &mut Core, needed: bool) {
    if clock != Clock::Wall {
        return;
    }
    match (core.clock(), needed) {
        (CoreClock::Host, true) => core.set_clock(CoreClock::Frames(Time::now())),
        (CoreClock::Frames(_), false) => core.set_clock(CoreClock::Host),
        _ => {}
    }
}
