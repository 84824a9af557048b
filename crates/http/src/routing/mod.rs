//! What routes share.
//!
//! - `state`: the services, of which a handler takes those that it uses;
//! - `extract`: what handlers take from a request;
//! - `prelude`: what most handlers import;
//! - `declare`: what a route declares in addition to its description, and `catalog`, which finds that by a path.

pub(crate) mod catalog;
pub(crate) mod declare;
pub(crate) mod extract;
pub(crate) mod prelude;
pub(crate) mod state;
