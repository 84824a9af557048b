//! Measures how fast Rust sends and receives through a channel. This program is also the other side of the benchmark
//! `luajit benches/luajit/pingpong.lua --partner PROGRAM`, which starts it.
//!
//! `pingpong NAME CORE` runs on processor core CORE, attaches to channel NAME, and waits for requests: "p COUNT" means
//! to answer COUNT messages, one by one, and "s COUNT" to read COUNT messages and then send "done". `pingpong --measure
//! COUNT ROUNDS` starts a second copy of itself as the other side. The first copy prints two median times as JSON, in
//! nanoseconds: that of a round trip, and that of a message that gets no answer.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use framewire_channel::{Endpoint, Error, Options};

/// The length in bytes of each message of a round trip.
const DIALOGUE: usize = 11;
/// The length in bytes of each message of a stream in one direction.
const STREAM: usize = 64;
const LONG: Option<Duration> = Some(Duration::from_secs(10));

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn options() -> Options {
    // Each process spins for longer than a time slice of the scheduler, because it has a core of its own.
    Options { spin: Duration::from_millis(20), ..Options::default() }
}

fn pin(core: usize) -> Result {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

fn number_of(message: &[u8]) -> Result<u32> {
    let head = message.first_chunk().ok_or("a short message")?;
    Ok(u32::from_le_bytes(*head))
}

/// Answers each message with a message that begins with the same number.
fn echo_numbers(mine: &mut Endpoint, count: u32) -> Result {
    for _ in 0..count {
        let number = number_of(&mine.receiver.receive(LONG)?)?;
        let mut place = mine.reserve(DIALOGUE, LONG)?;
        place[..4].copy_from_slice(&number.to_le_bytes());
        place.commit();
    }
    Ok(())
}

fn read_stream(mine: &mut Endpoint, count: u32) -> Result {
    for number in 1..=count {
        let message = mine.receiver.receive(LONG)?;
        if message.len() != STREAM || number_of(&message)? != number {
            return Err("a torn message".into());
        }
    }
    Ok(mine.sender.send(b"done", LONG)?)
}

fn answer(name: &str, core: usize) -> Result {
    pin(core)?;
    let mut mine = Endpoint::connect(name, LONG, options())?;
    loop {
        let request = match mine.receiver.receive(None) {
            Ok(message) => String::from_utf8(message.to_vec())?,
            Err(Error::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (task, count) = request.split_once(' ').ok_or("a message without a task")?;
        match task {
            "p" => echo_numbers(&mut mine, count.parse()?)?,
            _ => read_stream(&mut mine, count.parse()?)?,
        }
    }
}

fn round_trips(mine: &mut Endpoint, count: u32) -> Result<f64> {
    mine.sender.send(format!("p {count}").as_bytes(), LONG)?;
    let start = Instant::now();
    for number in 1..=count {
        let mut place = mine.reserve(DIALOGUE, LONG)?;
        place[..4].copy_from_slice(&number.to_le_bytes());
        place.commit();
        if number_of(&mine.receiver.receive(LONG)?)? != number {
            return Err("a torn message".into());
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(count))
}

fn stream(mine: &mut Endpoint, count: u32) -> Result<f64> {
    let message = [0; STREAM];
    mine.sender.send(format!("s {count}").as_bytes(), LONG)?;
    let start = Instant::now();
    for number in 1..=count {
        let mut place = mine.sender.reserve(STREAM, LONG)?;
        place.copy_from_slice(&message);
        place[..4].copy_from_slice(&number.to_le_bytes());
        place.commit();
    }
    mine.receiver.receive(LONG)?;
    Ok(start.elapsed().as_nanos() as f64 / f64::from(count))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn measure(count: u32, rounds: usize) -> Result {
    let name = format!("pingpong-{}", std::process::id());
    let mut other = Command::new(std::env::current_exe()?).args([&name, "1"]).spawn()?;
    pin(0)?;
    let mut mine = Endpoint::create(&name, options())?;
    mine.accept(LONG)?;
    round_trips(&mut mine, count / 10)?;
    stream(&mut mine, count / 10)?;
    let (mut trips, mut messages) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        trips.push(round_trips(&mut mine, count)?);
        messages.push(stream(&mut mine, count)?);
    }
    drop(mine);
    other.wait()?;
    println!("{{\"round_trip_ns\": {:.3}, \"message_ns\": {:.3}}}", median(trips), median(messages));
    Ok(())
}

fn main() -> Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--measure", count, rounds] => measure(count.parse()?, rounds.parse::<usize>()?.max(1))?,
        [name, core] => answer(name, core.parse()?)?,
        _ => {
            eprintln!("usage: pingpong --measure COUNT ROUNDS, or pingpong NAME CORE");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}
