//! Pictures and sound: `docs/video.md` describes the messages.
//!
//! - `screen`: one picture;
//! - `multipart`: one picture after another, as JPEG or PNG;
//! - `stream`: the differences from picture to picture, and the sound, over WebSockets.

mod multipart;
mod screen;
mod stream;

use crate::routing::prelude::*;

pub(super) fn router() -> OpenApiRouter<AppState> {
    screen::router().merge(stream::router()).merge(multipart::router())
}
