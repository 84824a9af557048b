//! Tests of a link to Framewire's script.

use std::sync::mpsc;
use std::time::Duration;

use framewire_link::{Config, LinkError, Phase};
use framewire_protocol::{
    Batch, EventFrame, EventItem, Frame, MAX_FRAME, MAX_OPS, Op, Outcome, Reply, Status, Value,
};

use crate::peer::{Connection, Peer};
use crate::{Client, read8, refusal, soon, value, write8};

/// The bytes of a reply with the value 7.
pub fn reply(id: u32) -> Vec<u8> {
    let outcome = Outcome { frame: 1, results: vec![Ok(Value::Int(7))] };
    let mut bytes = Vec::new();
    Frame::Reply(Reply { id, outcome }).encode(&mut bytes);
    bytes
}

pub fn answer_all(script: &mut Connection) -> Option<()> {
    loop {
        let id = script.request()?.id;
        script.send(&reply(id))?;
    }
}

#[test]
fn a_paused_emulator_whose_buffers_are_full_keeps_its_connection() {
    let (go_on, signal) = mpsc::channel::<()>();
    let signal = std::sync::Mutex::new(signal);
    let peer = Peer::start(move |number, mut script| {
        if number > 0 {
            // While the emulator is paused, other connections also get no answer.
            script.hold();
        }
        script.greet()?;
        signal.lock().ok()?.recv().ok()?;
        answer_all(&mut script)
    });
    let gone_after = Duration::from_secs(1);
    let client = Client::with(Config { address: peer.address.clone(), gone_after, ..Config::default() });
    let answer = client.submit(Op::Echo { data: vec![1; 16 << 20] }, Duration::from_secs(30));
    client.wait_for("stalled", |status| status.stalled);
    // Meanwhile, the peer accepts no bytes. The connection must stay open, even for longer than `gone_after`.
    std::thread::sleep(3 * gone_after);
    go_on.send(()).unwrap();
    // The answer comes on the first connection, because no other connection answers.
    assert_eq!(value(soon(&answer)), Value::Int(7));
}

#[test]
fn the_frame_rate_after_a_pause_is_not_measured_over_the_pause() {
    let (go_on, signal) = mpsc::channel::<()>();
    let signal = std::sync::Mutex::new(signal);
    let peer = Peer::start(move |number, mut script| {
        if number > 0 {
            script.hold();
        }
        script.greet()?;
        script.frame = 1000;
        script.request()?;
        signal.lock().ok()?.recv().ok()?;
        script.frame = 1060; // from now on, no frame runs
        answer_all(&mut script)
    });
    let client = Client::start(&peer.address);
    client.wait_for("its frame", |status| status.frame == 1000);
    let answer = client.submit(read8(), Duration::from_secs(10));
    client.wait_for("stalled", |status| status.stalled);
    go_on.send(()).unwrap();
    client.wait_for("running", |status| !status.stalled);
    assert_eq!(client.link.status().frames_per_second, 0.0);
    drop(answer);
}

#[test]
fn a_state_with_a_higher_frame_counter_is_not_a_high_frame_rate() {
    let peer = Peer::start(move |_, mut script| {
        script.greet()?;
        script.frame = 100;
        script.request()?;
        script.send_frame(&Frame::Event(EventFrame { frame: 5000, items: vec![EventItem::State] }))?;
        script.frame = 5000; // from now on, no frame runs
        answer_all(&mut script)
    });
    let client = Client::start(&peer.address);
    client.wait_for("its frame", |status| status.frame == 100);
    std::thread::sleep(Duration::from_millis(600)); // after this time, the rate is known
    let answer = client.submit(read8(), Duration::from_secs(10));
    client.wait_for("the frame of the state", |status| status.frame == 5000);
    assert_eq!(client.link.status().frames_per_second, 0.0);
    drop(answer);
}

#[test]
fn a_batch_too_large_for_a_request_is_refused_and_other_requests_still_work() {
    let peer = Peer::start(|_, mut script| {
        script.greet()?;
        answer_all(&mut script)
    });
    let client = Client::start(&peer.address);
    let other = client.submit(read8(), Duration::from_secs(10));
    let too_large = [
        Batch::new(vec![Op::GetKeys {}; MAX_OPS + 1]),
        Batch::new(vec![Op::GetKeys {}; 0x1_0001]),
        Op::Echo { data: vec![0; MAX_FRAME] }.into(),
    ];
    for batch in too_large {
        assert_eq!(refusal(client.call(batch)).status, Status::TooLarge);
    }
    let key = Some("\u{f6}".repeat(200));
    let refused = refusal(client.call(Batch { key, ..Op::Reset {}.into() }));
    assert_eq!(refused.status, Status::BadArgument);
    assert_eq!(value(soon(&other)), Value::Int(7));
    assert_eq!(value(client.call(read8())), Value::Int(7));
    assert_eq!(peer.connections(), 1);
}

#[test]
fn the_error_for_a_change_whose_connection_does_not_return_says_that_it_may_be_done() {
    for keeps_open in [false, true] {
        let peer = Peer::start(move |number, mut script| {
            match number {
                0 => {
                    script.greet()?;
                    // Both requests have arrived, and the connection ends without an answer.
                    script.request()?;
                    script.request().map(drop)
                }
                _ if keeps_open => script.hold(),
                _ => None,
            }
        });
        let client = Client::start(&peer.address);
        client.wait_for("ready", |status| status.phase == Phase::Ready);
        let change = client.submit(write8(), Duration::from_secs(2));
        let read = client.submit(read8(), Duration::from_secs(2));
        assert!(matches!(soon(&change), Err(LinkError::Broken { .. })), "keeps open: {keeps_open}");
        assert!(matches!(soon(&read), Err(LinkError::Absent { .. } | LinkError::Stalled { .. })));
    }
}

#[test]
fn the_error_for_a_change_that_is_not_answered_says_that_it_may_be_done() {
    let peer = Peer::start(|_, mut script| {
        script.greet()?;
        script.request()?; // The script may have performed it.
        script.ignore()
    });
    let client = Client::start(&peer.address);
    client.wait_for("ready", |status| status.phase == Phase::Ready);
    for limit in [300, 2000] {
        let error = soon(&client.submit(write8(), Duration::from_millis(limit))).unwrap_err();
        assert!(matches!(error, LinkError::Late { .. } | LinkError::Stalled { .. }), "{error}");
        assert!(error.to_string().contains("Check before you repeat it"), "{error}");
    }
}

#[test]
fn a_link_to_a_paused_emulator_whose_buffers_are_full_can_be_closed() {
    let peer = Peer::start(|_, mut script| {
        script.greet()?;
        script.hold()
    });
    let client = Client::start(&peer.address);
    let answer = client.submit(Op::Echo { data: vec![1; 16 << 20] }, Duration::from_secs(2));
    assert!(matches!(soon(&answer), Err(LinkError::Stalled { .. })));
    assert!(client.closes());
}
