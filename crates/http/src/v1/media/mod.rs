//! Pictures and sound: `docs/video.md` describes what goes over the wire.
//!
//! - [`screen`]: one picture; [`video`]: the stream of what changed; [`multipart`]: one picture after another;
//!   [`audio`]: the sound;
//! - [`pace`]: limits how many pictures a client gets each second.

mod audio;
mod multipart;
mod pace;
mod params;
mod screen;
mod video;

use utoipa_axum::router::OpenApiRouter;

use crate::routing::state::AppState;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(screen::router())
        .merge(video::router())
        .merge(multipart::router())
        .merge(audio::router())
}
