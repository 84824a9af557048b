//! Savestates as bytes and as named snapshots, what changed between two, and searches in memory.

mod bytes;
mod diff;
mod load;
mod place;
mod snapshots;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    let routers = [bytes::router(), snapshots::router(), diff::router()];
    routers.into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge)
}
