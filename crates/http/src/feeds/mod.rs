//! Feeds: what a watch reports, kept for a while and read by any number of readers.
//!
//! - `definition`: the definition of a watch: expressions, the memory that they need, and their values;
//! - `registry`: all feeds; clients that watch the same values can share one feed;
//! - `collect`: the task that fills a feed;
//! - `feed` and `ring`: the most recent events, and readers that go through them at their own pace.

pub(crate) mod collect;
pub(crate) mod definition;
pub(crate) mod feed;
pub(crate) mod registry;
pub(crate) mod ring;
