//! The HTTP front end: translates requests into operations, checks and limits them, and knows nothing of the kind of
//! emulator behind the trait.
//!
//! From the socket inwards:
//!
//! - [`serve`] accepts connections and ends them cleanly; `connection` is the life of one of them and `guard` its
//!   watch over slow and oversized clients;
//! - `stream` is that connection with TLS or without, by the certificate of [`Tls`];
//! - `access` knows who may ask for what: web pages, tokens, files;
//! - `routes` finds what a request is for, and holds those of Framewire's own that answer in plain text; [`App`] is what
//!   all requests share, [`Emulators`] what they act on and [`Symbols`] names for its addresses;
//! - `v1` is Framewire's own interface, in JSON;
//! - `console` serves the page for people;
//! - [`compat`] holds **the table of mGBA-http's 62 routes**, from which dispatch, checks and documents come;
//! - [`openapi`] writes the OpenAPI document from the tables;
//! - `idempotency` does requests with an `Idempotency-Key` once, and answers their repeats;
//! - `kept` holds what outlives a request: snapshots, recordings, searches, replays;
//! - `incoming` bounds the memory of what arrives and `budget` that of replies, `streams` how many streams are open;
//! - `framing` finds heads that could be understood in two ways, in the bytes before hyper has them, and `strict` in what
//!   hyper makes of them;
//! - `meter` counts all of it for Prometheus, and `request_id` names requests in logs;
//!   with the feature `otlp`, `span` makes traces of them;
//! - `failure` maps every way of failing to a status and a sentence.

mod access;
mod app;
pub mod compat;
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
mod problem;
mod reading;
mod routing;
mod rpc;
mod sockets;
mod storage;
mod symbols;
mod transport;
mod v1;

pub use access::{Access, CHALLENGE, Files, FilesError, PageError, Pages, Token, TokenError, Tokens};
pub use app::App;
#[cfg(feature = "otlp")]
pub use app::span::SPANS;
pub use docs::openapi;
pub use limits::Limits;
pub use operations::emulators::{Emulators, NameError, Served, is_emulator_name};
pub use storage::check_data;
pub use symbols::{SymbolError, SymbolFiles};
pub use transport::guard::HTTPS_ONLY;
pub use transport::server::serve;
pub use transport::tls::{Tls, TlsError};
