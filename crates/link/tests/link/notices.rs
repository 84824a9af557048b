//! Tests of a link's notices.

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use framewire_link::{Config, Link, Notice};
use framewire_protocol::event::{EventFrame, EventItem, NewValue};
use framewire_protocol::{Frame, PROTOCOL_VERSION};

use crate::binary::{answer_all, reply};
use crate::peer::Peer;
use crate::{read8, runtime};

/// A notice or an answer of a link.
#[derive(Debug, PartialEq)]
enum Heard {
    Reported(u32, Notice),
    Answered,
}

fn events(frame: u32) -> EventFrame {
    let values = vec![NewValue { range: 0, bytes: vec![1] }];
    EventFrame { frame, items: vec![EventItem::Changed { watch: 1, ticks: frame, values }, EventItem::Reset] }
}

/// Starts a link to `peer` and sends one request. Returns the first `count` notices and answers.
fn heard(peer: &Peer, count: usize) -> Vec<Heard> {
    heard_with(peer, count, |_| {})
}

/// Like [`heard`], and calls `react` with each notice and answer when it comes.
fn heard_with(peer: &Peer, count: usize, react: impl Fn(&Heard)) -> Vec<Heard> {
    let (runtime, (notices, reported)) = (runtime(), mpsc::channel());
    let answered = notices.clone();
    let listen = Box::new(move |frame, notice| drop(notices.send(Heard::Reported(frame, notice))));
    let config = Config { address: peer.address.clone(), ..Config::default() };
    let link = Link::start_and_listen(config, runtime.handle(), listen);
    let respond = Box::new(move |_| drop(answered.send(Heard::Answered)));
    link.submit(read8().into(), Instant::now() + Duration::from_secs(10), respond);
    let next = |_| {
        let heard = reported.recv_timeout(Duration::from_secs(10)).expect("in time");
        react(&heard);
        heard
    };
    (0..count).map(next).collect()
}

#[test]
fn events_and_answers_come_in_the_order_they_were_sent() {
    let peer = Peer::start(|_, mut script| {
        script.greet()?;
        script.send_frame(&Frame::Event(events(1)))?;
        let id = script.request()?.id;
        let mut bytes = reply(id);
        Frame::Event(events(2)).encode(&mut bytes);
        Frame::Event(events(3)).encode(&mut bytes);
        script.send(&bytes)?;
        script.ignore()
    });
    let reported = |frame| Heard::Reported(frame, Notice::Events(events(frame)));
    let wanted =
        [Heard::Reported(0, Notice::Connected), reported(1), Heard::Answered, reported(2), reported(3)];
    assert_eq!(heard(&peer, 5), wanted);
}

#[test]
fn events_right_after_the_welcome_are_reported_too() {
    let peer = Peer::start(|_, mut script| {
        script.message()?;
        let mut bytes = format!("framewire.welcome,{PROTOCOL_VERSION},0.1.0,boot,1<|END|>").into_bytes();
        Frame::Event(events(9)).encode(&mut bytes);
        script.send(&bytes)?;
        script.ignore()
    });
    let wanted = [Heard::Reported(0, Notice::Connected), Heard::Reported(9, Notice::Events(events(9)))];
    assert_eq!(heard(&peer, 2), wanted);
}

#[test]
fn an_invalid_event_ends_the_connection_and_is_not_reported() {
    let peer = Peer::start(|number, mut script| {
        script.greet()?;
        if number == 0 {
            // An event of an unknown kind.
            script.send(&[8, 0, 0, 0, 8, 1, 0, 0, 0, 1, 0, 99])?;
        }
        // If the peer closed the connection with unread bytes, the system could discard the event.
        script.ignore()
    });
    let heard = heard(&peer, 3);
    let [
        Heard::Reported(_, first),
        Heard::Reported(_, Notice::Disconnected(problem)),
        Heard::Reported(_, third),
    ] = &heard[..]
    else {
        panic!("{heard:?}");
    };
    assert_eq!((first, third), (&Notice::Connected, &Notice::Connected));
    assert!(problem.contains("event 0x63"), "{problem}");
}

#[test]
fn a_disconnection_is_reported_at_the_frame_of_the_last_events() {
    let peer = Peer::start(|_, mut script| {
        script.greet()?;
        let mut bytes = Vec::new();
        Frame::Event(events(9)).encode(&mut bytes);
        // An event of an unknown kind ends the connection.
        bytes.extend([8, 0, 0, 0, 8, 1, 0, 0, 0, 1, 0, 99]);
        script.send(&bytes)?;
        script.ignore()
    });
    let heard = heard(&peer, 3);
    assert!(matches!(heard[2], Heard::Reported(9, Notice::Disconnected(_))), "{heard:?}");
}

#[test]
fn the_start_and_the_end_of_a_silence_are_reported_once_each() {
    let (stalled, signal) = mpsc::channel::<()>();
    let signal = Mutex::new(signal);
    let peer = Peer::start(move |number, mut script| {
        if number > 0 {
            script.hold();
        }
        script.greet()?;
        // The peer sends nothing until the link has reported that the emulator is stalled, and a bit longer.
        signal.lock().ok()?.recv().ok()?;
        std::thread::sleep(Duration::from_millis(600));
        answer_all(&mut script)
    });
    let heard = heard_with(&peer, 4, |heard| {
        if matches!(heard, Heard::Reported(_, Notice::Stalled)) {
            let _ = stalled.send(());
        }
    });
    assert!(heard.contains(&Heard::Answered), "{heard:?}");
    let reported: Vec<_> = heard
        .into_iter()
        .filter_map(|heard| match heard {
            Heard::Reported(_, notice) => Some(notice),
            Heard::Answered => None,
        })
        .collect();
    assert_eq!(reported, [Notice::Connected, Notice::Stalled, Notice::Running]);
}

#[test]
fn a_text_connection_is_reported_too() {
    let peer = Peer::start(|number, mut script| {
        script.greet_as_mgba_http()?;
        if number == 0 {
            return None;
        }
        script.ignore()
    });
    let heard = heard(&peer, 3);
    let [Heard::Reported(_, Notice::Connected), Heard::Reported(_, Notice::Disconnected(_)), ..] = &heard[..]
    else {
        panic!("{heard:?}");
    };
}

/// mGBA was started again with mGBA-http's script. What was begun in Framewire's script, such as lockstep, has ended.
#[test]
fn a_change_to_the_script_of_mgba_http_is_reported_as_lost_events() {
    let peer = Peer::start(|number, mut script| {
        if number == 0 {
            script.greet()?;
            script.request()?;
            return None;
        }
        script.greet_as_mgba_http()?;
        script.ignore()
    });
    let heard = heard(&peer, 4);
    assert!(heard.contains(&Heard::Reported(0, Notice::Missed(None))), "{heard:?}");
}
