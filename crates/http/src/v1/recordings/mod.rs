//! Recordings: made, kept as files, and replayed.

mod files;
mod making;
mod replay;

use utoipa_axum::router::OpenApiRouter;

use crate::routing::state::AppState;

pub(super) fn router() -> OpenApiRouter<AppState> {
    making::router().merge(files::router()).merge(replay::router())
}
