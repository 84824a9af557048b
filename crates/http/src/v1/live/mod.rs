//! What is told as it happens: watches over memory and the emulator's own events, over server-sent events and WebSocket.
//!
//! From what a client writes to what it reads:
//!
//! - `definition`: what is to be watched, compiled to ranges of memory;
//! - `registry`: the feeds there are; who watches the same shares one;
//! - `collect`: the task behind a feed, and `memory`, which makes values from what the emulator tells;
//! - `feed` and `ring`: the last events, and readers that go through them at their own pace;
//! - `sse`, `watches`, `events`: feeds over HTTP; `rpc`: all of it over one WebSocket;
//! - `wait`: an answer once a condition holds.

mod collect;
mod definition;
mod events;
mod feed;
mod memory;
mod registry;
mod ring;
pub(crate) mod rpc;
mod sse;
mod wait;
mod watches;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::app::Site;
pub(crate) use registry::Live;

pub(super) fn router() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new().merge(watches::router()).merge(events::router()).merge(wait::router())
}
