//! Tests with recordings of a real core.

mod clocks;
mod damaged;
mod ended;
mod folder;
mod killed;
mod played;
mod replays;
mod support;
