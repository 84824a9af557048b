//! The task that writes down what an emulator does.

use std::fs::File;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use framewire_emulator::{ClockTime, Discontinuity, Emulator, Pending, Watch, WatchEvent, WatchRequest};
use framewire_protocol::watch::MAX_QUIET;
use framewire_protocol::{Batch, Op, Outcome};
use framewire_states::{Clock, State};
use parking_lot::Mutex;
use tempfile::NamedTempFile;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::start_state::{StartState, begin, refused};
use super::{Options, Progress, unwritten_because};
use crate::head::WALL;
use crate::journal::{Completed, complete};
use crate::{Head, MAX_FILE, RecordError, Start, Writer, memory};

/// Time that the emulator has for what is asked of it in the middle of a recording.
pub(super) const DEADLINE: Duration = Duration::from_secs(3);

/// How often the file is synchronized with the disk.
const SYNC: Duration = Duration::from_millis(500);

/// Room left in a file for its end.
const MARGIN: u64 = 64 * 1024;

/// A recording's file, complete except for its name.
pub(super) struct Finished {
    pub file: NamedTempFile,
    pub frames: u64,
    pub bytes: u64,
    pub reason: String,
}

/// What a recording is made with.
pub(super) struct RecordTask {
    emulator: Arc<dyn Emulator>,
    watch: Watch,
    file: NamedTempFile,
    /// Contains what is not written to `file` yet.
    writer: Writer<Vec<u8>>,
    /// The frame counter before the first frame.
    first: u32,
    console: u8,
    /// Frames from one hash to the next.
    every: u32,
    /// The largest number of frames from one event to the next, whether keys change or not.
    beat: u32,
    /// Whether the first reset of a recording from power-on was not reported yet.
    own_reset: bool,
    /// The keys held in the last reported frame.
    keys: u16,
    /// Whether the emulator gives hashes; otherwise memory is read for them.
    hashes: bool,
    /// The frames after which memory was hashed last.
    hashed: Option<u64>,
    pub progress: Arc<Mutex<Progress>>,
}

/// A recording that has ended, whose file is not complete yet.
pub(super) struct Recorded {
    writer: Writer<Vec<u8>>,
    file: NamedTempFile,
    progress: Arc<Mutex<Progress>>,
    /// Why it ended, or why it could not be written further.
    ended: io::Result<String>,
}

impl Recorded {
    /// Completes the file. If a write failed, the file ends with the last complete entry.
    pub fn finish(self) -> io::Result<Finished> {
        let Recorded { writer, mut file, progress, ended } = self;
        let written = ended.and_then(|reason| {
            let frames = writer.frames();
            write_synced(file.as_file(), &writer.end(&reason)?)?;
            Ok(Completed { frames, bytes: file.as_file().metadata()?.len(), reason })
        });
        let Completed { frames, bytes, reason } = written.or_else(|error| {
            complete(file.as_file_mut(), |frames| {
                format!("it could not be written after frame {frames}: {error}")
            })
        })?;
        *progress.lock() = Progress { frames, bytes };
        Ok(Finished { file, frames, bytes, reason })
    }
}

/// Whether the recording continues, or why it ends.
enum Next {
    On,
    Over(String),
}

impl RecordTask {
    pub async fn begin(
        emulator: Arc<dyn Emulator>,
        mut file: NamedTempFile,
        options: &Options,
    ) -> Result<RecordTask, RecordError> {
        let every = options.every.max(1);
        let request =
            |every, hashes| WatchRequest { ranges: Vec::new(), every, keys: true, hashes, clock: hashes };
        let (mut hashes, mut beat) = (true, MAX_QUIET);
        let mut watch = emulator.watch(request(every, true));
        let mut outcome = begin(&*emulator, &watch, options.start).await;
        if refused(&outcome) {
            hashes = false;
            // Memory is read at an event.
            beat = (1..=every.min(MAX_QUIET)).rev().find(|beat| every.is_multiple_of(*beat)).unwrap_or(1);
            watch = emulator.watch(request(beat, false));
            outcome = begin(&*emulator, &watch, options.start).await;
        }
        let outcome = outcome?;
        let first = outcome.frame;
        let StartState { title, code, checksum, console, keys, state } = StartState::read(outcome)?;
        let head = Head {
            title,
            code,
            checksum,
            console,
            start: options.start,
            frame: first,
            pictures: if hashes { every } else { 0 },
            time: framewire_states::time::seconds(SystemTime::now()),
            note: options.note.clone(),
            clock: clock(&state),
            recovered: false,
        };
        let mut writer = Writer::begin(Vec::new(), &head, state).map_err(unwritten_because)?;
        let written = begin_to_write(&file, writer.take()).map_err(unwritten_because)?;
        written.await.map_err(unwritten_because)?.map_err(unwritten_because)?;
        // From here on it can be played, and is kept however it ends.
        file.disable_cleanup(true);
        let progress = Arc::new(Mutex::new(Progress { frames: 0, bytes: writer.bytes() }));
        let own_reset = options.start == Start::PowerOn;
        Ok(RecordTask {
            emulator,
            watch,
            file,
            writer,
            first,
            console,
            every,
            beat,
            own_reset,
            keys,
            hashes,
            hashed: None,
            progress,
        })
    }

    /// Records until it is asked to stop, or has to.
    pub async fn record(
        mut self,
        stop: watch::Receiver<bool>,
        asks: mpsc::Receiver<oneshot::Sender<()>>,
    ) -> Recorded {
        let mut sync = None;
        let mut ended = self.follow(stop, asks, &mut sync).await;
        if let Some(sync) = sync {
            let synced = sync.await.map_err(io::Error::other).and_then(|synced| synced);
            ended = synced.and(ended);
        }
        let RecordTask { writer, file, progress, .. } = self;
        Recorded { writer, file, progress, ended }
    }

    /// Writes down what the emulator reports. Returns the reason why the recording ends.
    async fn follow(
        &mut self,
        mut stop: watch::Receiver<bool>,
        mut asks: mpsc::Receiver<oneshot::Sender<()>>,
        sync: &mut Option<JoinHandle<io::Result<()>>>,
    ) -> io::Result<String> {
        let mut memory: Option<Pending> = None;
        let mut ticks = interval(SYNC);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return self.close().await,
                Some(answer) = asks.recv() => {
                    if let Next::Over(reason) = self.take_all()? {
                        return Ok(reason);
                    }
                    self.report();
                    // The one that asked may be gone.
                    let _ = answer.send(());
                }
                synced = async { sync.as_mut().expect("begun").await }, if sync.is_some() => {
                    *sync = None;
                    synced.map_err(io::Error::other)??;
                }
                _ = ticks.tick(), if sync.is_none() => *sync = self.sync()?,
                event = self.watch.next() => {
                    let Some(event) = event else { return Ok("the emulator is gone".to_owned()) };
                    let mark = event.ticks.is_multiple_of(self.every.into());
                    if let Next::Over(reason) = self.take(&event)? {
                        return Ok(reason);
                    }
                    if mark && !self.hashes && memory.is_none() {
                        memory = Some(self.submit(memory::read(self.console)));
                    }
                }
                outcome = async { memory.as_mut().expect("asked for").await }, if memory.is_some() => {
                    memory = None;
                    // Without an answer there is one hash less.
                    if let Ok(outcome) = outcome && let Next::Over(reason) = self.remember(&outcome)? {
                        return Ok(reason);
                    }
                }
            }
            self.report();
            if self.writer.bytes() > MAX_FILE - MARGIN {
                return Ok("its file is as large as they may be".to_owned());
            }
        }
    }

    fn report(&self) {
        *self.progress.lock() = Progress { frames: self.writer.frames(), bytes: self.writer.bytes() };
    }

    /// Begins to synchronize the file with the disk, if something was written since the last time.
    fn sync(&mut self) -> io::Result<Option<JoinHandle<io::Result<()>>>> {
        self.writer.flush()?;
        let bytes = self.writer.take();
        if bytes.is_empty() {
            return Ok(None);
        }
        begin_to_write(&self.file, bytes).map(Some)
    }

    fn submit(&self, ops: Vec<Op>) -> Pending {
        self.emulator.submit(Batch::new(ops), Instant::now() + DEADLINE)
    }

    /// Writes what an event reports.
    fn take(&mut self, event: &WatchEvent) -> io::Result<Next> {
        let known = self.writer.frames();
        if event.gap || event.missed > 0 {
            return Ok(Next::Over(format!(
                "what was held after frame {known} is not known: the connection broke"
            )));
        }
        if let Some(discontinuity) = event.discontinuity {
            return self.discontinued(discontinuity, event.ticks);
        }
        if event.frame != self.first.wrapping_add(event.ticks as u32) {
            return Ok(Next::Over(displaced(known)));
        }
        // A late report, after a batch that it precedes. This does not happen while both arrive in order.
        let Some(passed) = event.ticks.checked_sub(known).filter(|passed| *passed > 0) else {
            return Ok(Next::On);
        };
        // A change is reported in the first frame that has it.
        self.writer.keys(self.keys, passed - 1)?;
        self.keys = event.keys.unwrap_or(self.keys);
        self.writer.keys(self.keys, 1)?;
        if event.ticks.is_multiple_of(self.every.into()) {
            event.hash.map_or(Ok(()), |hash| self.writer.picture(hash))?;
            event.memory.map_or(Ok(()), |hash| self.hashed(hash))?;
        }
        Ok(Next::On)
    }

    /// What comes after `ticks` frames cannot be recorded, and nothing before that is lost.
    fn discontinued(&mut self, discontinuity: Discontinuity, ticks: u64) -> io::Result<Next> {
        if std::mem::take(&mut self.own_reset) && (discontinuity, ticks) == (Discontinuity::Reset, 0) {
            return Ok(Next::On);
        }
        let passed = ticks.saturating_sub(self.writer.frames());
        // Of more frames, an event would have come before.
        if passed <= self.beat.into() {
            // No keys changed in them.
            self.writer.keys(self.keys, passed)?;
        }
        let what = match discontinuity {
            Discontinuity::Reset => "the console was reset",
            Discontinuity::State => "a state was loaded",
            Discontinuity::Game => "another game was loaded",
        };
        Ok(Next::Over(format!("{what} after frame {}", self.writer.frames())))
    }

    /// Handles everything that was reported already.
    fn take_all(&mut self) -> io::Result<Next> {
        while let Some(event) = self.take_reported() {
            if let over @ Next::Over(_) = self.take(&event)? {
                return Ok(over);
            }
        }
        Ok(Next::On)
    }

    /// Writes the hash of the work RAM after the current frame, unless that was done already.
    fn hashed(&mut self, hash: u32) -> io::Result<()> {
        if self.hashed.replace(self.writer.frames()) == Some(self.writer.frames()) {
            return Ok(());
        }
        self.writer.memory(hash)
    }

    /// Writes the hash of memory after the frame of the outcome.
    fn remember(&mut self, outcome: &Outcome) -> io::Result<Next> {
        // Reports that arrived before the outcome belong before it.
        while let Some(event) = self.take_reported() {
            let later = event.frame.wrapping_sub(self.first) > outcome.frame.wrapping_sub(self.first);
            if later && event.discontinuity.is_none() {
                // It is about a frame after the outcome. Up to there, no keys changed.
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
        // If it were longer ago, an event would have reported it.
        if passed > u64::from(self.beat) {
            return Ok(Next::Over(displaced(known)));
        }
        self.writer.keys(self.keys, passed)?;
        if let Ok(hash) = memory::hash(&outcome.results) {
            self.hashed(hash)?;
        }
        Ok(Next::On)
    }

    fn take_reported(&mut self) -> Option<WatchEvent> {
        match pin!(self.watch.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    /// Ends after the emulator's current frame.
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

/// Has a thread write to a file and sync it.
fn begin_to_write(file: &NamedTempFile, bytes: Vec<u8>) -> io::Result<JoinHandle<io::Result<()>>> {
    let file = file.as_file().try_clone()?;
    Ok(tokio::task::spawn_blocking(move || write_synced(&file, &bytes)))
}

fn write_synced(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_data()
}

/// With which time the clock begins, by the state before the first frame.
fn clock(state: &[u8]) -> String {
    let clock = State::read(state).ok().and_then(|state| state.clock());
    clock.map_or_else(
        || WALL.to_owned(),
        |Clock { unix_ms, zone }| ClockTime { unix_ms, zone: zone.unwrap_or(0) }.to_string(),
    )
}

/// Ends when the recorder is asked to stop or is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn displaced(known: u64) -> String {
    format!("a state was loaded or the console was reset after frame {known}")
}
