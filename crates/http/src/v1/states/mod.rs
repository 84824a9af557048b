//! Savestates as bytes and as named snapshots, what changed between two, and searches in memory.

mod bytes;
mod diff;
pub(super) mod load;
pub(super) mod place;
mod snapshots;

use utoipa_axum::router::OpenApiRouter;

use crate::routing::state::AppState;

pub(super) fn router() -> OpenApiRouter<AppState> {
    let routers = [bytes::router(), snapshots::router(), diff::router()];
    routers.into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge)
}
