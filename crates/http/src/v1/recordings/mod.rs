//! Recordings: made, kept as files, and replayed.

mod files;
mod making;
mod replay;
pub(crate) mod replays;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    making::router().merge(files::router()).merge(replay::router())
}
