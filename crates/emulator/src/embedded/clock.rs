//! The console's clock of an embedded core.

use framewire_libmgba::{Clock as CoreClock, Core, Time};

use crate::{Clock, ClockTime};

/// Has a core that just began go by its clock.
pub(super) fn begin(clock: Clock, core: &mut Core) {
    core.set_clock(match clock {
        Clock::Wall => CoreClock::Host,
        Clock::Frames => CoreClock::Frames(Time::now()),
        Clock::At(ClockTime { unix_ms, zone }) => CoreClock::Frames(Time { unix_ms, zone: Some(zone) }),
    });
}

/// Has the host's clock make room for one of frames, as long as something needs that.
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
