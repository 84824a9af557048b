//! Feeds: what a watch reports, kept for a while and read by any number of readers.
//!
//! - `definition`: what a client wants to watch, compiled to ranges of memory;
//! - `registry`: all feeds; clients that watch the same share one;
//! - `collect`: the task that fills a feed, and `memory`, which makes values from what the emulator reports;
//! - `feed` and `ring`: the last events, and readers that go through them at their own pace.

pub(crate) mod collect;
pub(crate) mod definition;
pub(crate) mod feed;
pub(crate) mod memory;
pub(crate) mod registry;
pub(crate) mod ring;
