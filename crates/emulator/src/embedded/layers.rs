//! The operations on layers. A layer is a part of the picture or a channel of the sound that can be switched off.

use framewire_libmgba::Core;
use framewire_protocol::{OpError, Value};

/// The result of the operation `layers`.
pub(super) fn list(core: &Core) -> Value {
    let texts = core.layers().into_iter().flat_map(|layer| {
        let kind = if layer.sound { "sound" } else { "picture" };
        let state = if layer.enabled { "on" } else { "off" };
        [layer.name, kind.to_owned(), state.to_owned(), layer.title]
    });
    Value::List(texts.map(Value::Text).collect())
}

/// Whether a layer is a part of the picture. Otherwise it is a channel of the sound.
///
/// # Errors
/// If there is no such layer.
pub(super) fn is_of_picture(core: &Core, name: &str) -> Result<bool, OpError> {
    let layers = core.layers();
    layers.iter().find(|layer| layer.name == name).map(|layer| !layer.sound).ok_or_else(|| {
        let names: Vec<_> = layers.iter().map(|layer| layer.name.as_str()).collect();
        OpError::bad_argument(format!("there is no layer {name:?}; there are {}", names.join(", ")))
    })
}

/// The name of a picture layer that is off; `None` if all are on.
pub(super) fn hidden(core: &Core) -> Option<String> {
    core.layers().into_iter().find(|layer| !layer.sound && !layer.enabled).map(|layer| layer.name)
}
