//! Runs a plan.
//!
//! - [`run`]: starts one thread per worker, and collects what the workers record;
//! - `worker`: the run of one worker: its pacer, its clients and its intervals;
//! - `slots`: assigns requests to idle clients, and keeps a queue of requests while all clients are busy;
//! - `pace`: waits with a precision of microseconds; `processor`: measures how much processor time a worker used;
//! - `timeout`: time-outs that cost almost nothing as long as nothing times out.

mod pace;
mod processor;
mod slots;
mod timeout;
mod worker;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::plan::{Load, Plan};
use crate::probe::{Pace, Probe, Sampler};
use crate::record::Record;
use crate::row::Point;
use crate::target::Target;

/// How much time workers have to get ready before the first request is due.
const LEAD: Duration = Duration::from_millis(30);

/// Ends runs early, from any thread. All clones have the same effect.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the current run, and all later runs that get a clone.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// An interval of the run, with the records of all workers together.
#[derive(Debug)]
pub struct Interval {
    /// When it began, counted from the start of the window (the measured part of the run).
    pub start: Duration,
    /// Its nominal length.
    pub length: Duration,
    /// What was recorded in this interval. Only requests that were due in the window are recorded.
    pub record: Record,
}

/// What a run measured.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The length of the window (the measured part of the run); shorter than planned if the run was cut short.
    pub window: Duration,
    /// Everything that was recorded.
    pub total: Record,
    /// The figures of the intervals, in order.
    pub series: Vec<Point>,
    /// The share (0 to 1) of the available processor time that the busiest worker used for work; `None` if the system
    /// does not report it.
    pub busy: Option<f64>,
    /// The largest number of requests in flight at a time; with several workers, the sum of their largest numbers.
    pub most_in_flight: usize,
    /// How fast the probe's counter rose; `None` without a probe, or if there are too few samples.
    pub pace: Option<Pace>,
    /// Whether the run was stopped before its end.
    pub cut_short: bool,
}

/// What workers send to the collector.
enum Message {
    Interval { index: u64, record: Box<Record> },
    Done(worker::Done),
}

/// Runs `plan` against `target` on new threads, and waits for them. `probe` is sampled during the run, and `watch` is
/// called for each interval when it ends.
///
/// # Errors
/// If the system does not provide a thread or an event queue.
///
/// # Panics
/// If a client panics.
pub fn run<T: Target>(
    target: &Arc<T>,
    plan: &Plan,
    probe: &mut Option<Box<dyn Probe>>,
    stop: &Stop,
    watch: &mut dyn FnMut(&Interval),
) -> io::Result<Outcome> {
    let length = (plan.duration / 50).clamp(Duration::from_millis(100), Duration::from_secs(1));
    let start = Instant::now() + LEAD;
    let sampler = probe.take().map(|probe| Sampler::start(probe, start + plan.warmup));
    let (sender, receiver) = mpsc::channel();
    let mut threads = Vec::new();
    for index in 0..plan.workers {
        let task = worker::Task { index, start, interval: length, plan: plan.clone(), stop: stop.clone() };
        let (target, sender, all) = (Arc::clone(target), sender.clone(), stop.clone());
        let spawned = thread::Builder::new().name(format!("load-{index}")).spawn(move || {
            let result = worker::run(&*target, task, &sender);
            if result.is_err() {
                // Without this worker, the run has no result.
                all.stop();
            }
            result
        });
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                stop.stop();
                return Err(error);
            }
        }
    }
    drop(sender);

    let mut collector = Collector::new(plan, length);
    for message in receiver {
        collector.take(message, watch);
    }
    let mut failure = None;
    for thread in threads {
        match thread.join() {
            Ok(result) => failure = result.err().or(failure),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let mut pace = None;
    if let Some((reader, measured)) = sampler.and_then(Sampler::stop) {
        *probe = Some(reader);
        pace = measured;
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(collector.finish(pace, watch)),
    }
}

/// Combines the workers' records.
struct Collector {
    workers: usize,
    load: Load,
    length: Duration,
    /// Intervals for which the record of a worker is still missing, each with the number of records that have arrived.
    open: BTreeMap<u64, (usize, Record)>,
    /// The start of each complete interval, its figures, and how many correct replies came before the end of the
    /// window.
    closed: Vec<(Duration, Point, u64)>,
    outcome: Outcome,
}

impl Collector {
    fn new(plan: &Plan, length: Duration) -> Self {
        let outcome = Outcome { window: plan.duration, ..Outcome::default() };
        Collector {
            workers: plan.workers,
            load: plan.load.clone(),
            length,
            open: BTreeMap::new(),
            closed: Vec::new(),
            outcome,
        }
    }

    fn take(&mut self, message: Message, watch: &mut dyn FnMut(&Interval)) {
        match message {
            Message::Interval { index, record } => {
                let (shares, whole) = self.open.entry(index).or_default();
                *shares += 1;
                whole.add(&record);
                if *shares == self.workers {
                    self.close(index, watch);
                }
            }
            Message::Done(done) => {
                self.outcome.window = self.outcome.window.min(done.window);
                self.outcome.cut_short |= done.cut_short;
                self.outcome.most_in_flight += done.most_in_flight;
                self.outcome.busy = match (self.outcome.busy, done.busy) {
                    (Some(one), Some(other)) => Some(f64::max(one, other)),
                    (one, other) => one.or(other),
                };
            }
        }
    }

    fn close(&mut self, index: u64, watch: &mut dyn FnMut(&Interval)) {
        let Some((_, record)) = self.open.remove(&index) else { return };
        self.outcome.total.add(&record);
        let interval = Interval { start: self.length * index as u32, length: self.length, record };
        watch(&interval);
        self.closed.push((interval.start, Point::of(&interval), interval.record.counts.in_window));
    }

    fn finish(mut self, pace: Option<Pace>, watch: &mut dyn FnMut(&Interval)) -> Outcome {
        while let Some(index) = self.open.keys().next().copied() {
            self.close(index, watch);
        }
        // Only now is the end of the window known, because a run can be cut short.
        let window = self.outcome.window;
        for (start, mut point, in_window) in self.closed {
            let mut end = start + self.length;
            if start < window {
                end = end.min(window);
                point.at = end.as_secs_f64();
                point.rate = in_window as f64 / (end - start).as_secs_f64();
            }
            if let Load::Stages { stages, .. } = &self.load {
                point.asked = stages.rate_at(start + (end - start) / 2);
            }
            self.outcome.series.push(point);
        }
        self.outcome.series.sort_by(|one, other| one.at.total_cmp(&other.at));
        self.outcome.pace = pace;
        self.outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_after_the_window_does_not_count_in_the_rate_of_the_last_interval() {
        // The interval ends with the window, but its record is taken a little later.
        let length = Duration::from_millis(100);
        let mut collector = Collector::new(&Plan { duration: length, ..Plan::default() }, length);
        let mut record = Record::default();
        (record.counts.correct, record.counts.in_window) = (10, 8);
        collector.take(Message::Interval { index: 0, record: Box::new(record) }, &mut |_| {});
        let outcome = collector.finish(None, &mut |_| {});
        assert_eq!((outcome.series[0].at, outcome.series[0].rate), (0.1, 80.0));
    }
}
