//! Tests of channels between threads and between processes, and of processes that are killed.
#![cfg(target_os = "linux")]

mod damaged;
mod exchange;
mod killed;
mod lua;
mod names;
mod support;
#[path = "../../../../tests/src/until_good.rs"]
mod until_good;
