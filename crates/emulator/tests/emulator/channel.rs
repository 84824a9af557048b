//! Tests of an embedded core with a client on a channel.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use framewire_channel::{Endpoint, Error, Options};
use framewire_emulator::embedded::{Config, Embedded, Speed};
use framewire_emulator::{Emulator, SetSpeed};
use framewire_protocol::{Batch, Frame, KeyStep, Op, Outcome, Reply, Request, Status, Value, timeline};

use super::support::{call, config, number, run_of, seconds, wait_for};

const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));
/// The kind of the message with which a client takes over the clock and runs frames. After the kind follow a byte
/// without a meaning, the keys (2 bytes; 0xFFFF leaves the keys as they are) and the number of frames (4 bytes).
const STEP: u8 = 64;
/// The kind of the message with which a client gives the clock back.
const RUN: u8 = 65;
/// The kind of the reply to both.
const DONE: u8 = 72;
/// The index of a word in the block, which is the channel's extra memory. This word counts the frames that have run
/// since the channel was created.
const TICK: usize = 5;

fn batch(client: &mut Endpoint, ops: Vec<Op>) -> Outcome {
    let mut bytes = Vec::new();
    Frame::Request(Request { id: 1, answered: 1, batch: Batch::new(ops) }).encode(&mut bytes);
    client.send(&bytes[4..], PATIENCE).expect("sent");
    let reply = client.receiver.receive(PATIENCE).expect("a reply");
    match Frame::decode(&reply) {
        Ok(Frame::Reply(Reply { id: 1, outcome })) => outcome,
        other => panic!("{other:?}"),
    }
}

/// A running core on a channel whose name begins with `prefix`, and a client of the channel.
fn connected(prefix: &str) -> (Embedded, Endpoint) {
    let name = format!("{prefix}-{}", std::process::id());
    let emulator =
        Embedded::start_on_channel(config(Speed::Times(1.0), false, vec![]), &name).expect("a channel");
    let client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("the core is there");
    (emulator, client)
}

/// Requests a day of frames, and sends a second message that the core cannot serve before these frames have run.
fn begin_long_step(client: &mut Endpoint) {
    let [a, b, c, d] = 5_000_000_u32.to_le_bytes();
    for message in [&[STEP, 0, 1, 0, a, b, c, d][..], &[RUN]] {
        client.send(message, PATIENCE).expect("sent");
    }
}

#[test]
fn a_client_plays_keys_and_runs_frames_in_a_batch() {
    let name = format!("framewire-test-{}", std::process::id());
    let config = config(Speed::Times(1.0), true, vec![]);
    let emulator = Embedded::start_on_channel(config, &name).expect("a channel");
    let mut client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("the core is there");
    let steps = timeline::encode(&[KeyStep { offset: 1, keys: 1 }, KeyStep { offset: 2, keys: 0 }]);
    let mut ops = vec![Op::PlayKeys { steps }];
    for _ in 0..4 {
        ops.extend([Op::GetKeys {}, Op::Advance { frames: 1 }]);
    }
    let outcome = batch(&mut client, ops);
    let values: Vec<i64> =
        outcome.results.into_iter().map(|result| number(result.expect("a value"))).collect();
    assert_eq!(values, [1, 0, 1, 1, 2, 0, 3, 0, 4]);
    assert_eq!(client.extra().as_ref()[TICK].load(Ordering::Acquire), 4);

    let watch = Op::Watch { id: 1, every: 1, flags: 0, ranges: vec![] };
    let refused = batch(&mut client, vec![watch]).single().expect_err("a channel has its own watches");
    assert_eq!(refused.status, Status::BadArgument);

    // Each batch has two operations that a channel does not have. The error is about the first one.
    let run = Op::Run { steps: vec![] };
    let script = Op::Script { code: "return 1".to_owned() };
    for (ops, name) in [([script.clone(), run.clone()], "`script`"), ([run, script], "`run`")] {
        let outcome = batch(&mut client, ops.to_vec());
        let (index, refused) = outcome.refusal().expect("a refusal");
        assert_eq!((index, refused.status), (0, Status::Unsupported));
        assert!(refused.message.starts_with(name), "{refused}");
    }

    let outcome = batch(&mut client, vec![Op::SetSpeed { thousandths: 2000 }, Op::Resume {}]);
    assert_eq!(outcome.results, [Ok(Value::None), Ok(Value::None)]);
    wait_for("frames", || {
        emulator.state().frame > 10 && emulator.state().speed == Some(SetSpeed::Times(2.0))
    });
    client.send(&[RUN], PATIENCE).expect("sent");
    assert_eq!(client.receiver.receive(PATIENCE).expect("an answer")[0], DONE);
}

#[test]
fn a_truncated_channel_is_closed_and_the_core_continues() {
    let name = format!("framewire-truncated-{}", std::process::id());
    let emulator =
        Embedded::start_on_channel(config(Speed::Unlimited, false, vec![]), &name).expect("a channel");
    let path = format!("/dev/shm/framewire.{name}");
    let step = [STEP, 0, 1, 0, 1, 0, 0, 0];
    for round in 0..12 {
        // Connecting waits until the core has replaced the channel of the previous round.
        let mut client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("the core is there");
        let holds_clock = round % 2 == 0;
        if holds_clock {
            client.send(&step, PATIENCE).expect("sent");
            assert_eq!(client.receiver.receive(PATIENCE).expect("an answer")[0], DONE);
        }
        let file = OpenOptions::new().write(true).open(&path).expect("the block's file");
        let size = file.metadata().expect("its size").len();
        // Cut the file: to nothing, to the header, in the slots for messages, in the memory for long messages, and in
        // the block with the picture. Or extend it.
        let other = [0, 4096, 200_000, size - 600_000, size - 4096, size + 4096][round / 2 % 6];
        file.set_len(other).expect("another size");
        let error = loop {
            let end =
                client.send(&step, PATIENCE).and_then(|()| client.receiver.receive(PATIENCE).map(|_| ()));
            if let Err(error) = end {
                break error;
            }
        };
        assert!(matches!(error, Error::Damaged(_) | Error::Closed | Error::Died), "round {round}: {error:?}");
        drop(client);
        // The game runs on at its own speed.
        let frame = emulator.state().frame;
        wait_for("frames", || emulator.state().frame > frame + 10);
    }
    let mut client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("a new channel");
    let keys = batch(&mut client, vec![Op::GetKeys {}]).single().expect("a value");
    assert_eq!(number(keys), 0);
}

#[test]
fn a_channel_that_cannot_be_created_is_logged_once_and_created_later() {
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let config = Config {
        console: || Box::new(|_, line| LINES.lock().expect("the lines").push(line.to_owned())),
        ..config(Speed::Times(1.0), true, vec![])
    };
    let name = format!("framewire-taken-{}", std::process::id());
    let _emulator = Embedded::start_on_channel(config, &name).expect("a channel");
    let client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("the core is there");
    std::fs::remove_file(format!("/dev/shm/framewire.{name}")).expect("removed");
    let other = Endpoint::create(&name, Options::default()).expect("another channel");
    drop(client);
    let count =
        || LINES.lock().expect("the lines").iter().filter(|line| line.contains("served already")).count();
    wait_for("the line", || count() > 0);
    // Longer than the time between two attempts.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(count(), 1);
    drop(other);
    Endpoint::connect(&name, PATIENCE, Options::default()).expect("a new channel");
}

#[test]
fn the_log_says_why_a_channel_ended() {
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let config = Config {
        console: || Box::new(|_, line| LINES.lock().expect("the lines").push(line.to_owned())),
        ..config(Speed::Times(1.0), true, vec![])
    };
    let name = format!("framewire-unread-{}", std::process::id());
    let _emulator = Embedded::start_on_channel(config, &name).expect("a channel");
    let mut client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("the core is there");
    let error = loop {
        if let Err(error) = client.send(&[RUN], PATIENCE) {
            break error;
        }
    };
    assert!(matches!(error, Error::Closed), "{error:?}");
    let says = |text: &str| LINES.lock().expect("the lines").iter().any(|line| line.contains(text));
    wait_for("the line", || says("there was no room for a reply, because the client read no replies"));

    let mut client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("a new channel");
    client.send(&[RUN, 0], PATIENCE).expect("sent");
    client.receiver.receive(PATIENCE).expect("the reason");
    drop(client);
    wait_for("the line", || says("the client sent a malformed message: "));
}

#[test]
fn a_channel_whose_name_was_removed_gets_a_new_one() {
    let name = format!("framewire-removed-{}", std::process::id());
    let _emulator =
        Embedded::start_on_channel(config(Speed::Times(1.0), true, vec![]), &name).expect("a channel");
    std::fs::remove_file(format!("/dev/shm/framewire.{name}")).expect("removed");
    Endpoint::connect(&name, PATIENCE, Options::default()).expect("a new channel");
}

#[test]
fn keys_of_a_client_that_gave_the_clock_back_are_released_when_it_leaves() {
    let (emulator, mut client) = connected("framewire-keys");
    for message in [&[STEP, 0, 1, 0, 1, 0, 0, 0][..], &[RUN]] {
        client.send(message, PATIENCE).expect("sent");
        assert_eq!(client.receiver.receive(PATIENCE).expect("an answer")[0], DONE);
    }
    let keys = || number(call(&emulator, Op::GetKeys {}));
    assert_eq!(keys(), 1);
    drop(client);
    wait_for("the key to be up", || keys() == 0);
}

/// The environment variable with the name of the channel for [`victim`].
const CHANNEL: &str = "FRAMEWIRE_TEST_CHANNEL";

/// Begins a long step in a process of its own.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn victim() {
    let Ok(name) = std::env::var(CHANNEL) else { return };
    let mut client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("the core is there");
    begin_long_step(&mut client);
    loop {
        std::thread::park();
    }
}

#[test]
fn a_client_killed_during_a_long_step_is_noticed_even_with_a_message_pending() {
    let name = format!("framewire-killed-{}", std::process::id());
    let emulator =
        Embedded::start_on_channel(config(Speed::Times(1.0), false, vec![]), &name).expect("a channel");
    let mut victim = Command::new(std::env::current_exe().expect("this program"))
        .args(["channel::victim", "--exact", "--ignored"])
        .env(CHANNEL, &name)
        .stdout(Stdio::null())
        .spawn()
        .expect("another process");
    let keys = || number(call(&emulator, Op::GetKeys {}));
    wait_for("the step", || keys() == 1);
    victim.kill().expect("a kill");
    victim.wait().expect("its end");
    wait_for("the key to be up", || keys() == 0);
}

#[test]
fn a_run_is_answered_when_a_batch_of_the_client_ends_it() {
    let (emulator, mut client) = connected("framewire-test-run");
    // From now on, frames run only when the client requests them.
    client.send(&[STEP, 0, 0, 0, 0, 0, 0, 0], PATIENCE).expect("sent");
    assert_eq!(client.receiver.receive(PATIENCE).expect("an answer")[0], DONE);
    let run = emulator.submit(Batch::new(vec![run_of(1)]), seconds(5.0));
    let frame = number(call(&emulator, Op::CurrentFrame {}));
    assert!(batch(&mut client, vec![Op::Advance { frames: 1 }]).single().is_ok());
    let outcome = run.wait().expect("an outcome");
    assert_eq!(i64::from(outcome.frame), frame + 1);
}

#[test]
fn a_request_for_a_picture_during_a_step_adds_no_frame() {
    let name = format!("framewire-extra-{}", std::process::id());
    let emulator =
        Embedded::start_on_channel(config(Speed::Times(1.0), true, vec![]), &name).expect("a channel");
    let mut client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("the core is there");
    let over = AtomicBool::new(false);
    let frames: Vec<u32> = std::thread::scope(|scope| {
        scope.spawn(|| {
            // If the client fails, this thread ends, too.
            let end = Instant::now() + Duration::from_secs(60);
            while !over.load(Ordering::Relaxed) && Instant::now() < end {
                call(&emulator, Op::Screenshot {});
            }
        });
        let frames = (0..500)
            .map(|_| {
                // The first frame of each step is not drawn.
                client.send(&[STEP, 0, 0, 0, 2, 0, 0, 0], PATIENCE).expect("sent");
                let done = client.receiver.receive(PATIENCE).expect("an answer");
                u32::from_le_bytes(done[4..8].try_into().expect("four bytes"))
            })
            .collect();
        over.store(true, Ordering::Relaxed);
        frames
    });
    assert!(frames.windows(2).all(|pair| pair[1] == pair[0] + 2), "{frames:?}");
}

#[test]
fn a_client_that_leaves_during_a_long_step_is_noticed_even_with_a_message_pending() {
    let (emulator, mut client) = connected("framewire-left");
    begin_long_step(&mut client);
    let keys = || number(call(&emulator, Op::GetKeys {}));
    wait_for("the step", || keys() == 1);
    drop(client);
    wait_for("the key to be up", || keys() == 0);
}

#[test]
fn keys_that_a_client_pressed_in_a_batch_are_released_when_it_leaves_with_the_clock() {
    let (emulator, mut client) = connected("framewire-batch-keys");
    client.send(&[STEP, 0, 0xFF, 0xFF, 1, 0, 0, 0], PATIENCE).expect("sent");
    assert_eq!(client.receiver.receive(PATIENCE).expect("an answer")[0], DONE);
    batch(&mut client, vec![Op::AddKeys { keys: 2 }]);
    let keys = || number(call(&emulator, Op::GetKeys {}));
    assert_eq!(keys(), 2);
    drop(client);
    wait_for("the key to be up", || keys() == 0);
}

#[test]
fn a_client_that_pressed_nothing_ends_no_timeline_when_it_leaves() {
    let name = format!("framewire-idle-{}", std::process::id());
    let emulator =
        Embedded::start_on_channel(config(Speed::Times(1.0), false, vec![]), &name).expect("a channel");
    call(&emulator, super::support::hold_a(100_000));
    let mut client = Endpoint::connect(&name, PATIENCE, Options::default()).expect("the core is there");
    client.send(&[STEP, 0, 0xFF, 0xFF, 1, 0, 0, 0], PATIENCE).expect("sent");
    assert_eq!(client.receiver.receive(PATIENCE).expect("an answer")[0], DONE);
    drop(client);
    // A new client can connect only after the core has noticed that this one is gone.
    Endpoint::connect(&name, PATIENCE, Options::default()).expect("a new channel");
    assert_eq!(number(call(&emulator, Op::GetKeys {})), 1);
}

#[test]
fn a_refused_batch_does_not_change_which_keys_are_released_when_its_client_leaves() {
    let (emulator, mut client) = connected("framewire-refused-keys");
    client.send(&[STEP, 0, 1, 0, 1, 0, 0, 0], PATIENCE).expect("sent");
    assert_eq!(client.receiver.receive(PATIENCE).expect("an answer")[0], DONE);
    let missing = Op::Read8 { address: 0x1000_0000 };
    let refused = batch(&mut client, vec![Op::ClearKeys { keys: 1 }, Op::AddKeys { keys: 2 }, missing]);
    assert!(refused.refusal().is_some(), "{refused:?}");
    // Another client holds the key that the refused batch names.
    call(&emulator, Op::AddKeys { keys: 2 });
    drop(client);
    wait_for("the first key to be up", || number(call(&emulator, Op::GetKeys {})) == 2);
}
