use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::core::Core;

/// A sensor that some cartridges have.
///
/// Values are in thousandths. If the console lies still in the dark, all values are 0. They are not part of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensor {
    /// The tilt to the right: -1000 to 1000.
    TiltX,
    /// The tilt towards the player: -1000 to 1000.
    TiltY,
    /// The speed of a clockwise rotation: -1000 to 1000.
    Gyro,
    /// The light of the sun: 0 to 1000.
    Light,
}

impl Sensor {
    /// All sensors, in the order of the shim's `enum fw_sensor`.
    pub const ALL: [Sensor; 4] = [Sensor::TiltX, Sensor::TiltY, Sensor::Gyro, Sensor::Light];

    /// Its name in operations.
    pub fn name(self) -> &'static str {
        match self {
            Sensor::TiltX => "tilt_x",
            Sensor::TiltY => "tilt_y",
            Sensor::Gyro => "gyro",
            Sensor::Light => "light",
        }
    }

    /// The values that it can have, in thousandths.
    pub fn range(self) -> RangeInclusive<i32> {
        match self {
            Sensor::TiltX | Sensor::TiltY | Sensor::Gyro => -1000..=1000,
            Sensor::Light => 0..=1000,
        }
    }

    /// Converts a value in thousandths to libmgba's unit.
    fn for_mgba(self, thousandths: i32) -> i32 {
        match self {
            // In libmgba, these values use the whole range of a signed 32-bit integer.
            Sensor::TiltX | Sensor::TiltY | Sensor::Gyro => thousandths * (i32::MAX / 1000),
            Sensor::Light => thousandths * i32::from(u8::MAX) / 1000,
        }
    }
}

impl FromStr for Sensor {
    type Err = String;

    fn from_str(text: &str) -> Result<Sensor, String> {
        Sensor::ALL.into_iter().find(|sensor| sensor.name() == text).ok_or_else(|| {
            let names = Sensor::ALL.map(Sensor::name).join(", ");
            format!("there is no sensor {text:?}; there are {names}")
        })
    }
}

impl Core {
    /// The value of a sensor in thousandths.
    pub fn sensor(&self, sensor: Sensor) -> i32 {
        self.sensors[sensor as usize]
    }

    /// Sets a sensor. The game sees the value when it next reads the sensor. A value outside of [`Sensor::range`] is
    /// clamped.
    pub fn set_sensor(&mut self, sensor: Sensor, thousandths: i32) {
        let range = sensor.range();
        let thousandths = thousandths.clamp(*range.start(), *range.end());
        self.sensors[sensor as usize] = thousandths;
        self.put_sensor(sensor as u32, sensor.for_mgba(thousandths));
    }
}
