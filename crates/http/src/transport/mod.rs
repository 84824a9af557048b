//! Bytes and connections. Nothing here knows of routes, access rules or emulators.
//!
//! - `listener`: accepts connections and counts them;
//! - `connection`: the life of one connection, and `closing` its end;
//! - `activity`: what a connection is doing; `guard` watches that for slow, silent and oversized clients, and `refusal` has
//!   the replies to them;
//! - `client_stream`: a connection with or without TLS, by the certificate of `tls`;
//! - `framing`: finds heads that could be understood in two ways, in the bytes before hyper has them; `strict`: the same
//!   in what hyper makes of them;
//! - `incoming`: limits the memory for what arrives, and `body` reads it;
//! - `streams`: limits how many streams are open.

pub(crate) mod activity;
pub(crate) mod body;
mod client_stream;
pub(crate) mod closing;
pub(crate) mod connection;
mod framing;
pub(crate) mod guard;
pub(crate) mod incoming;
pub(crate) mod listener;
pub(crate) mod peer;
pub(crate) mod refusal;
pub(crate) mod streams;
pub(crate) mod strict;
pub(crate) mod tls;
