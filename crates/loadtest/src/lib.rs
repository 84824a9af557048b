//! A load tester that measures waiting times correctly: in an open loop, and from the *intended* send time.
//!
//! Some testers send each request only after the reply to the last one. So they stop sending exactly while the server
//! is slow, and do not measure how long other requests would have waited ("coordinated omission"). With an open load,
//! this tester decides when each request is due without regard to the replies to earlier requests. The latency of a
//! request counts from the time at which the request was due. The latency from the actual send is recorded, too.
//!
//! From input to output:
//!
//! - [`plan`]: one run: load model, duration, payload, limits; [`rates`]: lists and ranges of rates; [`stages`]: rates
//!   that change;
//! - [`Strategy`]: when connections are opened, shared and closed;
//! - [`target`]: **what to implement for a new kind of server**; [`http`]: the built-in target for HTTP; [`url`]:
//!   addresses;
//! - [`check`]: which replies are correct; [`payload`]: a different payload for each request; [`schedule`]: when
//!   requests are due;
//! - [`engine`]: runs a plan: with one thread and one async runtime per worker, and a precision of microseconds;
//! - [`record`]: histograms and counts of an interval; [`probe`]: a counter that is sampled during the run;
//! - [`row`]: the figures of one run; [`metric`]: figures by name; [`goal`]: conditions on figures; [`search`]: finds
//!   the highest rate that meets a goal;
//! - [`report`]: Markdown, JSON, HTML, CSV, Prometheus' text format and HDR log; [`compare`]: compares two reports.
//!
//! To measure another protocol, implement [`target::Target`]. The rest of the crate does not depend on the protocol.

pub mod check;
pub mod compare;
pub mod engine;
pub mod goal;
pub mod http;
pub mod metric;
pub mod payload;
pub mod plan;
pub mod probe;
pub mod rates;
pub mod record;
pub mod report;
mod retries;
pub mod row;
pub mod schedule;
pub mod search;
pub mod stages;
mod strategy;
pub mod target;
pub mod url;

pub use check::Check;
pub use engine::{Stop, run};
pub use plan::{Arrivals, Load, Plan};
pub use retries::{Retries, RetriesError};
pub use row::Row;
pub use strategy::{Strategy, StrategyError};
pub use target::{Call, Client, Failure, Session, Target};
