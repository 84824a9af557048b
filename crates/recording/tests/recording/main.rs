//! Tests with recordings of a real core.

mod clocks;
mod damaged;
mod ended;
mod folder;
#[path = "../../../../tests/src/keypad_counter.rs"]
mod keypad_counter;
mod killed;
mod played;
mod replays;
mod support;
