//! The operations on a cartridge's sensors.

use framewire_libmgba::{Core, Sensor};
use framewire_protocol::{OpError, Value};

/// The result of the operation `sensors`.
pub(super) fn list(core: &Core) -> Value {
    let texts = Sensor::ALL
        .into_iter()
        .flat_map(|sensor| [sensor.name().to_owned(), core.sensor(sensor).to_string()]);
    Value::List(texts.map(Value::Text).collect())
}

/// Sets a sensor. [`Op::check`](framewire_protocol::Op::check) has checked that the value is in range.
///
/// # Errors
/// If there is no such sensor.
pub(super) fn set(core: &mut Core, name: &str, thousandths: i32) -> Result<(), OpError> {
    core.set_sensor(name.parse().map_err(OpError::bad_argument)?, thousandths);
    Ok(())
}

/// The name of a sensor whose value is not 0; `None` if all are 0.
pub(super) fn not_at_rest(core: &Core) -> Option<&'static str> {
    Sensor::ALL.into_iter().find(|sensor| core.sensor(*sensor) != 0).map(Sensor::name)
}

/// Copies the values of all sensors from one core to another.
pub(super) fn copy(from: &Core, to: &mut Core) {
    for sensor in Sensor::ALL {
        to.set_sensor(sensor, from.sensor(sensor));
    }
}
