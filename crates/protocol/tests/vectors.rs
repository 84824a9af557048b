//! Holds the codecs against the vectors that the Lua script's tests read too.

use framewire_protocol::event::{self, EventFrame, EventItem, News};
use framewire_protocol::op::OPS;
use framewire_protocol::timeline::{self, KeyStep};
use framewire_protocol::watch::{self, MemoryRange};
use framewire_protocol::wire::{Reader, Wire};
use framewire_protocol::{Batch, Frame, Op, OpError, Outcome, Reply, Request, Status, Value, marker};

/// The data rows of a vector file, split into their columns.
fn rows(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_else(|| panic!("{line:?} lacks a column"));
        (next(), next(), next())
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

/// The operations of `ops.tsv` and `marker.tsv`, which name them and their arguments.
fn op(name: &str, args: &str) -> Op {
    let text = |text: &str| text.to_owned();
    match (name, args) {
        ("echo", r#""hi""#) => Op::Echo { data: b"hi".to_vec() },
        ("echo", r#""""#) => Op::Echo { data: Vec::new() },
        ("current_frame", "") => Op::CurrentFrame {},
        ("game_title", "") => Op::GameTitle {},
        ("read8", "0x02000000") => Op::Read8 { address: 0x0200_0000 },
        ("read32", "4294967295") => Op::Read32 { address: u32::MAX },
        ("read_range", "0x03000000 16") => Op::ReadRange { address: 0x0300_0000, length: 16 },
        ("write8", "0x02000000 255") => Op::Write8 { address: 0x0200_0000, value: 255 },
        ("write16", "0x02000000 65535") => Op::Write16 { address: 0x0200_0000, value: 65535 },
        ("write32", "0x02000000 4294967295") => Op::Write32 { address: 0x0200_0000, value: u32::MAX },
        ("write_range", r#"0x02000000 "\xd3\x00""#) => {
            Op::WriteRange { address: 0x0200_0000, data: vec![0xd3, 0] }
        }
        ("domains", "") => Op::Domains {},
        ("domain_read16", r#""wram" 2"#) => Op::DomainRead16 { domain: text("wram"), address: 2 },
        ("domain_write32", r#""wram" 4 0x80000000"#) => {
            Op::DomainWrite32 { domain: text("wram"), address: 4, value: 0x8000_0000 }
        }
        ("domain_read_range", r#""wram" 0 16"#) => {
            Op::DomainReadRange { domain: text("wram"), address: 0, length: 16 }
        }
        ("read_register", r#""r0""#) => Op::ReadRegister { register: text("r0") },
        ("write_register", r#""r0" -1"#) => Op::WriteRegister { register: text("r0"), value: -1 },
        ("write_register", r#""r0" -2147483648"#) => {
            Op::WriteRegister { register: text("r0"), value: i32::MIN }
        }
        ("get_key", "9") => Op::GetKey { key: 9 },
        ("set_keys", "1023") => Op::SetKeys { keys: 1023 },
        ("hold_keys", "3 15") => Op::HoldKeys { keys: 3, frames: 15 },
        ("hold_keys", "9 30") => Op::HoldKeys { keys: 9, frames: 30 },
        ("save_state", "31") => Op::SaveState { flags: 31 },
        ("load_state", r#""\x89PNG" 29"#) => Op::LoadState { data: b"\x89PNG".to_vec(), flags: 29 },
        ("load_state", r#""\xd3\x00" 29"#) => Op::LoadState { data: vec![0xd3, 0], flags: 29 },
        ("load_state_slot", "9 29") => Op::LoadStateSlot { slot: 9, flags: 29 },
        ("load_file", r#""/r\xc3\xb6m,1.gba""#) => Op::LoadFile { path: text("/röm,1.gba") },
        ("load_rom", r#""/g.gba""#) => Op::LoadRom { path: text("/g.gba") },
        ("load_save_file", r#""a.sav" true"#) => Op::LoadSaveFile { path: text("a.sav"), temporary: true },
        ("load_save_file", r#""a b.sav" false"#) => {
            Op::LoadSaveFile { path: text("a b.sav"), temporary: false }
        }
        ("console_log", r#""a, b""#) => Op::ConsoleLog { message: text("a, b") },
        ("play_keys", r#""\x00\x00\x00\x00\x01\x00\x02\x00\x00\x00\x00\x00""#) => {
            let steps = [KeyStep { offset: 0, keys: 1 }, KeyStep { offset: 2, keys: 0 }];
            Op::PlayKeys { steps: timeline::encode(&steps) }
        }
        ("cancel_keys", "1") => Op::CancelKeys { id: 1 },
        ("timeline", "2") => Op::Timeline { id: 2 },
        ("pause", "") => Op::Pause {},
        ("resume", "") => Op::Resume {},
        ("set_speed", "1000") => Op::SetSpeed { thousandths: 1000 },
        ("advance", "3600") => Op::Advance { frames: 3600 },
        ("lockstep", "60000") => Op::Lockstep { timeout: 60_000 },
        ("watch", r#"3 60 1 "\x04wram\x00\x00\x00\x00\x02\x00""#) => {
            let range = MemoryRange { domain: Some(text("wram")), address: 0, length: 2 };
            Op::Watch { id: 3, every: 60, flags: watch::FLAG_KEYS, ranges: watch::encode(&[range]) }
        }
        ("unwatch", "3") => Op::Unwatch { id: 3 },
        other => panic!("no operation written down for the row {other:?}"),
    }
}

fn check<T: Wire + PartialEq + std::fmt::Debug>(item: &T, hex: &str) {
    let bytes = unhex(hex);
    let mut encoded = Vec::new();
    item.encode(&mut encoded);
    assert_eq!(encoded, bytes, "{item:?}");
    let mut reader = Reader::new(&bytes);
    assert_eq!(reader.get::<T>().as_ref(), Ok(item));
    reader.finish().expect("nothing left over");
    for cut in 0..bytes.len() {
        assert!(Reader::new(&bytes[..cut]).get::<T>().is_err(), "{item:?} cut at {cut}");
    }
}

#[test]
fn operations() {
    for (name, args, hex) in rows(include_str!("../vectors/ops.tsv")) {
        let op = op(name, args);
        check(&op, hex);
        assert_eq!(op.size(), unhex(hex).len(), "{op:?}");
        assert_eq!((op.info().name, op.info().code), (name, op.code()));
    }
}

#[test]
fn values() {
    for (tag, literal, hex) in rows(include_str!("../vectors/values.tsv")) {
        let value = match (tag, literal) {
            ("none", "nil") => Value::None,
            ("bool", literal) => Value::Bool(literal == "true"),
            ("int", literal) => Value::Int(literal.parse().expect("a number")),
            ("text", r#""A, ö""#) => Value::Text("A, ö".to_owned()),
            ("bytes", r#""\xff\x00""#) => Value::Bytes(vec![0xff, 0]),
            ("list", r#"{"wram", "vram"}"#) => {
                Value::List(vec![Value::Text("wram".into()), Value::Text("vram".into())])
            }
            other => panic!("no value written down for the row {other:?}"),
        };
        check(&value, hex);
    }
}

#[test]
fn frames() {
    for (kind, holds, hex) in rows(include_str!("../vectors/frames.tsv")) {
        let request = |id, answered, ops| Frame::Request(Request { id, answered, batch: Batch::new(ops) });
        let reply =
            |id, frame, result| Frame::Reply(Reply { id, outcome: Outcome { frame, results: vec![result] } });
        let event = |frame, items| Frame::Event(EventFrame { frame, items });
        let frame = match (kind, holds) {
            ("request", "id 7, answered 5, read8 0x02000000") => {
                request(7, 5, vec![Op::Read8 { address: 0x0200_0000 }])
            }
            ("request", "id 4294967295, answered 0, current_frame, get_keys") => {
                request(u32::MAX, 0, vec![Op::CurrentFrame {}, Op::GetKeys {}])
            }
            ("keyed", r#"id 7, answered 5, key "k1", reset"#) => Frame::Request(Request {
                id: 7,
                answered: 5,
                batch: Batch { key: Some("k1".to_owned()), ..Op::Reset {}.into() },
            }),
            ("request", "id 7, answered 5, unchecked, read8 0xffffffff") => Frame::Request(Request {
                id: 7,
                answered: 5,
                batch: Batch { unchecked: true, ..Op::Read8 { address: u32::MAX }.into() },
            }),
            ("request", "id 1, answered 1, no operation") => request(1, 1, vec![]),
            ("reply", "id 7, frame 100, int 255") => reply(7, 100, Ok(Value::Int(255))),
            ("reply", r#"id 8, frame 100, error 1 "no""#) => {
                reply(8, 100, Err(OpError::new(Status::BadArgument, "no")))
            }
            ("reply", r#"id 9, frame 100, error 8 "a", error 1 "no""#) => {
                let error = |status, text: &str| Err(OpError::new(status, text));
                let results = vec![error(Status::NotDone, "a"), error(Status::BadArgument, "no")];
                Frame::Reply(Reply { id: 9, outcome: Outcome { frame: 100, results } })
            }
            ("trace", r#"id 7, "a-1""#) => Frame::Trace { id: 7, name: "a-1".to_owned() },
            ("cancel", "id 9") => Frame::Cancel(9),
            ("ping", "id 1") => Frame::Ping(1),
            ("pong", "id 1, frame 59") => Frame::Pong { id: 1, frame: 59 },
            ("goodbye", r#""reloaded""#) => Frame::Goodbye("reloaded".to_owned()),
            ("event", r#"frame 60, watch 3 tick 7: range 1 "\xd3\x00", keys 1; reset"#) => {
                let news = vec![
                    News { range: 1, bytes: vec![0xd3, 0] },
                    News { range: event::KEYS, bytes: vec![1, 0] },
                ];
                event(60, vec![EventItem::Changed { watch: 3, ticks: 7, news }, EventItem::Reset])
            }
            ("event", "frame 61, timeline 4 cancelled, timeline 5 over, lockstep over, game") => {
                let over = |id, cancelled| EventItem::TimelineOver { id, cancelled };
                event(61, vec![over(4, true), over(5, false), EventItem::LockstepOver, EventItem::Game])
            }
            ("event", "frame 62, watch 3 tick 9") => {
                event(62, vec![EventItem::Changed { watch: 3, ticks: 9, news: vec![] }])
            }
            ("event", "frame 63, watch 3 tick 10: follows a state; state") => {
                let why = vec![event::discontinuity::STATE];
                let news = vec![News { range: event::DISCONTINUITY, bytes: why }];
                event(63, vec![EventItem::Changed { watch: 3, ticks: 10, news }, EventItem::State])
            }
            other => panic!("no frame written down for the row {other:?}"),
        };
        let bytes = unhex(hex);
        let mut encoded = Vec::new();
        frame.encode(&mut encoded);
        assert_eq!(encoded, bytes, "{frame:?}");
        assert_eq!(Frame::decode(&bytes[4..]), Ok(frame));
    }
}

#[test]
fn marker_messages() {
    for (name, args, message) in rows(include_str!("../vectors/marker.tsv")) {
        let expected = format!("{message}{}", marker::END).into_bytes();
        assert_eq!(marker::message(&op(name, args)), Ok(expected));
    }
}

#[test]
fn every_vector_operation_is_in_the_table() {
    for (name, _, _) in rows(include_str!("../vectors/ops.tsv")) {
        assert!(OPS.iter().any(|info| info.name == name), "{name}");
    }
}
