//! Tests of dead connections whose two ends are still open. Such a connection remains if a router or a proxy loses the
//! connection's state.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use framewire_protocol::{Op, Value};

use crate::binary::answer_all;
use crate::peer::{Connection, Peer};
use crate::until_good::until_good;
use crate::{Client, read8, soon, value, write8};

/// The link gives up on a connection within this time: after a second of silence and an attempt on another connection.
const NOTICED: Duration = Duration::from_secs(4);

/// A script that serves its first connection with `first` and then stops answering on it. It serves all later
/// connections.
fn forgetful(first: fn(&mut Connection) -> Option<()>) -> Peer {
    Peer::start(move |number, mut script| {
        if number == 0 {
            first(&mut script)?;
            script.hold();
        }
        if script.begins_with("framewire.version")? {
            return script.reply("framewire 0.1.0");
        }
        script.greet()?;
        answer_all(&mut script)
    })
}

#[test]
fn a_connection_that_falls_silent_is_given_up_and_its_requests_are_repeated() {
    let measure = || {
        let peer = forgetful(Connection::greet);
        let client = Client::start(&peer.address);
        let begun = Instant::now();
        let (read, change) = (client.submit(read8(), 5 * NOTICED), client.submit(write8(), 5 * NOTICED));
        assert_eq!(value(soon(&read)), Value::Int(7));
        assert_eq!(
            value(soon(&change)),
            Value::Int(7),
            "the script remembers the session, so the write is repeated"
        );
        begun.elapsed()
    };
    until_good(measure, |time| *time < NOTICED);
}

#[test]
fn an_unanswered_greeting_is_repeated_on_a_new_connection() {
    let measure = || {
        let peer = forgetful(|_| Some(()));
        let client = Client::start(&peer.address);
        let begun = Instant::now();
        assert_eq!(value(soon(&client.submit(read8(), 5 * NOTICED))), Value::Int(7));
        begun.elapsed()
    };
    until_good(measure, |time| *time < NOTICED);
}

#[test]
fn a_text_connection_that_falls_silent_is_given_up_too() {
    let measure = || {
        let peer = Peer::start(|number, mut script| {
            script.greet_as_mgba_http()?;
            if number == 0 {
                script.hold();
            }
            loop {
                script.message_except_heartbeats()?;
                script.reply("7")?;
            }
        });
        let client = Client::start(&peer.address);
        let begun = Instant::now();
        assert_eq!(value(soon(&client.submit(read8(), 5 * NOTICED))), Value::Int(7));
        begun.elapsed()
    };
    until_good(measure, |time| *time < NOTICED);
}

#[test]
fn a_reply_that_takes_long_to_arrive_does_not_count_as_silence() {
    let connections = || {
        let (sent, times) = mpsc::channel();
        let peer = Peer::start(move |number, mut script| {
            if number > 0 {
                script.message()?;
                return script.reply("framewire 0.1.0");
            }
            script.greet()?;
            let id = script.request()?.id;
            let reply = crate::binary::reply(id);
            // In total, this takes longer than the silence after which a connection is checked.
            for byte in &reply {
                let begun = Instant::now();
                std::thread::sleep(Duration::from_millis(2000) / reply.len() as u32);
                script.send(&[*byte])?;
                sent.send(begun.elapsed()).ok()?;
            }
            answer_all(&mut script)
        });
        let client = Client::start(&peer.address);
        assert_eq!(value(soon(&client.submit(Op::GetKeys {}, 5 * NOTICED))), Value::Int(7));
        let (count, longest) = (peer.connections(), times.try_iter().max());
        assert!(count == 1 || longest > Some(Duration::from_millis(300)), "{count} connections, {longest:?}");
        count
    };
    // The link opens a second connection only if the time between two bytes is too long, as on a busy machine.
    until_good(connections, |count| *count == 1);
}

#[test]
fn a_request_that_takes_long_to_arrive_does_not_count_as_silence() {
    let peer = Peer::start(move |number, mut script| {
        if number > 0 {
            script.message()?;
            return script.reply("framewire 0.1.0");
        }
        script.greet()?;
        // From now on, the script reads about 1.6 MB per second.
        script.pause = Duration::from_millis(40);
        answer_all(&mut script)
    });
    let client = Client::start(&peer.address);
    let upload = client.submit(Op::Echo { data: vec![1; 8 << 20] }, Duration::from_secs(20));
    assert_eq!(value(soon(&upload)), Value::Int(7));
}

#[test]
fn a_message_to_mgba_https_script_that_takes_long_to_arrive_does_not_count_as_silence() {
    let peer = Peer::start(move |number, mut script| {
        script.greet_as_mgba_http()?;
        if number == 0 {
            // From now on, the script reads about 1.6 MB per second.
            script.pause = Duration::from_millis(40);
        }
        loop {
            let message = script.message_except_heartbeats()?;
            script.reply(if message.starts_with("core.loadStateBuffer,") { "true" } else { "7" })?;
        }
    });
    let client = Client::start(&peer.address);
    // Each byte is three bytes in the message.
    let load = Op::LoadState { data: vec![0xd3; 2 << 20], flags: 29 };
    assert_eq!(value(soon(&client.submit(load, Duration::from_secs(20)))), Value::Bool(true));
    assert_eq!(peer.connections(), 1);
}
