//! GET /v1/events, and events beside watches.

use super::client::{Events, watch};
use crate::support::Server;

#[test]
fn resets_are_told_and_can_be_caught_up_with() {
    let server = Server::start();
    let mut events = Events::open(&server, "/v1/events");
    server.post_ok("/coreadapter/reset", "");
    let reset = events.wait_for("reset");
    assert!(reset.data["frame"].is_u64(), "{reset:?}");
    drop(events);
    server.post_ok("/coreadapter/reset", "");
    let mut events = Events::resume(&server, "/v1/events", Some(&reset.id));
    events.wait_for("reset");
}

#[test]
fn a_watch_tells_events_too_if_asked_to() {
    let server = Server::start();
    let mut events = Events::open(&server, &format!("{}&events=true", watch(&["u8[0x02000100]"])));
    assert_eq!(events.next().unwrap().name, "values");
    server.post_ok("/core/write8?address=0x02000100&value=1", "");
    assert_eq!(events.next().unwrap().name, "change");
    server.post_ok("/coreadapter/reset", "");
    events.wait_for("reset");
}
