//! The server as a whole: its settings, its parts, and how it runs.
//!
//! - `serve`: puts the services and the routes together and serves them;
//! - `dispatch`: finds out who sent a request, decides whether it is accepted, and passes it to its route;
//! - `request_id`: the id of a request in logs; with the feature `otlp`, `span` makes traces of requests.

mod dispatch;
mod request_id;
mod serve;
#[cfg(feature = "otlp")]
mod span;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use crate::access::Access;
use crate::limits::Limits;
use crate::operations::emulators::Emulators;
use crate::rpc::local::LocalCalls;
use crate::transport::tls::Tls;

pub use serve::{LocalServer, serve};
#[cfg(feature = "otlp")]
pub use span::SPANS;

/// A front end that another crate adds to a server. `Host`, `Origin` and tokens are checked as for all other requests.
/// Read-only callers may use the front end. It gets the rights of a caller from [`LocalCalls::for_sender`].
#[derive(Clone)]
pub struct FrontEnd {
    /// Its path, such as `/mcp`.
    pub path: &'static str,
    /// Makes its routes.
    pub routes: Arc<dyn Fn(LocalCalls) -> Router + Send + Sync>,
}

/// The settings of a server.
#[derive(Clone)]
pub struct App {
    /// The emulators; mGBA-http's routes act on the first.
    pub emulators: Emulators,
    /// How long a request may wait for the emulator before it gets a 504.
    pub deadline: Duration,
    /// The limits for clients.
    pub limits: Limits,
    /// The rules of access.
    pub access: Access,
    /// The certificate for HTTPS. Without one, the server uses HTTP.
    pub tls: Option<Tls>,
    /// The folder for snapshots, recordings and uploaded games. It does not have to exist yet. Without it, the server
    /// stores no snapshots and no recordings. If [`Access::files`] is set, uploaded games are stored there instead.
    /// Without either folder, the server stores no uploaded games.
    pub data: Option<PathBuf>,
    /// Makes the allocator return free memory to the system. It is called on a separate thread after large requests.
    pub release_memory: Option<fn()>,
    /// Whether each request is logged, as an event of level INFO and target `framewire::http`.
    pub log_requests: bool,
    /// A front end of another crate.
    pub front_end: Option<FrontEnd>,
}

impl App {
    /// An app that has the default limits and rules of access, uses HTTP, stores nothing, and logs each request.
    pub fn new(emulators: Emulators, deadline: Duration) -> App {
        App {
            emulators,
            deadline,
            limits: Limits::default(),
            access: Access::default(),
            tls: None,
            data: None,
            release_memory: None,
            log_requests: true,
            front_end: None,
        }
    }
}
