//! Layers of an embedded core's picture, and channels of its sound.

use framewire_protocol::{Op, OpError, Value};

use super::control::{AtFrame, change};
use crate::routing::prelude::*;

/// How many strings the result of the operation `layers` has for each layer.
const TEXTS: usize = 4;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(switch))
}

/// Layers.
#[derive(Serialize, ToSchema)]
struct Layers {
    /// The layers of the picture, and then the channels of the sound.
    layers: Vec<Layer>,
}

/// A layer of the picture, or a channel of the sound.
#[derive(Serialize, ToSchema)]
struct Layer {
    /// Its short name.
    name: String,
    /// The name to display.
    title: String,
    /// What it is a part of: `picture` or `sound`.
    kind: String,
    /// Whether it is on.
    enabled: bool,
}

impl Layer {
    fn read(texts: &[Value]) -> Option<Layer> {
        let [Value::Text(name), Value::Text(kind), Value::Text(state), Value::Text(title)] = texts else {
            return None;
        };
        let (name, title, kind) = (name.clone(), title.clone(), kind.clone());
        Some(Layer { name, title, kind, enabled: state == "on" })
    }
}

/// The layers of the picture (backgrounds, objects and windows) and the channels of the sound.
///
/// A stock mGBA answers 501, because its scripts cannot switch layers. Use the menu of its window.
#[utoipa::path(get, path = "/v1/layers", operation_id = "layers", tag = "media", params(EmulatorParam),
    responses((status = 200, description = "All layers and channels.", body = Layers)))]
async fn list(selected: SelectedEmulator) -> Result<Json<Layers>> {
    let layers = match selected.perform(Op::Layers {}).await?.single()? {
        Value::List(texts) => texts.chunks(TEXTS).map(Layer::read).collect(),
        _ => None,
    };
    let layers = layers.ok_or_else(|| OpError::failed("the emulator's list of layers cannot be read"))?;
    Ok(Json(Layers { layers }))
}

/// Whether a layer is on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LayerSwitch {
    enabled: bool,
}

/// Switches a layer of the picture or a channel of the sound on or off, from the next frame on. This does not affect
/// the game.
///
/// A replay compares pictures. So layers of the picture cannot be switched during a recording or replay, and neither
/// can begin while such a layer is off.
#[utoipa::path(put, path = "/v1/layers/{name}", operation_id = "switchLayer", tag = "media",
    params(("name" = String, Path, description = "Its short name."), EmulatorParam), request_body = LayerSwitch,
    responses((status = 200, description = "The layer or channel was switched.", body = AtFrame)))]
async fn switch(
    selected: SelectedEmulator,
    Path(layer): Path<String>,
    Payload(LayerSwitch { enabled }): Payload<LayerSwitch>,
) -> Result<Json<AtFrame>> {
    change(&selected, Op::SetLayer { layer, enabled }).await
}
