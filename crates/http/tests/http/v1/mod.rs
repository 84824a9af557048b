//! The routes of `/v1`, Framewire's own interface.

mod batch;
mod cheats;
mod control;
mod emulators;
mod guide;
mod history;
mod input;
mod latency;
pub mod live;
mod machine;
mod media;
mod memory;
mod problems;
mod recordings;
mod rom;
mod script;
mod search;
mod sensors;
mod states;
mod wrong_arguments;

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::support::{Reply, Server};
use crate::until_good::until_good;

/// Like [`until_good`], but only one such measurement runs at a time, because another one would load the machine.
#[track_caller]
fn measure_alone<T: Debug>(measure: impl FnMut() -> T, is_good: impl Fn(&T) -> bool) {
    static TURN: Mutex<()> = Mutex::new(());
    // A measurement that fails poisons the lock.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    until_good(measure, is_good);
}

/// The JSON of a reply, which must have the status 200.
#[track_caller]
fn ok(reply: &Reply) -> Value {
    json_of(reply, 200)
}

/// The JSON of a reply, which must have this status.
#[track_caller]
fn json_of(reply: &Reply, status: u16) -> Value {
    let kind = if status < 400 { "application/json" } else { "application/problem+json" };
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (status, Some(kind)),
        "{}",
        String::from_utf8_lossy(&reply.body)
    );
    serde_json::from_slice(&reply.body).unwrap()
}

/// Sends a request with a JSON body. Returns the JSON of the reply, which must have this status.
#[track_caller]
fn sent(server: &Server, method: &str, target: &str, request: &Value, status: u16) -> Value {
    json_of(&server.send(method, target, request), status)
}

/// Sends a POST with a JSON body. Returns the JSON of the reply, which must have the status 200.
#[track_caller]
fn posted(server: &Server, target: &str, request: &Value) -> Value {
    sent(server, "POST", target, request, 200)
}
