use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use framewire_channel::{Endpoint, Options};

pub const SECOND: Option<Duration> = Some(Duration::from_secs(1));
pub const LONG: Option<Duration> = Some(Duration::from_secs(10));

/// A name that no other test uses.
pub fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("rust-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

pub fn pair(options: Options) -> (Endpoint, Endpoint) {
    let name = name();
    let here = Endpoint::create(&name, options).expect("a new channel");
    let there = Endpoint::connect(&name, SECOND, options).expect("the other side");
    (here, there)
}

/// The number of rounds in a test that kills processes or damages memory; `FRAMEWIRE_KILLS` sets another number.
pub fn kills() -> u32 {
    std::env::var("FRAMEWIRE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(50)
}

/// The length of message `number` in a stream of messages with different lengths.
pub fn length(number: u32) -> usize {
    let number = number as usize;
    match number % 50 {
        49 => 1 + number * 7919 % 300_000,
        41..=48 => 1 + number * 31 % 5000,
        _ => 1 + number * 13 % 130,
    }
}

/// Fills a message with bytes that depend on its number, so that `check` finds torn and misplaced messages.
pub fn fill(place: &mut [u8], number: u32) {
    for (index, byte) in place.iter_mut().enumerate() {
        *byte = (number as usize * 31 + index * 7 + index / 256) as u8;
    }
}

/// Panics if a message differs from what `fill` wrote.
pub fn check(message: &[u8], number: u32) {
    assert_eq!(message.len(), length(number), "length of message {number}");
    for (index, byte) in message.iter().enumerate() {
        assert_eq!(
            *byte,
            (number as usize * 31 + index * 7 + index / 256) as u8,
            "byte {index} of message {number}"
        );
    }
}

/// Environment variables that a test sets for its second process, which runs this test program again.
pub const ROLE: &str = "FRAMEWIRE_TEST_ROLE";
pub const NAME: &str = "FRAMEWIRE_TEST_CHANNEL";

/// Starts a copy of this test program that runs only the function `test`, with a role.
pub fn spawn(test: &str, role: &str, name: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args([test, "--exact", "--nocapture", "--ignored"])
        .env(ROLE, role)
        .env(NAME, name)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("another process")
}
