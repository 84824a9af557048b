//! The HTTP front end: checks and limits requests, and translates them into operations. It does not depend on the kind
//! of emulator that answers.
//!
//! The modules form layers, listed here from the highest to the lowest. A module imports only from its own layer and
//! from lower layers:
//!
//! - `app`: [`serve`] puts a server together from the settings in [`App`], and finds the route of each request;
//! - `docs` describes all routes ([`openapi`]); `rpc` offers the functions of `v1` as JSON-RPC methods over one
//!   WebSocket; `plain` and `console` hold most other routes;
//! - `v1` holds Framewire's own routes, in JSON; [`compat`] holds **the table of mGBA-http's 62 routes**;
//! - `routing` holds what routes share: their state, the extractors for parts of a request, and their declarations;
//! - `feeds` (watches and events), `pictures`, `sockets` (WebSockets), `storage` (snapshots, recordings, uploaded games
//!   and searches) and `idempotency` (requests with an `Idempotency-Key`) are services, which do not depend on routes;
//! - `operations` performs operations on the [`Emulators`]; `reading` reads JSON and queries;
//! - `access` decides who may send which request; `transport` handles connections and bytes, and their limits;
//! - `metrics` counts for Prometheus; `failure` and `problem` say what went wrong, as text and as JSON; `limits`,
//!   `headers` and `compressed` (replies with gzip) are also used by all layers.

mod access;
mod app;
pub mod compat;
mod compressed;
mod console;
mod docs;
mod failure;
mod feeds;
mod headers;
mod idempotency;
mod limits;
mod metrics;
mod operations;
mod pictures;
mod plain;
mod problem;
mod reading;
mod routing;
mod rpc;
mod sockets;
mod storage;
mod transport;
mod v1;

pub use access::{Access, CHALLENGE, Files, FilesError, PageError, Pages, Token, TokenError, Tokens};
#[cfg(feature = "otlp")]
pub use app::SPANS;
pub use app::{App, FrontEnd, LocalServer, serve};
pub use docs::openapi;
pub use failure::STOPPING;
pub use limits::Limits;
pub use operations::emulators::{Emulators, NameError, Served, is_emulator_name};
pub use rpc::local::LocalCalls;
pub use storage::check_data;
pub use transport::closing::HTTPS_ONLY;
pub use transport::tls::{Tls, TlsError};
