//! Channels between threads, between processes, and between a process and one that is killed.
#![cfg(target_os = "linux")]

mod damaged;
mod exchange;
mod killed;
mod lua;
mod names;
mod support;
