//! Pictures and sound: `docs/video.md` describes what goes over the wire.
//!
//! - [`screen`]: one picture; [`video`]: the stream of what changed; [`multipart`]: one picture behind the other;
//!   [`audio`]: the sound;
//! - [`studio`]: the pictures of an emulator, which all who look at it share: they come from a [`source`], which may have to ask
//!   for [`screenshots`], and each is a [`shot`], encoded once for all;
//! - [`line`]: a WebSocket whose other end is never sent more than it takes, by [`flight`], nor more often than it wants,
//!   by [`pace`];
//! - [`seats`]: how many may look and listen at once.

mod audio;
mod flight;
mod line;
mod multipart;
mod pace;
mod params;
mod screen;
mod screenshots;
pub(crate) mod seats;
mod shot;
mod source;
pub(crate) mod studio;
mod video;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .merge(screen::router())
        .merge(video::router())
        .merge(multipart::router())
        .merge(audio::router())
}
