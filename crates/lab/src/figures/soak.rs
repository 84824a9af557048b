//! The long run: sends requests of mixed sizes through a bridge (`framewire serve --attach`), and watches memory and
//! frame rate.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use procfs::process::Process;
use serde::{Deserialize, Serialize};

use super::bench;
use super::judge::{ALL_CORRECT, FULL_SPEED};
use super::record::Provenance;
use super::sample::Sample;
use crate::setup::{self, Place, Script, Setup};

/// The sizes of the messages, in bytes.
const SIZES: &str = "1..5000";
/// The time between two readings of the memory.
const PERIOD: Duration = Duration::from_secs(1);
/// By how many percent the memory use in the last minute may differ from that in the second minute.
const DRIFT: f64 = 2.0;

/// The result of the long run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Soak {
    /// The program, the machine and the time.
    pub about: Provenance,
    /// The load, and the frame rate during it.
    pub run: Sample,
    /// The memory and file descriptors of the bridge.
    pub bridge: Memory,
    /// The memory and file descriptors of the emulator.
    pub emulator: Memory,
    /// The bounds that were missed, as sentences.
    pub missed: Vec<String>,
}

/// The memory and file descriptors of a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The mean memory use in each minute, in bytes.
    pub minutes: Vec<f64>,
    /// The numbers of file descriptors at the beginning and at the end.
    pub descriptors: (usize, usize),
}

impl Memory {
    /// By how many percent the memory use grew from the second to the last minute; `None` if the run was shorter than
    /// three minutes.
    pub fn drift(&self) -> Option<f64> {
        match self.minutes[..] {
            [_, second, .., last] => Some(100.0 * (last / second - 1.0)),
            _ => None,
        }
    }

    fn missed(&self, name: &str) -> Option<String> {
        match self.drift() {
            None => Some(format!("{name}: a run of less than three minutes does not show memory growth")),
            Some(drift) => (drift.abs() > DRIFT)
                .then(|| format!("{name}: its memory changed by {drift:+.1}% since the second minute")),
        }
    }
}

/// Runs the load for `length`, at `rate` requests per second.
///
/// # Errors
/// If `length` is less than a second, if a program does not start, or if one ends during the run.
pub fn run(length: Duration, rate: u32) -> anyhow::Result<Soak> {
    if length < Duration::from_secs(1) {
        bail!("a soak of {length:?} is too short; give --minutes a number such as 10");
    }
    let about = Provenance::new();
    let setup = Setup::settled(Place::Window, Script::Ours)?;
    let bridge = setup::bridge(setup.address)?;
    let pids = [bridge.pid(), setup.pid()];
    let (stop, stopped) = mpsc::channel::<()>();
    let memory = thread::spawn(move || {
        let start = Instant::now();
        let mut samples = Vec::new();
        while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            samples.push((start.elapsed(), pids.map(resident)));
        }
        samples
    });
    let before = pids.map(descriptors);
    let target = vec![format!("{}/mgbaendpoint", bridge.url())];
    let run = bench(&setup, target, rate, SIZES, length)?;
    let after = pids.map(descriptors);
    drop(stop);
    let samples = memory.join().ok().context("the thread that watched the memory failed")?;
    let [bridge, emulator] = [0, 1].map(|which| -> anyhow::Result<Memory> {
        let of_one: Option<Vec<_>> =
            samples.iter().map(|(time, resident)| Some((*time, resident[which]?))).collect();
        Ok(Memory {
            minutes: minutes(&of_one.context("a process ended during the run")?),
            descriptors: before[which].zip(after[which]).context("a process ended during the run")?,
        })
    });
    let (bridge, emulator) = (bridge?, emulator?);
    let runs = std::slice::from_ref(&run);
    let missed = [ALL_CORRECT, FULL_SPEED].iter().filter_map(|bound| bound.missed(runs, &[]));
    let missed = missed.chain([bridge.missed("the bridge"), emulator.missed("mGBA")].into_iter().flatten());
    Ok(Soak { about, missed: missed.collect(), run, bridge, emulator })
}

/// The mean of each minute. An incomplete minute at the end is added to the one before it.
fn minutes(samples: &[(Duration, u64)]) -> Vec<f64> {
    let minute = |time: Duration| (time.as_secs() / 60) as usize;
    let whole = samples.last().map_or(0, |(last, _)| minute(*last + PERIOD).max(1));
    let mut sums = vec![(0.0, 0.0); whole];
    for (time, bytes) in samples {
        if let Some((sum, count)) = sums.get_mut(minute(*time).min(whole.saturating_sub(1))) {
            *sum += *bytes as f64;
            *count += 1.0;
        }
    }
    sums.iter().map(|(sum, count)| sum / f64::max(*count, 1.0)).collect()
}

/// The resident memory of a process in bytes; `None` if the process is gone.
fn resident(pid: u32) -> Option<u64> {
    Some(1024 * process(pid)?.status().ok()?.vmrss?)
}

/// The number of open file descriptors of a process; `None` if the process is gone.
fn descriptors(pid: u32) -> Option<usize> {
    process(pid)?.fd_count().ok()
}

fn process(pid: u32) -> Option<Process> {
    Process::new(pid.try_into().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_descriptors() {
        let pid = std::process::id();
        let before = resident(pid).unwrap();
        let block = vec![1u8; 64 << 20];
        assert!(resident(pid).unwrap() > before + (32 << 20));
        drop(block);
        assert!(descriptors(pid).unwrap() >= 3);
        assert_eq!(resident(u32::MAX), None);
    }

    #[test]
    fn memory_that_grows_is_found() {
        let samples: Vec<_> =
            (0..602).map(|second| (Duration::from_secs(second), 1_000_000 + 1000 * second)).collect();
        let minutes = minutes(&samples);
        assert_eq!(minutes.len(), 10);
        assert!((minutes[0] - 1_029_500.0).abs() < 1.0, "{minutes:?}");
        let memory = Memory { minutes, descriptors: (9, 9) };
        assert!(memory.missed("it").unwrap().contains("+4"), "{memory:?}");
        let flat = Memory { minutes: vec![50.0, 100.0, 100.0, 101.0], descriptors: (9, 9) };
        assert_eq!(flat.missed("it"), None);
        assert!(Memory { minutes: vec![1.0, 1.0], descriptors: (9, 9) }.missed("it").is_some());
    }
}
