//! Tests of the frame decoder, with streams that are split or have wrong lengths, and tests of texts: marker text (the
//! messages of mGBA-http, which end with the marker `<|END|>`), hex digits, and the hello and the welcome. `fuzz.rs`
//! has tests with mutated input.

use framewire_protocol::op::OPS;
use framewire_protocol::{
    Batch, Decoder, Frame, FrameError, Hello, MAX_FRAME, Op, OpError, Request, Status, Value, Welcome, hex,
    marker,
};

fn sample() -> Vec<Frame> {
    vec![
        Frame::Ping(1),
        Frame::Request(Request {
            id: 2,
            answered: 1,
            batch: Batch::new(vec![Op::Echo { data: vec![7; 300] }, Op::Reset {}]),
        }),
        Frame::Goodbye("done".to_owned()),
    ]
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    bytes
}

#[test]
fn a_stream_split_anywhere_gives_the_same_frames() {
    let frames = sample();
    let bytes = encoded(&frames);
    for cut in 0..=bytes.len() {
        let mut decoder = Decoder::new();
        let mut found = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            decoder.push(part);
            while let Some(frame) = decoder.next_frame().expect("valid") {
                found.push(frame);
            }
        }
        assert_eq!(found, frames, "cut at {cut}");
    }
}

#[test]
fn a_wrong_length_is_refused_before_the_bytes_arrive() {
    for length in [0, MAX_FRAME + 1, u32::MAX as usize] {
        let mut decoder = Decoder::new();
        decoder.push(&(length as u32).to_le_bytes());
        assert_eq!(decoder.next_frame(), Err(FrameError::Length(length)));
    }
}

#[test]
fn codes_and_names_are_unique() {
    for (index, info) in OPS.iter().enumerate() {
        for other in &OPS[index + 1..] {
            assert_ne!(info.code, other.code, "{} and {}", info.name, other.name);
            assert_ne!(info.name, other.name);
        }
    }
}

#[test]
fn marker_text_refuses_what_it_cannot_carry() {
    let refused = [
        Op::ConsoleLog { message: "a,b".into() },
        Op::ConsoleLog { message: "a<|END|>core.reset".into() },
        Op::ConsoleLog { message: String::new() },
        Op::LoadFile { path: "/a,b.gba".into() },
        Op::Echo { data: vec![1] },
    ];
    for op in refused {
        assert!(marker::message(&op).is_err(), "{op:?}");
    }
}

#[test]
fn marker_replies_are_read_as_the_table_says() {
    let failed = |result: Result<Value, OpError>| result.is_err_and(|error| error.status == Status::Failed);
    assert_eq!(marker::parse_reply(&Op::GetKeys {}, "12"), Ok(Value::Int(12)));
    assert_eq!(marker::parse_reply(&Op::AutoloadSave {}, "true"), Ok(Value::Bool(true)));
    assert_eq!(marker::parse_reply(&Op::AutoloadSave {}, "<|SUCCESS|>"), Ok(Value::Bool(false)));
    assert_eq!(marker::parse_reply(&Op::Reset {}, "<|SUCCESS|>"), Ok(Value::None));
    assert_eq!(
        marker::parse_reply(&Op::ReadRange { address: 0, length: 2 }, "d3,00"),
        Ok(Value::Bytes(vec![0xd3, 0]))
    );
    assert!(failed(marker::parse_reply(&Op::GetKeys {}, "<|ERROR|>")));
    assert!(failed(marker::parse_reply(&Op::GetKeys {}, "nil")));
    let register = Op::ReadRegister { register: "r99".to_owned() };
    let unknown = marker::parse_reply(&register, "<|SUCCESS|>").unwrap_err();
    assert_eq!(unknown.status, Status::BadArgument, "the script returns nil for an unknown register");
    assert_eq!(marker::parse_reply(&Op::GameTitle {}, "<|SUCCESS|>"), Ok(Value::Text(String::new())));
    assert!(failed(marker::parse_reply(&Op::GetKeys {}, "<|SUCCESS|>")));
}

#[test]
fn hex_digits_are_two_for_each_byte_and_nothing_else() {
    assert_eq!(hex::hex_digits(&[0xd3, 0, 0xea]), "d300ea");
    assert_eq!(hex::parse_hex_digits("D300ea"), Some(vec![0xd3, 0, 0xea]));
    assert_eq!(hex::parse_hex_digits(""), Some(vec![]));
    for wrong in ["d", "d3 ", "d3,00", "+1", "g0", "\u{e9}"] {
        assert_eq!(hex::parse_hex_digits(wrong), None, "{wrong:?}");
    }
}

#[test]
fn hex_pairs_may_contain_white_space_but_nothing_else() {
    assert_eq!(marker::parse_hex_pairs(" D3,\n0 0 , ea"), Some(vec![0xd3, 0, 0xea]));
    assert_eq!(marker::parse_hex_pairs(""), Some(vec![]));
    for wrong in ["d3,", ",", "d3,123", "d3;00", "+1", "-1", "g0"] {
        assert_eq!(marker::parse_hex_pairs(wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_hello_is_written_and_a_welcome_is_read() {
    assert_eq!(Hello::new(0xabc).to_message(), "framewire.hello,1,0000000000000abc<|END|>");
    let welcome = Welcome::from_reply("framewire.welcome,1,0.1.0,5f3a,1").expect("a welcome");
    assert_eq!((welcome.protocol, welcome.known), (1, true));
    assert_eq!((welcome.frame, welcome.events), (None, None));
    let welcome = Welcome::from_reply("framewire.welcome,1,0.1.0,5f3a,1,600,7").expect("a welcome");
    assert_eq!((welcome.frame, welcome.events), (Some(600), Some(7)));
    for other in ["<|ERROR|>", "framewire.welcome,1", "framewire.welcome,x,0.1.0,5f3a,1", ""] {
        assert_eq!(Welcome::from_reply(other), None, "{other:?}");
    }
}
