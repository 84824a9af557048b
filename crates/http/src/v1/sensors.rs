//! The sensors of an embedded core's cartridge.

use framewire_protocol::{Op, OpError, Value};

use super::control::AtFrame;
use crate::routing::prelude::*;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, set))
}

/// Operations give the values of sensors in thousandths, so this number stands for the value 1.
const ONE: f64 = 1000.0;

/// The values of the sensors.
#[derive(Serialize, ToSchema)]
struct Sensors {
    /// The tilt to the right: -1 to 1.
    tilt_x: f64,
    /// The tilt towards the player: -1 to 1.
    tilt_y: f64,
    /// The speed of turning clockwise: -1 to 1.
    gyro: f64,
    /// The light of the sun: 0 to 1.
    light: f64,
    /// The frame counter now.
    frame: u32,
}

/// The sensors of the cartridge: tilt, turning and light. Games for cartridges with sensors read them.
///
/// A stock mGBA answers 501, because its scripts cannot use sensors. Use the menu of its window.
#[utoipa::path(get, path = "/v1/sensors", operation_id = "sensors", tag = "sensors", params(EmulatorParam),
    responses((status = 200, description = "Their values.", body = Sensors)))]
async fn list(selected: SelectedEmulator) -> Result<Json<Sensors>> {
    let outcome = selected.perform(Op::Sensors {}).await?;
    let frame = outcome.frame;
    let Value::List(texts) = outcome.single()? else { return Err(unreadable().into()) };
    let value = |name: &str| {
        let pair = texts.chunks(2).find(|pair| pair[0] == Value::Text(name.to_owned()));
        let Some([_, Value::Text(thousandths)]) = pair else { return Err(unreadable()) };
        thousandths.parse::<f64>().map(|thousandths| thousandths / ONE).map_err(|_| unreadable())
    };
    Ok(Json(Sensors {
        tilt_x: value("tilt_x")?,
        tilt_y: value("tilt_y")?,
        gyro: value("gyro")?,
        light: value("light")?,
        frame,
    }))
}

fn unreadable() -> OpError {
    OpError::failed("the emulator's list of sensors cannot be read")
}

/// New values of sensors. Sensors that are left out do not change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"tilt_x": -0.25, "tilt_y": 0}))]
struct SensorValues {
    /// The tilt to the right.
    #[schema(minimum = -1, maximum = 1)]
    tilt_x: Option<f64>,
    /// The tilt towards the player.
    #[schema(minimum = -1, maximum = 1)]
    tilt_y: Option<f64>,
    /// The speed of turning clockwise.
    #[schema(minimum = -1, maximum = 1)]
    gyro: Option<f64>,
    /// The light of the sun.
    #[schema(minimum = 0, maximum = 1)]
    light: Option<f64>,
}

/// Sets sensors, all at the same frame. The game gets the new values when it next reads the sensors.
///
/// The sensors keep their values until they are set again. A reset or a loaded state does not change them. Recordings
/// do not contain the values of sensors. So sensors cannot be changed during a recording or replay, and neither can
/// begin while a sensor is not 0.
#[utoipa::path(put, path = "/v1/sensors", operation_id = "setSensors", tag = "sensors", params(EmulatorParam),
    request_body = SensorValues, responses((status = 200, description = "The sensors were set.", body = AtFrame)))]
async fn set(
    selected: SelectedEmulator,
    Payload(SensorValues { tilt_x, tilt_y, gyro, light }): Payload<SensorValues>,
) -> Result<Json<AtFrame>> {
    let mut ops = Vec::new();
    for (name, value, least) in
        [("tilt_x", tilt_x, -1.0), ("tilt_y", tilt_y, -1.0), ("gyro", gyro, -1.0), ("light", light, 0.0)]
    {
        let Some(value) = value else { continue };
        if !(least..=1.0).contains(&value) {
            return Err(Problem::parameter(name, &format!("is {value}"), format!("{least} to 1")));
        }
        ops.push(Op::SetSensor { sensor: name.to_owned(), thousandths: (value * ONE).round() as i32 });
    }
    if ops.is_empty() {
        return Err(Problem::bad_request("no sensor is given; accepted are tilt_x, tilt_y, gyro and light"));
    }
    let outcome = selected.perform(selected.keyed(ops)).await?;
    match outcome.results.into_iter().find_map(Result::err) {
        Some(error) => Err(error.into()),
        None => Ok(Json(AtFrame { frame: outcome.frame })),
    }
}
