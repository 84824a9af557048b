//! A load tester that measures waiting correctly: open loop, clocked from the *intended* send time.
//!
//! A tester that sends its next request only after the last reply stops asking exactly while the server is slow, and so
//! never measures the waiting that it caused ("coordinated omission"). Here a request is due at its time whatever became
//! of the ones before it, and its clock starts when it was due. The time from the actual send is recorded too.
//!
//! From input to output:
//!
//! - [`plan`]: one run: load model, duration, payload, limits; [`rates`]: lists and ranges of rates; [`stages`]: rates that change;
//! - [`Strategy`]: when connections are opened, shared and closed;
//! - [`target`]: **what to implement for a new kind of server**; [`http`]: the built-in one for HTTP; [`url`]: addresses;
//! - [`check`]: which replies are right; [`payload`]: fresh payloads; [`schedule`]: when requests are due;
//! - [`engine`]: runs a plan: one thread and one async runtime a worker, paced to microseconds;
//! - [`record`]: histograms and counts of an interval; [`probe`]: a counter sampled during the run;
//! - [`row`]: the figures of one run; [`metric`]: figures by name; [`goal`]: what is good enough; [`search`]: the
//!   highest rate that is;
//! - [`report`]: Markdown, JSON, HDR log and HTML; [`compare`]: two reports side by side.
//!
//! The crate does not depend on what it measures: another protocol implements [`target::Target`].

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
