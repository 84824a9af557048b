//! mGBA-http's script at the other end.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use framewire_link::{LinkError, Phase};
use framewire_protocol::{Batch, Op, Status, Value};

use crate::peer::Peer;
use crate::{Client, read8, refusal, soon, value, write8};

fn large_state() -> Op {
    Op::LoadState { data: vec![0xd3; 8 << 20], flags: 29 }
}

#[test]
fn a_script_that_stops_reading_holds_nobody_longer_than_their_deadlines() {
    let (go_on, told) = mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let peer = Peer::start(move |number, mut script| {
        if number > 0 {
            // Neither do others get an answer meanwhile.
            script.hold();
        }
        script.greet_as_mgba_http()?;
        script.message()?;
        script.reply("9")?;
        told.lock().ok()?.recv().ok()?;
        loop {
            let message = script.message_but_heartbeats()?;
            script.reply(if message.starts_with("core.loadStateBuffer,") { "true" } else { "7" })?;
        }
    });
    let client = Client::start(&peer.address);
    client.wait_for("the first heartbeat", |status| status.frame == 9);
    let begun = Instant::now();
    let state = client.submit(large_state(), Duration::from_millis(500));
    let read = client.submit(read8(), Duration::from_millis(500));
    let (state, read) = (soon(&state), soon(&read));
    // Far from for ever, on a machine that has much else to do too.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(matches!(&state, Err(LinkError::Overdue { .. })), "a change may still be done: {state:?}");
    assert!(matches!(&read, Err(LinkError::Stalled { .. })), "{read:?}");
    client.wait_for("stalled", |status| status.stalled);
    go_on.send(()).unwrap();
    assert_eq!(value(client.call(read8())), Value::Int(7), "replies still find their requests");
}

#[test]
fn a_read_that_a_broken_connection_cut_off_is_repeated() {
    let peer = Peer::start(|number, mut script| {
        script.greet_as_mgba_http()?;
        loop {
            script.message_but_heartbeats()?;
            if number == 0 {
                return None;
            }
            script.reply("7")?;
        }
    });
    let client = Client::start(&peer.address);
    assert_eq!(value(client.call(read8())), Value::Int(7));
    assert_eq!(peer.connections(), 2);
}

#[test]
fn a_batch_that_may_have_changed_something_is_said_to_be_interrupted_and_not_repeated() {
    // Broken at the write itself, and at the read behind a write that was done.
    for broken_at in [1, 2] {
        let (seen, messages) = mpsc::channel();
        let peer = Peer::start(move |number, mut script| {
            script.greet_as_mgba_http()?;
            for count in 1.. {
                let message = script.message_but_heartbeats()?;
                seen.send(message).ok()?;
                if number == 0 && count == broken_at {
                    return None;
                }
                script.reply("<|SUCCESS|>")?;
            }
            None
        });
        let client = Client::start(&peer.address);
        match client.call(Batch::new(vec![write8(), read8()])) {
            Err(error @ LinkError::Interrupted { .. }) => {
                assert!(error.to_string().contains("cannot be known"), "{error}");
            }
            other => panic!("broken at message {broken_at}: {other:?}"),
        }
        assert!(client.call(Op::Reset {}).is_ok());
        let messages: Vec<String> = messages.try_iter().collect();
        assert_eq!(messages.len(), broken_at + 1, "{messages:?}");
    }
}

#[test]
fn a_key_is_refused_where_nothing_remembers_it() {
    let peer = Peer::start(|_, mut script| {
        script.greet_as_mgba_http()?;
        loop {
            assert_eq!(script.message_but_heartbeats()?, "core.read8,33554432");
            script.reply("7")?;
        }
    });
    let client = Client::start(&peer.address);
    let keyed = |op: Op| Batch { key: Some("key".into()), ..op.into() };
    let refused = refusal(client.call(keyed(write8())));
    assert_eq!(refused.status, Status::Unsupported);
    assert!(refused.message.contains("framewire script"), "{refused}");
    assert_eq!(value(client.call(keyed(read8()))), Value::Int(7), "a read needs no memory");
}

#[test]
fn an_answer_before_the_end_of_a_message_is_nobodys() {
    let peer = Peer::start(|_, mut script| {
        script.greet_as_mgba_http()?;
        script.begin_of_message("core.loadStateBuffer")?;
        script.reply("true")?;
        script.hold()
    });
    let client = Client::start(&peer.address);
    client.wait_for("a connection", |status| status.phase == Phase::Ready);
    let answer = client.call(large_state());
    assert!(matches!(&answer, Err(LinkError::Interrupted { .. })), "{answer:?}");
}

#[test]
fn closing_does_not_wait_for_a_paused_script() {
    let peer = Peer::start(|_, mut script| {
        script.greet_as_mgba_http()?;
        script.ignore()
    });
    let client = Client::start(&peer.address);
    client.wait_for("a connection", |status| status.phase == Phase::Ready);
    let read = client.submit(read8(), Duration::from_millis(300));
    assert!(client.closes());
    assert!(matches!(soon(&read), Err(LinkError::Stalled { .. })));
}
