//! The writing down of what an emulator does.

use std::io::{self, BufWriter};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use framewire_emulator::{ClockTime, Emulator, Pending, Watch, WatchEvent, WatchRequest};
use framewire_protocol::{Batch, Op, Outcome};
use framewire_states::{Clock, State};
use parking_lot::Mutex;
use tempfile::NamedTempFile;
use tokio::sync::watch;

use super::opening::{Opening, begin, refused};
use super::{Options, Progress, unwritten_because};
use crate::head::WALL;
use crate::{Head, MAX_FILE, RecordError, Writer, memory};

/// Time that the emulator has for what is asked of it in the middle of a recording.
pub(super) const DEADLINE: Duration = Duration::from_secs(3);

/// Room left in a file for its end.
const MARGIN: u64 = 64 * 1024;

/// A recording's file, complete but for its name.
pub(super) struct Finished {
    pub file: NamedTempFile,
    pub frames: u64,
    pub bytes: u64,
    pub reason: String,
}

/// What a recording is made with.
pub(super) struct Tape {
    emulator: Arc<dyn Emulator>,
    watch: Watch,
    writer: Writer<BufWriter<NamedTempFile>>,
    /// The frame counter before the first frame.
    first: u32,
    console: u8,
    /// Frames from one event to the next that comes whether keys change or not.
    every: u32,
    /// The keys held in the last frame that was told.
    keys: u16,
    /// Whether pictures have hashes here; otherwise memory gets them.
    pictures: bool,
    pub progress: Arc<Mutex<Progress>>,
}

/// Whether to go on, and why not.
enum Next {
    On,
    Over(String),
}

impl Tape {
    pub async fn begin(
        emulator: Arc<dyn Emulator>,
        file: BufWriter<NamedTempFile>,
        options: &Options,
    ) -> Result<Tape, RecordError> {
        let every = options.every.max(1);
        let request = |hashes| WatchRequest { ranges: Vec::new(), every, keys: true, hashes, clock: hashes };
        let mut pictures = true;
        let mut watch = emulator.watch(request(true));
        let mut outcome = begin(&*emulator, &watch, options.start).await;
        if refused(&outcome) {
            pictures = false;
            watch = emulator.watch(request(false));
            outcome = begin(&*emulator, &watch, options.start).await;
        }
        let outcome = outcome?;
        let first = outcome.frame;
        let Opening { title, code, checksum, console, keys, state } = Opening::read(outcome)?;
        let head = Head {
            title,
            code,
            checksum,
            console,
            start: options.start,
            frame: first,
            pictures: if pictures { every } else { 0 },
            time: framewire_states::time::seconds(SystemTime::now()),
            note: options.note.clone(),
            clock: clock(&state),
        };
        let writer = Writer::begin(file, &head, state).map_err(unwritten_because)?;
        let progress = Arc::new(Mutex::new(Progress { frames: 0, bytes: writer.bytes() }));
        Ok(Tape { emulator, watch, writer, first, console, every, keys, pictures, progress })
    }

    /// Records until it is told to stop, or must.
    pub async fn record(mut self, mut stop: watch::Receiver<bool>) -> io::Result<Finished> {
        let mut memory: Option<Pending> = None;
        let reason = loop {
            tokio::select! {
                biased;
                () = told(&mut stop) => break self.close().await?,
                event = self.watch.next() => {
                    let Some(event) = event else { break "the emulator is gone".to_owned() };
                    let beat = event.ticks % u64::from(self.every) == 0;
                    if let Next::Over(reason) = self.take(&event)? {
                        break reason;
                    }
                    if beat && !self.pictures && memory.is_none() {
                        memory = Some(self.submit(memory::read(self.console)));
                    }
                }
                outcome = async { memory.as_mut().expect("asked for").await }, if memory.is_some() => {
                    memory = None;
                    // Without an answer there is one hash less.
                    if let Ok(outcome) = outcome && let Next::Over(reason) = self.remember(&outcome)? {
                        break reason;
                    }
                }
            }
            *self.progress.lock() = Progress { frames: self.writer.frames(), bytes: self.writer.bytes() };
            if self.writer.bytes() > MAX_FILE - MARGIN {
                break "its file is as large as they may be".to_owned();
            }
        };
        let Tape { writer, progress, .. } = self;
        let frames = writer.frames();
        let file = writer.end(&reason)?.into_inner().map_err(io::IntoInnerError::into_error)?;
        let bytes = file.as_file().metadata()?.len();
        *progress.lock() = Progress { frames, bytes };
        Ok(Finished { file, frames, bytes, reason })
    }

    fn submit(&self, ops: Vec<Op>) -> Pending {
        self.emulator.submit(Batch::new(ops), Instant::now() + DEADLINE)
    }

    /// Writes down what an event tells.
    fn take(&mut self, event: &WatchEvent) -> io::Result<Next> {
        let known = self.writer.frames();
        if event.gap || event.missed > 0 {
            return Ok(Next::Over(format!(
                "what was held behind frame {known} is not known: the connection broke"
            )));
        }
        if event.frame != self.first.wrapping_add(event.ticks as u32) {
            return Ok(Next::Over(displaced(known)));
        }
        // Told late, behind a batch that was ahead of it: never, as long as both come in order.
        let Some(passed) = event.ticks.checked_sub(known).filter(|passed| *passed > 0) else {
            return Ok(Next::On);
        };
        // A change is told in the first frame that has it.
        self.writer.keys(self.keys, passed - 1)?;
        self.keys = event.keys.unwrap_or(self.keys);
        self.writer.keys(self.keys, 1)?;
        if let Some(hash) = event.hash {
            self.writer.picture(hash)?;
        }
        Ok(Next::On)
    }

    /// Writes down what memory was like, behind the frame that the outcome is of.
    fn remember(&mut self, outcome: &Outcome) -> io::Result<Next> {
        // What was told before the outcome belongs before it.
        while let Some(event) = self.told_already() {
            if event.frame.wrapping_sub(self.first) > outcome.frame.wrapping_sub(self.first) {
                // Of a frame behind the outcome. Up to there, no keys changed.
                self.catch_up(outcome)?;
            }
            if let over @ Next::Over(_) = self.take(&event)? {
                return Ok(over);
            }
        }
        self.catch_up(outcome)
    }

    /// Writes the frames up to an outcome, in which no keys changed, and its memory; nothing if they are written already.
    fn catch_up(&mut self, outcome: &Outcome) -> io::Result<Next> {
        let known = self.writer.frames();
        let Some(passed) = u64::from(outcome.frame.wrapping_sub(self.first)).checked_sub(known) else {
            return Ok(Next::On);
        };
        // Longer ago than that, an event would have told of it.
        if passed > u64::from(self.every) {
            return Ok(Next::Over(displaced(known)));
        }
        self.writer.keys(self.keys, passed)?;
        if let Ok(hash) = memory::hash(&outcome.results) {
            self.writer.memory(hash)?;
        }
        Ok(Next::On)
    }

    fn told_already(&mut self) -> Option<WatchEvent> {
        match pin!(self.watch.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    /// Ends behind the frame that the emulator is at.
    async fn close(&mut self) -> io::Result<String> {
        let stopped = "stopped".to_owned();
        match self.submit(memory::read(self.console)).await {
            Ok(outcome) => Ok(match self.remember(&outcome)? {
                Next::On => stopped,
                Next::Over(reason) => reason,
            }),
            Err(error) => Ok(format!("stopped; the last frames may be missing: {error}")),
        }
    }
}

/// With which time the clock begins, by the state before the first frame.
fn clock(state: &[u8]) -> String {
    let clock = State::read(state).ok().and_then(|state| state.clock());
    clock.map_or_else(
        || WALL.to_owned(),
        |Clock { unix_ms, zone }| ClockTime { unix_ms, zone: zone.unwrap_or(0) }.to_string(),
    )
}

/// Ends when the recorder is told to stop, or nobody holds it any more.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn displaced(known: u64) -> String {
    format!("a state was loaded or the console was reset behind frame {known}")
}
