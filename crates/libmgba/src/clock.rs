use crate::core::Core;
use crate::sys;

/// The time source for the clocks in cartridges: Game Boy cartridges with an MBC3, a
/// HuC-3 or a TAMA5, and GBA cartridges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The host's clock, whatever the speed of the emulator is.
    Host,
    /// A clock that advances only with the frames. It continues across resets. Loading a state with
    /// [`flags::RTC`](crate::flags::RTC) sets it: to the clock in the state or, if the state was saved without such a
    /// clock, to the time at which the state was made. If the state has neither, the clock continues.
    Frames(Time),
}

/// The time of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Unix time in milliseconds.
    pub unix_ms: i64,
    /// The time zone of the calendar that a GBA game sees, in seconds east of UTC; `None` for the host's time zone.
    pub zone: Option<i32>,
}

/// The shim's value for the host's time zone, `FW_NO_ZONE`.
const NO_ZONE: i32 = i32::MIN;

impl Time {
    /// The host's time and time zone.
    pub fn now() -> Time {
        let (unix_ms, zone) = sys::host_time();
        Time { unix_ms, zone: Some(zone) }
    }
}

impl Core {
    /// The time source of the clock, and its present time if it advances with the frames.
    pub fn clock(&mut self) -> Clock {
        match self.handle.frame_clock() {
            None => Clock::Host,
            Some((unix_ms, zone)) => {
                Clock::Frames(Time { unix_ms, zone: Some(zone).filter(|zone| *zone != NO_ZONE) })
            }
        }
    }

    /// Sets the time source of the clock, and its time if it advances with the frames.
    pub fn set_clock(&mut self, clock: Clock) {
        match clock {
            Clock::Host => self.follow_host_clock(),
            Clock::Frames(Time { unix_ms, zone }) => {
                self.follow_frames(unix_ms, zone.unwrap_or(NO_ZONE));
            }
        }
    }

    /// Sets the clock and restarts the game. The clock of a Game Boy cartridge counts from the time of the last reset.
    /// So without the reset, the game would see a time that depends on what the clock showed before.
    pub fn reset_with_clock(&mut self, clock: Clock) {
        self.set_clock(clock);
        self.reset();
    }
}
