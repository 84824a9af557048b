//! What all routes share.
//!
//! - `state`: the services; a handler takes those that it uses;
//! - `extract`: extractors for parts of a request;
//! - `prelude`: what most handlers import;
//! - `declare`: what a route declares in addition to its description; `catalog` finds these declarations by path.

pub(crate) mod catalog;
pub(crate) mod declare;
pub(crate) mod extract;
pub(crate) mod prelude;
pub(crate) mod state;
