//! Tests of the limits on a request.

use framewire_protocol::{Batch, Decoder, Frame, MAX_FRAME, MAX_KEY, MAX_OPS, Op, Request, Status};

fn refusal(batch: &Batch) -> Option<Status> {
    batch.check().err().map(|error| error.status)
}

fn echo(bytes: usize) -> Batch {
    Batch { key: Some("k".repeat(MAX_KEY)), ..Op::Echo { data: vec![0; bytes] }.into() }
}

#[test]
fn a_batch_that_passes_the_check_can_be_decoded_and_a_larger_one_is_refused() {
    let largest = (MAX_FRAME - 300..MAX_FRAME).rev().find(|bytes| refusal(&echo(*bytes)).is_none());
    let largest = echo(largest.expect("nearly a whole frame fits"));
    let many = Batch::new(vec![Op::GetKeys {}; MAX_OPS]);
    for batch in [largest, many, Batch::default()] {
        assert_eq!(refusal(&batch), None);
        let frame = Frame::Request(Request { id: 1, answered: 1, batch });
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let mut decoder = Decoder::new();
        decoder.push(&bytes);
        assert!(decoder.next_frame() == Ok(Some(frame)), "a frame of {} bytes", bytes.len());
    }
    assert_eq!(refusal(&echo(MAX_FRAME)), Some(Status::TooLarge));
    assert_eq!(refusal(&Batch::new(vec![Op::GetKeys {}; MAX_OPS + 1])), Some(Status::TooLarge));
    assert_eq!(refusal(&Batch::new(vec![Op::GetKeys {}; 0x1_0001])), Some(Status::TooLarge));
}

#[test]
fn a_key_that_is_empty_or_too_long_is_refused_not_cut() {
    let keyed = |key: String| Batch { key: Some(key), ..Op::Reset {}.into() };
    assert_eq!(refusal(&keyed("\u{f6}".repeat(MAX_KEY / 2))), None);
    assert_eq!(refusal(&keyed("\u{f6}".repeat(MAX_KEY / 2 + 1))), Some(Status::BadArgument));
    assert_eq!(refusal(&keyed(String::new())), Some(Status::BadArgument));
}
