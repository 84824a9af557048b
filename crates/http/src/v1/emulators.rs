//! The emulators that are served, and their states.

use framewire_emulator::State as EmulatorState;

use crate::operations::Operations;
use crate::operations::emulators::Served;
use crate::routing::prelude::*;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(all)).routes(routes!(one))
}

/// The emulators that are served.
#[derive(Serialize, ToSchema)]
struct EmulatorList {
    /// All emulators. A request without `?emulator=` acts on the first one.
    emulators: Vec<Named>,
}

/// An emulator.
#[derive(Serialize, ToSchema)]
struct Named {
    /// Its name for `?emulator=`.
    name: String,
    /// Its state.
    #[serde(flatten)]
    state: EmulatorState,
}

/// The emulators that are served, and their states.
#[utoipa::path(get, path = "/v1/emulators", operation_id = "emulators", tag = "emulators",
    responses((status = 200, description = "All emulators, in order.", body = EmulatorList)))]
async fn all(State(operations): State<Arc<Operations>>) -> Json<EmulatorList> {
    let named = |served: &Arc<Served>| Named { name: served.name.clone(), state: served.emulator.state() };
    Json(EmulatorList { emulators: operations.emulators.iter().map(named).collect() })
}

/// Returns the state of an emulator, without waiting for it.
#[utoipa::path(get, path = "/v1/emulator", operation_id = "emulatorState", tag = "emulators", params(EmulatorParam),
    responses((status = 200, description = "Kind, connection, speed, game and versions.", body = EmulatorState)))]
async fn one(selected: SelectedEmulator) -> Json<EmulatorState> {
    Json(selected.emulator.state())
}
