//! The server as a whole: what it is made from, and how it is served.
//!
//! - `serve`: puts the services and the routes together and serves them;
//! - `dispatch`: what happens to a request: who sent it, whether it is accepted, and which route answers it;
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

/// A front end that another crate adds to a server. Its requests pass the same checks of `Host`, `Origin` and tokens as all
/// others. Read-only callers may use it. It gets the rights of a caller from [`LocalCalls::for_sender`].
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
    /// The folder for snapshots and recordings. It does not have to exist yet. Without a folder, none can be made.
    pub data: Option<PathBuf>,
    /// Makes the allocator return free memory to the system. It is called on its own thread after large requests.
    pub release_memory: Option<fn()>,
    /// Whether each request leaves a line in the log: an event of level INFO and target `framewire::http`.
    pub log_requests: bool,
    /// A front end of another crate.
    pub front_end: Option<FrontEnd>,
}

impl App {
    /// An app with the default limits and a log of requests.
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
