//! JSON-RPC 2.0 over a WebSocket. One connection can perform operations, use the routes of `/v1` and have
//! subscriptions, all at the same time.
//!
//! - `message`: the text of requests, replies and errors;
//! - `methods`: the methods; operations go to the emulator in the order of their requests;
//! - `routes`: the routes of `/v1` as methods;
//! - `session`: the state of one connection, with its subscriptions;
//! - `connection`: the loop that serves its WebSocket;
//! - `local`: the same methods for other front ends in this process.

mod connection;
pub(crate) mod local;
mod message;
mod methods;
pub(crate) mod routes;
mod session;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::Extensions;
use axum::response::Response;
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::caller::Caller;
use crate::operations::SelectedEmulator;
use crate::problem::Problem;
use crate::routing::declare::Declare;
use crate::routing::extract::{EmulatorParam, OpensStream};
use crate::routing::state::AppState;
use crate::sockets::Upgrade;
use crate::transport::activity::StreamControl;
use crate::transport::streams::StreamKind;
use routes::RouteMethods;
use session::{RpcServices, RpcSession};

/// The route. It needs [`RouteMethods`] in the extensions of its requests.
pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(open).counted_as(StreamKind::Rpc))
}

/// Opens a WebSocket for JSON-RPC 2.0: docs/json-rpc.md.
///
/// Methods are the operations of GET /v1/operations, the operation ids of all routes under `/v1` that are not streams,
/// and `subscribe`, `unsubscribe` and `emulator`. If the parameters of a request do not name an emulator, the request
/// acts on the emulator in the query of this route.
#[utoipa::path(get, path = "/v1/ws", operation_id = "jsonRpc", tag = "watches", params(EmulatorParam),
    responses((status = 101, description = "The connection is now a WebSocket.")))]
async fn open(
    State(services): State<RpcServices>,
    SelectedEmulator { served, .. }: SelectedEmulator,
    stream: OpensStream,
    extensions: Extensions,
    Extension(stream_control): Extension<StreamControl>,
    Extension(methods): Extension<Arc<RouteMethods>>,
    Upgrade(upgrade): Upgrade,
) -> Result<Response, Problem> {
    let caller = Caller::of(&extensions);
    let open = stream.open()?;
    // From now on, the bytes of each message count towards the limit on memory for arriving data.
    stream_control.count_messages();
    let largest = services.limits.max_body;
    let upgrade = upgrade.max_message_size(largest).max_frame_size(largest);
    let (out, outbox) = mpsc::channel(connection::OUT);
    let session = Arc::new(RpcSession::new(services, methods, caller, served, out));
    Ok(upgrade.on_upgrade(move |socket| connection::run(socket, session, outbox, open, stream_control)))
}
