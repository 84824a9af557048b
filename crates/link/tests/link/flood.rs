//! Tests of peers that never stop sending.

use std::time::{Duration, Instant};

use framewire_link::{Config, LinkError, Phase};
use framewire_protocol::{Frame, Outcome, Reply};

use crate::peer::{Connection, Peer};
use crate::until_good::until_good;
use crate::{Client, read8, soon};

/// Sends the same bytes forever.
fn flood(connection: &mut Connection, bytes: &[u8]) -> Option<()> {
    let piece = bytes.repeat((1 << 20) / bytes.len() + 1);
    loop {
        connection.send(&piece)?;
    }
}

/// Checks that requests fail by their deadline with an error that `expected` accepts, and that the link can be closed.
fn check_deadlines_and_close(client: &Client, expected: impl Fn(&LinkError) -> bool) {
    let measure = || {
        let begun = Instant::now();
        let error = soon(&client.submit(read8(), Duration::from_millis(300))).expect_err("nobody answers");
        let time = begun.elapsed();
        assert!(expected(&error), "{error:?}");
        time
    };
    for _ in 0..3 {
        until_good(measure, |time| *time < Duration::from_secs(2));
    }
    assert!(client.closes());
}

#[test]
fn a_flood_of_unrequested_frames_does_not_block_the_link() {
    let reply = Reply { id: 0x8000_0000, outcome: Outcome::default() };
    for frame in [Frame::Pong { id: 1, frame: 1 }, Frame::Reply(reply)] {
        let peer = Peer::start(move |_, mut script| {
            script.greet()?;
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            flood(&mut script, &bytes)
        });
        let client = Client::start(&peer.address);
        client.wait_for("a connection", |status| status.phase == Phase::Ready);
        check_deadlines_and_close(&client, |error| matches!(error, LinkError::Late { .. }));
        assert_eq!(peer.connections(), 1);
    }
}

#[test]
fn a_flood_instead_of_a_greeting_is_refused() {
    for bytes in [&b"x"[..], b"\0", b"hello<|END|>"] {
        let peer = Peer::start(move |_, mut other| flood(&mut other, bytes));
        let client = Client::start(&peer.address);
        client.wait_for("a refusal", |status| status.phase == Phase::Absent);
        check_deadlines_and_close(
            &client,
            |error| matches!(error, LinkError::Absent { problem, .. } if problem.contains("not an emulator's script")),
        );
    }
}

#[test]
fn the_link_pauses_before_it_reconnects_to_a_script_that_ends_each_connection() {
    let peer = Peer::start(|_, mut script| script.greet());
    let (first_retry, last_retry) = (Duration::from_millis(500), Duration::from_secs(1));
    let config = Config { address: peer.address.clone(), first_retry, last_retry, ..Config::default() };
    let begun = Instant::now();
    let client = Client::with(config);
    client.wait_for("four connections", |_| peer.connections() >= 4);
    // The three pauses are at least three quarters of 0.5 s, 1 s and 1 s.
    assert!(begun.elapsed() >= Duration::from_millis(1875));
}

#[test]
fn a_reply_without_an_end_ends_the_connection() {
    let peer = Peer::start(move |_, mut script| {
        script.greet_as_mgba_http()?;
        flood(&mut script, b"x")
    });
    // The link shows the problem until it connects again. After a connection that was shorter than `first_retry`, it
    // waits first. With 60 s, this connection is shorter even on a slow machine, so the link waits at least 45 s.
    let first_retry = Duration::from_secs(60);
    let config =
        Config { address: peer.address.clone(), first_retry, last_retry: first_retry, ..Config::default() };
    let client = Client::with(config);
    client.wait_for("the end of the connection", |status| {
        status.problem.as_ref().is_some_and(|problem| problem.contains("64 MiB"))
    });
    assert!(client.closes());
}
