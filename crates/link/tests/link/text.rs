//! Tests of a link to mGBA-http's script.

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
fn requests_to_a_script_that_stops_reading_fail_at_their_deadlines() {
    let (go_on, signal) = mpsc::channel::<()>();
    let signal = std::sync::Mutex::new(signal);
    let peer = Peer::start(move |number, mut script| {
        if number > 0 {
            // While the script reads nothing, other connections also get no answer.
            script.hold();
        }
        script.greet_as_mgba_http()?;
        script.message()?;
        script.reply("9")?;
        signal.lock().ok()?.recv().ok()?;
        loop {
            let message = script.message_except_heartbeats()?;
            script.reply(if message.starts_with("core.loadStateBuffer,") { "true" } else { "7" })?;
        }
    });
    let client = Client::start(&peer.address);
    client.wait_for("the first heartbeat", |status| status.frame == 9);
    let begun = Instant::now();
    let state = client.submit(large_state(), Duration::from_millis(500));
    let read = client.submit(read8(), Duration::from_millis(500));
    let (state, read) = (soon(&state), soon(&read));
    // The limit is generous, because the machine may be busy.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(matches!(&state, Err(LinkError::Overdue { .. })), "a change may still be done: {state:?}");
    assert!(matches!(&read, Err(LinkError::Late { .. })), "{read:?}");
    client.wait_for("stalled", |status| status.stalled);
    go_on.send(()).unwrap();
    assert_eq!(value(client.call(read8())), Value::Int(7), "replies still find their requests");
}

#[test]
fn the_frame_counter_is_also_asked_for_between_the_requests_of_a_busy_client() {
    let peer = Peer::start(|_, mut script| {
        script.greet_as_mgba_http()?;
        for frame in 1.. {
            while script.message()? != "core.currentFrame" {
                std::thread::sleep(Duration::from_millis(2));
                script.reply("7")?;
            }
            script.reply(&frame.to_string())?;
        }
        None
    });
    let client = Client::start(&peer.address);
    let limit = Instant::now() + Duration::from_secs(10);
    while client.link.status().frame < 3 {
        assert_eq!(value(client.call(read8())), Value::Int(7));
        assert!(Instant::now() < limit, "{:?}", client.link.status());
    }
    assert!(client.link.status().frames_per_second > 0.0);
}

/// mGBA-http's script, whose first connection breaks at the first message. Each later message is answered with 7.
fn breaks_once() -> Peer {
    Peer::start(|number, mut script| {
        script.greet_as_mgba_http()?;
        loop {
            script.message_except_heartbeats()?;
            if number == 0 {
                return None;
            }
            script.reply("7")?;
        }
    })
}

#[test]
fn a_read_is_repeated_after_its_connection_broke() {
    let peer = breaks_once();
    let client = Client::start(&peer.address);
    assert_eq!(value(client.call(read8())), Value::Int(7));
    assert_eq!(peer.connections(), 2);
}

#[test]
fn a_batch_is_repeated_if_its_connection_broke_before_the_first_change() {
    let peer = breaks_once();
    let client = Client::start(&peer.address);
    let outcome = client.call(Batch::new(vec![read8(), write8()])).unwrap();
    assert_eq!(outcome.results.len(), 2);
    assert_eq!(outcome.results[0], Ok(Value::Int(7)));
    assert_eq!(peer.connections(), 2);
}

#[test]
fn a_batch_that_may_have_changed_something_is_reported_as_interrupted_and_not_repeated() {
    // The connection breaks during the write, or during a read after the write was done.
    for broken_at in [1, 2] {
        let (seen, messages) = mpsc::channel();
        let peer = Peer::start(move |number, mut script| {
            script.greet_as_mgba_http()?;
            for count in 1.. {
                let message = script.message_except_heartbeats()?;
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
fn an_idempotency_key_is_refused_because_the_script_does_not_remember_it() {
    let peer = Peer::start(|_, mut script| {
        script.greet_as_mgba_http()?;
        loop {
            assert_eq!(script.message_except_heartbeats()?, "core.read8,33554432");
            script.reply("7")?;
        }
    });
    let client = Client::start(&peer.address);
    let keyed = |op: Op| Batch { key: Some("key".into()), ..op.into() };
    let refused = refusal(client.call(keyed(write8())));
    assert_eq!(refused.status, Status::Unsupported);
    assert!(refused.message.contains("framewire script"), "{refused}");
    assert_eq!(value(client.call(keyed(read8()))), Value::Int(7), "a read can be repeated without a key");
}

#[test]
fn an_answer_before_the_end_of_a_message_ends_the_connection() {
    let peer = Peer::start(|_, mut script| {
        script.greet_as_mgba_http()?;
        script.start_of_message("core.loadStateBuffer")?;
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
    assert!(matches!(soon(&read), Err(LinkError::Late { .. })));
}

/// Starts a script that answers every message with `answer`. Also returns a channel with the messages that it got.
fn script(answer: impl Fn(&str) -> &'static str + Send + Sync + 'static) -> (Peer, mpsc::Receiver<String>) {
    let (seen, messages) = mpsc::channel();
    let seen = std::sync::Mutex::new(seen);
    let peer = Peer::start(move |_, mut script| {
        script.greet_as_mgba_http()?;
        loop {
            let message = script.message_except_heartbeats()?;
            seen.lock().ok()?.send(message.clone()).ok()?;
            script.reply(answer(&message))?;
        }
    });
    (peer, messages)
}

fn domain_read(address: u32) -> Op {
    Op::DomainRead8 { domain: "iwram".to_owned(), address }
}

#[test]
fn offsets_outside_of_a_domain_are_refused() {
    let (peer, messages) = script(|message| match message {
        "memoryDomain.size,iwram" => "32768",
        "memoryDomain.size,nothing" => "<|ERROR|>",
        "memoryDomain.read8,nothing,1" => "<|ERROR|>",
        _ => "7",
    });
    let client = Client::start(&peer.address);
    let outcome = client.call(Batch::new(vec![write8(), domain_read(0x7fff), domain_read(0x8000)])).unwrap();
    let (index, refused) = outcome.refusal().expect("nothing was done");
    assert_eq!((index, refused.status), (2, Status::BadArgument));
    assert!(refused.message.contains("accepted is 0 to 32767"), "{refused}");
    assert_eq!(value(client.call(domain_read(0x7fff))), Value::Int(7));
    assert_eq!(refusal(client.call(Op::Read8 { address: 0x1000_0000 })).status, Status::BadArgument);
    let unknown = Op::DomainRead8 { domain: "nothing".to_owned(), address: 1 };
    assert_eq!(refusal(client.call(unknown)).status, Status::Failed);
    // mGBA-http's routes accept any offset.
    assert!(client.call(Batch { unchecked: true, ..domain_read(0x8000).into() }).is_ok());
    // Another game has other domains.
    assert!(client.call(Op::LoadRom { path: "/no/such.gba".to_owned() }).is_ok());
    assert_eq!(value(client.call(domain_read(0))), Value::Int(7));
    let messages: Vec<String> = messages.try_iter().collect();
    let expected = [
        "memoryDomain.size,iwram",
        "memoryDomain.read8,iwram,32767",
        "memoryDomain.size,nothing",
        "memoryDomain.read8,nothing,1",
        "memoryDomain.read8,iwram,32768",
        "mgba-http.extension.loadFile,/no/such.gba",
        "memoryDomain.size,iwram",
        "memoryDomain.read8,iwram,0",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn numbers_that_need_several_accesses_are_read_as_bytes_and_not_written() {
    let (peer, messages) = script(|message| match message {
        "memoryDomain.size,iwram" => "32768",
        "core.readRange,33554433,2" => "34,12",
        "core.readRange,234881024,4" | "memoryDomain.readRange,iwram,2,4" => "78,56,34,f2",
        "core.read16,33554434" => "9",
        _ => "<|ERROR|>",
    });
    let client = Client::start(&peer.address);
    let domain = || "iwram".to_owned();
    for (op, expected) in [
        (Op::Read16 { address: 0x0200_0001 }, 0x1234),
        (Op::Read16 { address: 0x0200_0002 }, 9),
        (Op::Read32 { address: 0x0E00_0000 }, 0xf234_5678),
        (Op::DomainRead32 { domain: domain(), address: 2 }, 0xf234_5678),
    ] {
        assert_eq!(value(client.call(op)), Value::Int(expected));
    }
    let asked = messages.try_iter().count();
    for op in [
        Op::Write16 { address: 0x0200_0001, value: 1 },
        Op::Write32 { address: 0x0E00_0000, value: 1 },
        Op::DomainWrite32 { domain: domain(), address: 2, value: 1 },
    ] {
        let refused = refusal(client.call(op));
        assert_eq!(refused.status, Status::Unsupported);
        assert!(refused.message.contains("write each byte by itself"), "{refused}");
    }
    assert_eq!((asked, messages.try_iter().count()), (5, 0), "nothing was written");
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_of_a_pipe_a_folder_or_a_device_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let (peer, messages) = script(|_| "true");
    let client = Client::start(&peer.address);
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    for path in [&text(&pipe), &text(folder.path()), "/dev/zero", "/proc/self/maps"] {
        for unchecked in [false, true] {
            let load = Op::LoadStateFile { path: path.to_owned(), flags: 29 };
            let save = Op::ScreenshotFile { path: path.to_owned() };
            let batch = Batch { unchecked, ..Batch::new(vec![write8(), save, load]) };
            let outcome = client.call(batch).unwrap();
            let (index, refused) = outcome.refusal().expect("nothing was done");
            assert_eq!((index, refused.status), (1, Status::BadArgument));
            assert!(refused.message.contains("use a regular file or a new one"), "{refused}");
        }
    }
    let save = Op::SaveStateFile { path: text(&folder.path().join("new.ss")), flags: 31 };
    assert_eq!(value(client.call(save)), Value::Bool(true));
    assert_eq!(messages.try_iter().count(), 1);
}
