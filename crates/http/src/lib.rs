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
mod body;
mod budget;
pub mod compat;
mod connection;
mod console;
mod docs;
mod emulators;
mod failure;
mod framing;
mod guard;
mod headers;
mod idempotency;
mod incoming;
mod kept;
mod lockstep;
mod meter;
pub mod openapi;
mod request_id;
mod routes;
mod server;
#[cfg(feature = "otlp")]
mod span;
mod stream;
mod streams;
mod strict;
mod symbols;
mod tls;
mod v1;

pub use access::{Access, CHALLENGE, Files, FilesError, PageError, Pages, Token, TokenError, Tokens};
pub use app::{App, Limits};

pub use emulators::{Emulators, NameError, Served, is_emulator_name};
pub use guard::HTTPS_ONLY;
pub use kept::check_data;
pub use server::serve;
#[cfg(feature = "otlp")]
pub use span::SPANS;
pub use symbols::{SymbolError, SymbolFiles};
pub use tls::{Tls, TlsError};
