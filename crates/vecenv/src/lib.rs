//! Vectors of environments for reinforcement learning: many embedded cores in one process, on a pool of threads.
//!
//! A [`Task`] is a scenario of a game file that is ready to run: its ROM, its start, and the shapes of its
//! observations. A [`VectorEnv`] runs many environments of one task. A thread runs all frames of a step on one core
//! before it continues with the next core, so that the core's memory stays in the processor's cache. Only frames that
//! are observed are drawn, unless [`Options::renders`] is true. Rewards, and the conditions under which episodes end,
//! are evaluated after each frame, even after frames that are not observed. The same seeds and actions give the same
//! states and observations on every machine, with any number of threads.
//!
//! - [`Task`]: what all environments share, and the shapes of observations;
//! - [`VectorEnv`]: the environments; [`Autoreset`]: what happens after the end of an episode;
//! - [`Explorer`]: plays many branches from saved states, for searches;
//! - [`Batch`]: the memory into which a step writes its results;
//! - [`Memory`]: reads the numbers that formulas need from a core's memory;
//! - [`Error`]: why something cannot be done.

mod batch;
mod environment;
mod error;
mod memory;
mod saved;
mod screen;
mod search;
mod task;
mod vector;

pub use batch::Batch;
pub use error::Error;
pub use memory::{Memory, find_domain};
pub use search::{Explorer, Found, Goals, Job, Plan, Rollout};
pub use task::Task;
pub use vector::{Autoreset, Options, VectorEnv};
