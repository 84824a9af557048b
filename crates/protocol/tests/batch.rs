//! Tests of the limits on a request.

use framewire_protocol::batch::check_ops;
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
fn arguments_are_checked_before_the_first_operation() {
    let sensor = |name: &str, thousandths| Op::SetSensor { sensor: name.to_owned(), thousandths };
    for (wrong, says) in [
        (Op::SetSpeed { thousandths: 9 }, "10 to 1000000"),
        (Op::HoldKeys { keys: 0, frames: 1 }, "names no key"),
        (Op::PlayKeys { steps: vec![1] }, "a step has 6"),
        (Op::AppendKeys { steps: vec![] }, "no steps"),
        (sensor("light", -1), "0 to 1000"),
        (sensor("gyro", 1001), "-1000 to 1000"),
        (sensor("lihgt", 1), "tilt_x, tilt_y, gyro, light"),
        (Op::Advance { frames: 0 }, "1 to 3600 frames"),
    ] {
        let (index, error) = check_ops(&[Op::Reset {}, wrong]).expect_err(says);
        assert_eq!((index, error.status), (1, Status::BadArgument), "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    let half = || Op::Advance { frames: 1800 };
    let (index, error) = check_ops(&[half(), half(), Op::Advance { frames: 1 }]).expect_err("too many");
    assert!(index == 2 && error.message.ends_with("run 3600"), "{error}");
    let good = [half(), half(), Op::SetSpeed { thousandths: 0 }, sensor("light", 0), sensor("gyro", -1000)];
    assert_eq!(check_ops(&good), Ok(()));
}

#[test]
fn a_key_that_is_empty_or_too_long_is_refused_not_cut() {
    let keyed = |key: String| Batch { key: Some(key), ..Op::Reset {}.into() };
    assert_eq!(refusal(&keyed("\u{f6}".repeat(MAX_KEY / 2))), None);
    assert_eq!(refusal(&keyed("\u{f6}".repeat(MAX_KEY / 2 + 1))), Some(Status::BadArgument));
    assert_eq!(refusal(&keyed(String::new())), Some(Status::BadArgument));
}
