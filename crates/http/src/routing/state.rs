//! The services that handlers use.

use std::sync::Arc;

use axum::extract::FromRef;
use framewire_recording::{Recordings, Replays};
use framewire_states::Snapshots;

use crate::feeds::registry::Feeds;
use crate::idempotency::Idempotency;
use crate::limits::Limits;
use crate::metrics::Meter;
use crate::operations::Operations;
use crate::pictures::encoder::{PictureEncoders, ViewerLimit};
use crate::storage::{SearchTable, Storage, Uploads};
use crate::transport::Stopping;
use crate::transport::incoming::BodyReader;
use crate::transport::streams::StreamLimit;

/// The state of the router. Each handler takes the services that it uses, for example as `State<Arc<Feeds>>`.
#[derive(Clone)]
pub(crate) struct AppState(Arc<Services>);

impl AppState {
    pub(crate) fn new(services: Services) -> AppState {
        AppState(Arc::new(services))
    }
}

/// Declares the services, and lets handlers take each of them as `State`.
macro_rules! services {
    ($($(#[doc = $doc:literal])+ $name:ident: $service:ty),+ $(,)?) => {
        /// All services.
        pub(crate) struct Services {
            $($(#[doc = $doc])+ pub(crate) $name: $service,)+
        }

        $(impl FromRef<AppState> for $service {
            fn from_ref(state: &AppState) -> $service {
                state.0.$name.clone()
            }
        })+
    };
}

services! {
    /// Performs operations on the emulators.
    operations: Arc<Operations>,
    /// Reads bodies.
    bodies: Arc<BodyReader>,
    /// Whether the server is stopping.
    stopping: Stopping,
    /// The limits for clients.
    limits: Arc<Limits>,
    /// The counters.
    meter: Arc<Meter>,
    /// Performs requests with an `Idempotency-Key` only once.
    idempotency: Arc<Idempotency>,
    /// Limits how many streams are open.
    streams: StreamLimit,
    /// Limits how many clients get pictures or sound.
    viewers: ViewerLimit,
    /// The feeds of watches and events.
    feeds: Arc<Feeds>,
    /// The pictures of emulators that have viewers.
    encoders: Arc<PictureEncoders>,
    /// The snapshots on disk.
    snapshots: Storage<Snapshots>,
    /// The recordings on disk.
    recordings: Storage<Recordings>,
    /// The games that clients sent.
    uploads: Storage<Uploads>,
    /// The searches in memory.
    searches: Arc<SearchTable>,
    /// Replays under way, and the last one of each emulator.
    replays: Arc<Replays>,
}
