//! The histograms themselves, as an HDR histogram log that the usual tools read.
//!
//! Each interval of each run has two lines: latencies from the intended send time, and latencies from the actual send
//! time. The tag of a line says the load and which of these two times counts (`asked-100-intended`, `asked-100-sent`).
//!
//! Values are nanoseconds; the column of the maximum is in milliseconds, as those tools expect.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::engine::Interval;

/// A log in progress. When an interval has ended, a separate thread encodes it. The text stays in memory until
/// [`finish`](HdrLog::finish) returns it.
#[derive(Debug)]
pub struct HdrLog {
    lines: Sender<Line>,
    writer: thread::JoinHandle<io::Result<Vec<u8>>>,
}

/// The content of a line, before it is encoded.
#[derive(Debug)]
struct Line {
    tag: String,
    start: Duration,
    length: Duration,
    histogram: Histogram<u64>,
}

impl HdrLog {
    /// Begins a log. The times in its lines are counted from `started`.
    pub fn begin(started: SystemTime) -> HdrLog {
        let (lines, received) = channel();
        let writer = thread::spawn(move || write(started, &received));
        HdrLog { lines, writer }
    }

    /// Adds an interval of the run `name`. `start` is the time from the beginning of the log to the beginning of the
    /// run's window, which is the measured part of the run.
    pub fn add(&self, name: &str, start: Duration, interval: &Interval) {
        for (clock, latencies) in [("intended", &interval.record.intended), ("sent", &interval.record.sent)] {
            // Sending fails only if the writer has failed; `finish` returns its error.
            let _ = self.lines.send(Line {
                tag: format!("{name}-{clock}"),
                start: start + interval.start,
                length: interval.length,
                histogram: latencies.histogram().clone(),
            });
        }
    }

    /// Ends the log and returns its text.
    ///
    /// # Errors
    /// If a histogram could not be encoded.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        drop(self.lines);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the log's writer panicked")))
    }
}

fn write(started: SystemTime, lines: &Receiver<Line>) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("nanoseconds; tags: load and clock")
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut out, &mut serializer)?;
    for line in lines {
        log.write_histogram(&line.histogram, line.start, line.length, Tag::new(&line.tag))
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(out)
}
