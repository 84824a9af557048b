use crate::core::Core;
use crate::sys;

/// The time source of the clocks of cartridges: those of the Game Boy with an MBC3, and
/// of the GBA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The host's clock, at any speed of the emulator.
    Host,
    /// A clock that advances with the frames and stands still between them. It
    /// continues over resets. A state that was saved with a clock sets it.
    Frames(Time),
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Unix time in milliseconds.
    pub unix_ms: i64,
    /// Seconds east of UTC of the calendar that a GBA game sees; `None` for the
    /// host's.
    pub zone: Option<i32>,
}

/// In the shim, no zone but the host's.
const NO_ZONE: i32 = i32::MIN;

impl Time {
    /// The host's time and zone.
    pub fn now() -> Time {
        let (unix_ms, zone) = sys::host_time();
        Time { unix_ms, zone: Some(zone) }
    }
}

impl Core {
    /// The time source of the clock, and its present time if that is frames.
    pub fn clock(&mut self) -> Clock {
        match self.handle.frame_clock() {
            None => Clock::Host,
            Some((unix_ms, zone)) => {
                Clock::Frames(Time { unix_ms, zone: Some(zone).filter(|zone| *zone != NO_ZONE) })
            }
        }
    }

    /// Sets the time source of the clock, and its time if that is frames.
    pub fn set_clock(&mut self, clock: Clock) {
        match clock {
            Clock::Host => self.handle.set_host_clock(),
            Clock::Frames(Time { unix_ms, zone }) => {
                self.handle.set_frame_clock(unix_ms, zone.unwrap_or(NO_ZONE));
            }
        }
    }
}
