//! The record of an interval: histograms of latencies, counts, and the texts of the first errors.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::target::{Failure, Trace};

/// The largest latency that is recorded: an hour, in nanoseconds. Larger latencies count as an hour.
const LONGEST: u64 = 3_600_000_000_000;
/// The largest number of different error texts that are kept in one record.
const TEXTS: usize = 16;

/// A histogram of latencies in nanoseconds, with a precision of one part in a thousand.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // The histogram grows as needed, so an empty one is small. This matters because the record of an interval has
        // five of them.
        Latencies(Histogram::new(3).expect("three digits are allowed"))
    }
}

impl Latencies {
    /// Adds a latency.
    pub fn record(&mut self, latency: Duration) {
        // The histogram grows as needed, so every latency fits.
        let _ = self.0.record(u64::try_from(latency.as_nanos()).unwrap_or(LONGEST).min(LONGEST));
    }

    /// Adds the latencies of another histogram.
    pub fn add(&mut self, other: &Latencies) {
        let _ = self.0.add(&other.0);
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency, in milliseconds, that `percent` % of all latencies do not exceed; 0 without latencies.
    pub fn percentile(&self, percent: f64) -> f64 {
        // In floating-point numbers, 99.9 % of 1,000 are slightly more than 999, and would be rounded up to 1,000. So a
        // billionth is subtracted.
        let quantile = (percent / 100.0 - 1e-9).max(0.0);
        // The upper end of a bucket may be above the largest value.
        self.0.value_at_quantile(quantile).min(self.0.max()) as f64 / 1e6
    }

    /// The mean in milliseconds, rounded to nanoseconds; 0 without latencies.
    pub fn mean(&self) -> f64 {
        self.0.mean().round() / 1e6
    }

    /// The largest latency in milliseconds, with a precision of one part in a thousand; 0 without latencies.
    pub fn max(&self) -> f64 {
        self.0.max() as f64 / 1e6
    }

    /// The histogram itself, in nanoseconds.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// Counts of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Correct replies.
    pub correct: u64,
    /// Correct replies that arrived before the end of the window, which is the measured part of the run.
    pub in_window: u64,
    /// Requests without a correct reply, by [`Failure::kind`].
    pub failures: [u64; Failure::KINDS],
    /// Requests that were due while every connection was busy.
    pub waited: u64,
    /// Connections opened.
    pub connected: u64,
    /// Retries of failed requests.
    pub retries: u64,
    /// Bytes of the requests, where the target reports them.
    pub bytes_sent: u64,
    /// Bytes of the replies, where the target reports them.
    pub bytes_received: u64,
    /// Requests that were still open when the run was cut short. They count neither as correct nor as failed.
    pub cut_off: u64,
}

impl Counts {
    /// Requests that ended in this interval, with or without a correct reply.
    pub fn ended(&self) -> u64 {
        self.correct + self.failed()
    }

    /// Requests that ended without a correct reply.
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Adds the counts of another record.
    pub fn add(&mut self, other: &Counts) {
        self.correct += other.correct;
        self.in_window += other.in_window;
        self.waited += other.waited;
        self.connected += other.connected;
        self.retries += other.retries;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.cut_off += other.cut_off;
        for (mine, more) in self.failures.iter_mut().zip(other.failures) {
            *mine += more;
        }
    }
}

/// Everything that one worker, or several workers together, recorded in an interval or in the whole run.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// From the time a request was due to its correct reply.
    pub intended: Latencies,
    /// From the time a request was sent to its correct reply.
    pub sent: Latencies,
    /// How late the tester itself began requests for which a connection was free.
    pub late: Latencies,
    /// How long it took to open connections, whatever happened to the requests.
    pub connect: Latencies,
    /// From the time a request was sent to the first byte of its correct reply, where the target reports it.
    pub first_byte: Latencies,
    /// How requests ended.
    pub counts: Counts,
    /// The number of replies with each status, correct or not.
    pub statuses: BTreeMap<u16, u64>,
    /// The texts of the first few different errors, and how many times each occurred.
    pub texts: BTreeMap<String, u64>,
}

/// The end of a request.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) intended: Instant,
    pub(crate) end: Instant,
    pub(crate) trace: Trace,
    pub(crate) in_window: bool,
    pub(crate) result: Result<(), Failure>,
}

impl Record {
    /// Adds the record of another interval or worker.
    pub fn add(&mut self, other: &Record) {
        self.intended.add(&other.intended);
        self.sent.add(&other.sent);
        self.late.add(&other.late);
        self.connect.add(&other.connect);
        self.first_byte.add(&other.first_byte);
        self.counts.add(&other.counts);
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (text, count) in &other.texts {
            self.text(text, *count);
        }
    }

    pub(crate) fn ended(&mut self, ended: Ended) {
        let Trace { sent, first_byte, connecting, connected, retries, status, .. } = ended.trace;
        self.counts.connected += u64::from(connected);
        self.counts.retries += u64::from(retries);
        self.counts.bytes_sent += ended.trace.bytes_sent;
        self.counts.bytes_received += ended.trace.bytes_received;
        if let Some(took) = connecting {
            // Only the sum of the times is known.
            (0..connected).for_each(|_| self.connect.record(took / connected));
        }
        if let Some(status) = status {
            *self.statuses.entry(status).or_default() += 1;
        }
        match ended.result {
            Ok(()) => {
                self.counts.correct += 1;
                self.counts.in_window += u64::from(ended.in_window);
                self.intended.record(ended.end.saturating_duration_since(ended.intended));
                let sent = sent.unwrap_or(ended.intended);
                self.sent.record(ended.end.saturating_duration_since(sent));
                if let Some(first) = first_byte {
                    self.first_byte.record(first.saturating_duration_since(sent));
                }
            }
            Err(failure) => self.failed(&failure, 1),
        }
    }

    pub(crate) fn failed(&mut self, failure: &Failure, count: u64) {
        self.counts.failures[failure.kind()] += count;
        self.text(&failure.to_string(), count);
    }

    fn text(&mut self, text: &str, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(known) = self.texts.get_mut(text) {
            *known += count;
        } else if self.texts.len() < TEXTS {
            self.texts.insert(text.to_owned(), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_of_a_round_number_of_latencies_is_not_one_latency_too_high() {
        for thousands in 1..=8 {
            let mut latencies = Latencies::default();
            for _ in 0..999 * thousands {
                latencies.record(Duration::from_millis(1));
            }
            for _ in 0..thousands {
                latencies.record(Duration::from_millis(100));
            }
            let found = [0.0, 99.9, 99.95, 100.0].map(|percent| latencies.percentile(percent).round());
            assert_eq!(found, [1.0, 1.0, 100.0, 100.0], "{thousands},000 latencies");
        }
    }
}
