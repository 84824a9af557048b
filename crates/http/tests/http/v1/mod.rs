//! Framewire's own interface.

mod batch;
mod control;
mod input;
mod live;
mod media;
mod memory;
mod problems;

use serde_json::Value;

use crate::support::Reply;

/// What a request that succeeds is answered with.
#[track_caller]
fn ok(reply: &Reply) -> Value {
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json")),
        "{}",
        reply.text()
    );
    serde_json::from_slice(&reply.body).unwrap()
}
