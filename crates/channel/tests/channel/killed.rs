use std::env;
use std::time::{Duration, Instant};

use framewire_channel::{Endpoint, Error, Options};

use crate::support::{LONG, NAME, ROLE, check, fill, kills, length, name, spawn};
use crate::until_good::until_good;

/// The process that a test kills. It sends messages until then.
#[test]
#[ignore = "run by the test below and by lua.rs, in a process of its own"]
fn victim() {
    let Ok(role) = env::var(ROLE) else { return };
    let name = env::var(NAME).expect("the channel's name");
    let mut mine = match role.as_str() {
        "create" => Endpoint::create(&name, Options::default()).expect("a new channel"),
        _ => Endpoint::connect(&name, LONG, Options::default()).expect("the other side"),
    };
    mine.accept(LONG).expect("the other side attaches");
    for number in 0.. {
        let Ok(mut place) = mine.sender.reserve(length(number), LONG) else { return };
        fill(&mut place, number);
        place.commit();
    }
}

#[test]
fn a_killed_side_is_noticed_and_the_next_start_works() {
    let name = name();
    for round in 0..kills() {
        let child_creates = round % 2 == 0;
        let mut child = spawn("killed::victim", if child_creates { "create" } else { "connect" }, &name);
        let mut mine = if child_creates {
            Endpoint::connect(&name, LONG, Options::default())
        } else {
            Endpoint::create(&name, Options::default())
        }
        .unwrap_or_else(|error| panic!("round {round}: {error}"));
        mine.accept(LONG).expect("the other side attaches");
        let kill_at = Instant::now() + Duration::from_micros(fastrand::u64(0..5000));
        let mut killed = None;
        for number in 0.. {
            match mine.receiver.receive(LONG) {
                Ok(message) => check(&message, number),
                Err(Error::Died) => break,
                Err(error) => panic!("round {round}: {error}"),
            }
            if killed.is_none() && Instant::now() >= kill_at {
                child.kill().expect("a kill");
                killed = Some(Instant::now());
            }
        }
        // This includes the time to read the messages that were sent before the kill. The test
        // `a_killed_side_is_noticed_within_a_tenth_of_a_second` has a tighter limit.
        assert!(killed.expect("it was killed").elapsed() < Duration::from_secs(5));
        child.wait().expect("its end");
    }
}

/// Another process that a test kills. It only waits.
#[test]
#[ignore = "run by the test below in a process of its own"]
fn sleeper() {
    let Ok(name) = env::var(NAME) else { return };
    let mut mine = Endpoint::connect(&name, LONG, Options::default()).expect("the other side");
    let _ = mine.receiver.receive(None);
}

#[test]
fn a_killed_side_is_noticed_within_a_tenth_of_a_second() {
    // A busy machine can delay the end of the child.
    until_good(time_until_noticed, |time| *time < Duration::from_millis(100));
}

/// Kills the other side while this side waits. Returns the time until this side notices it.
fn time_until_noticed() -> Duration {
    let name = name();
    let mut mine = Endpoint::create(&name, Options::default()).expect("a new channel");
    let mut child = spawn("killed::sleeper", "connect", &name);
    mine.accept(LONG).expect("the other side attaches");
    assert!(matches!(mine.receiver.receive(Some(Duration::from_millis(70))), Err(Error::Timeout)));
    child.kill().expect("a kill");
    let killed = Instant::now();
    assert!(matches!(mine.receiver.receive(LONG), Err(Error::Died)));
    let noticed = killed.elapsed();
    child.wait().expect("its end");
    noticed
}
