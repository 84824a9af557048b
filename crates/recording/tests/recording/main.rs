//! Tests with recordings of a real core.

mod clocks;
mod damaged;
mod ended;
mod kept;
mod killed;
mod played;
mod replays;
mod support;
