//! Compares the codecs with the test vectors. The tests of the Lua script read the same vectors.

use framewire_protocol::event::{self, EventFrame, EventItem, NewValue};
use framewire_protocol::op::{ArgKind, OPS};
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

/// The operation with this name and these arguments. They are Lua literals separated by spaces, as in `ops.tsv` and
/// `marker.tsv`.
fn op(name: &str, args: &str) -> Op {
    let info = OPS.iter().find(|info| info.name == name).unwrap_or_else(|| panic!("no operation {name:?}"));
    let mut binary = vec![info.code];
    let mut fields = Vec::new();
    let mut rest = args;
    for arg in info.args {
        let (literal, after) = next_literal(rest);
        rest = after;
        let shown = match arg.kind {
            ArgKind::Bool => {
                binary.push((literal == "true").into());
                literal.to_owned()
            }
            ArgKind::Text | ArgKind::Bytes => {
                let bytes = unquoted(literal);
                binary.extend((bytes.len() as u32).to_le_bytes());
                binary.extend(&bytes);
                match arg.kind {
                    ArgKind::Text => format!("{:?}", String::from_utf8(bytes).expect("a text")),
                    _ => format!("{bytes:?}"),
                }
            }
            ArgKind::U8 | ArgKind::U16 | ArgKind::U32 | ArgKind::I32 => {
                let number = number(literal);
                let size = match arg.kind {
                    ArgKind::U8 => 1,
                    ArgKind::U16 => 2,
                    _ => 4,
                };
                binary.extend(&number.to_le_bytes()[..size]);
                number.to_string()
            }
        };
        fields.push(format!("{}: {shown}", arg.name));
    }
    assert_eq!(rest, "", "{name} takes fewer arguments");
    let op = Reader::new(&binary).get::<Op>().expect("an operation");
    // Checks that each value is in the field of its argument.
    let shown = format!("{op:?}");
    let shown = shown.split_once(" { ").map_or("", |(_, fields)| fields.trim_end_matches(" }"));
    assert_eq!(shown, fields.join(", "), "{name}");
    op
}

/// The first literal, and the rest of the text.
fn next_literal(text: &str) -> (&str, &str) {
    let end = match text.strip_prefix('"') {
        Some(inside) => 2 + inside.find('"').expect("a closing quote"),
        None => text.find(' ').unwrap_or(text.len()),
    };
    let (literal, rest) = text.split_at(end);
    assert_ne!(literal, "", "an argument is missing");
    (literal, rest.trim_start())
}

fn number(literal: &str) -> i64 {
    match literal.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).expect("a number"),
        None => literal.parse().expect("a number"),
    }
}

/// The bytes of a quoted text, in which `\xNN` is a byte.
fn unquoted(literal: &str) -> Vec<u8> {
    let inside = literal.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("a quoted text");
    let mut parts = inside.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two digits"));
        bytes.extend(part[2..].bytes());
    }
    bytes
}

fn check<T: Wire + PartialEq + std::fmt::Debug>(item: &T, hex: &str) {
    let bytes = unhex(hex);
    assert_eq!(item.to_bytes(), bytes, "{item:?}");
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
                let values = vec![
                    NewValue { range: 1, bytes: vec![0xd3, 0] },
                    NewValue { range: event::KEYS, bytes: vec![1, 0] },
                ];
                event(60, vec![EventItem::Changed { watch: 3, ticks: 7, values }, EventItem::Reset])
            }
            ("event", "frame 61, timeline 4 cancelled, timeline 5 over, lockstep over, game") => {
                let over = |id, cancelled| EventItem::TimelineOver { id, cancelled };
                event(61, vec![over(4, true), over(5, false), EventItem::LockstepOver, EventItem::Game])
            }
            ("event", "frame 62, watch 3 tick 9") => {
                event(62, vec![EventItem::Changed { watch: 3, ticks: 9, values: vec![] }])
            }
            ("event", "frame 63, watch 3 tick 10: follows a state; state") => {
                let why = vec![event::discontinuity::STATE];
                let values = vec![NewValue { range: event::DISCONTINUITY, bytes: why }];
                event(63, vec![EventItem::Changed { watch: 3, ticks: 10, values }, EventItem::State])
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
