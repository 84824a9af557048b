//! Recordings of a real core, played on another.

mod clocks;
mod damaged;
mod ended;
mod kept;
mod killed;
mod played;
mod replays;
mod support;
