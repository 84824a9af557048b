//! The task that records what an emulator does.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow::{self, Break, Continue};
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

/// The time within which the emulator must answer a request from the recorder.
pub(super) const DEADLINE: Duration = Duration::from_secs(3);

/// How often the file is written and synced to the disk.
const SYNC: Duration = Duration::from_millis(500);

/// A recording ends when its file is this many bytes below the largest size, so that the last entries still fit.
const MARGIN: u64 = 64 * 1024;

/// A recording in progress.
pub(super) struct RecordTask {
    emulator: Arc<dyn Emulator>,
    watch: Watch,
    file: NamedTempFile,
    /// Contains the bytes that have not been written to `file` yet.
    writer: Writer<Vec<u8>>,
    /// The frame counter before the first frame.
    first: u32,
    console: u8,
    /// The number of frames from one hash to the next.
    every: u32,
    /// The largest number of frames from one event of the watch to the next, even if no keys change.
    max_quiet: u32,
    /// Whether the watch has yet to report the reset at the start of a recording from power-on.
    own_reset: bool,
    /// The keys held in the last reported frame.
    keys: u16,
    /// Whether the emulator reports hashes of pictures and memory. Otherwise the recorder reads memory and computes
    /// only hashes of memory.
    hashes: bool,
    /// The frame of the last hash of memory.
    hashed: Option<u64>,
    pub progress: Arc<Mutex<Progress>>,
}

/// A recording that has ended, but whose file is not complete yet.
pub(super) struct Recorded {
    writer: Writer<Vec<u8>>,
    file: NamedTempFile,
    progress: Arc<Mutex<Progress>>,
    /// Why the recording ended. An error if that was because the file could not be written.
    ended: io::Result<String>,
}

impl Recorded {
    /// Completes the file, which does not have its final name yet. If a write has failed, the recording ends after the
    /// last complete entry in the file.
    pub fn finish(self) -> io::Result<(NamedTempFile, Completed)> {
        let Recorded { writer, mut file, progress, ended } = self;
        let written = ended.and_then(|reason| {
            let frames = writer.frames();
            write_synced(file.as_file(), &writer.end(&reason)?)?;
            Ok(Completed { frames, bytes: file.as_file().metadata()?.len(), reason })
        });
        let completed = written.or_else(|error| {
            complete(file.as_file_mut(), |frames| {
                format!("it could not be written after frame {frames}: {error}")
            })
        })?;
        *progress.lock() = Progress { frames: completed.frames, bytes: completed.bytes };
        Ok((file, completed))
    }
}

/// Whether the recording continues, or the reason why it ends.
type Next = ControlFlow<String>;

impl RecordTask {
    pub async fn begin(
        emulator: Arc<dyn Emulator>,
        mut file: NamedTempFile,
        options: &Options,
    ) -> Result<RecordTask, RecordError> {
        let every = options.every.max(1);
        let request =
            |every, hashes| WatchRequest { ranges: Vec::new(), every, keys: true, hashes, clock: hashes };
        let (mut hashes, mut max_quiet) = (true, MAX_QUIET);
        let mut watch = emulator.watch(request(every, true));
        let mut outcome = begin(&*emulator, &watch, options.start).await;
        if refused(&outcome) {
            hashes = false;
            // Memory is read at regular events. So choose an interval for them that divides `every`.
            let longest = every.min(MAX_QUIET);
            max_quiet = (1..=longest).rev().find(|interval| every.is_multiple_of(*interval)).unwrap_or(1);
            watch = emulator.watch(request(max_quiet, false));
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
            picture_interval: if hashes { every } else { 0 },
            time: framewire_states::time::millis(SystemTime::now()),
            note: options.note.clone(),
            clock: clock(&state),
            recovered: false,
        };
        let mut writer = Writer::begin(Vec::new(), &head, state).map_err(unwritten_because)?;
        let written = begin_to_write(&file, writer.take()).map_err(unwritten_because)?;
        written.await.map_err(unwritten_because)?.map_err(unwritten_because)?;
        // From here on, the file can be played. So keep it, even if the recording fails.
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
            max_quiet,
            own_reset,
            keys,
            hashes,
            hashed: None,
            progress,
        })
    }

    /// Records until the recorder is stopped, or the recording has to end. Answers each of `asks` when all events
    /// that have already arrived are recorded.
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

    /// Records what the emulator reports. Returns the reason why the recording ends.
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
                    if let Break(reason) = self.take_all()? {
                        return Ok(reason);
                    }
                    self.report();
                    // This fails if the caller no longer waits.
                    let _ = answer.send(());
                }
                synced = async { sync.as_mut().expect("begun").await }, if sync.is_some() => {
                    *sync = None;
                    synced.map_err(io::Error::other)??;
                }
                _ = ticks.tick(), if sync.is_none() => *sync = self.sync()?,
                event = self.watch.next() => {
                    let Some(event) = event else { return Ok("the emulator is gone".to_owned()) };
                    let hash_is_due = event.ticks.is_multiple_of(self.every.into());
                    if let Break(reason) = self.take(&event)? {
                        return Ok(reason);
                    }
                    if hash_is_due && !self.hashes && memory.is_none() {
                        memory = Some(self.submit(memory::read(self.console)));
                    }
                }
                outcome = async { memory.as_mut().expect("asked for").await }, if memory.is_some() => {
                    memory = None;
                    // If the emulator did not answer, the recording continues without this hash.
                    if let Ok(outcome) = outcome && let Break(reason) = self.record_memory(&outcome)? {
                        return Ok(reason);
                    }
                }
            }
            self.report();
            if self.writer.bytes() > MAX_FILE - MARGIN {
                return Ok("its file has the largest size that is allowed".to_owned());
            }
        }
    }

    /// Updates the progress that callers see.
    fn report(&self) {
        *self.progress.lock() = Progress { frames: self.writer.frames(), bytes: self.writer.bytes() };
    }

    /// If frames were recorded since the last call, begins to write them to the file and to sync it.
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

    /// Records an event of the watch.
    fn take(&mut self, event: &WatchEvent) -> io::Result<Next> {
        let known = self.writer.frames();
        if event.gap {
            return Ok(Break(format!(
                "the keys after frame {known} are not known, because the connection broke"
            )));
        }
        if event.missed > 0 {
            let missed = event.missed;
            return Ok(Break(format!(
                "the keys after frame {known} are not known, because this computer was too slow: {missed} of the \
                 emulator's events were lost"
            )));
        }
        if let Some(discontinuity) = event.discontinuity {
            return self.discontinued(discontinuity, event.ticks);
        }
        if event.frame != self.first.wrapping_add(event.ticks as u32) {
            return Ok(Break(displaced(known)));
        }
        // Ignore an event about frames that `catch_up` has already recorded. This happens only if the event arrives
        // after the outcome of a later batch.
        let Some(passed) = event.ticks.checked_sub(known).filter(|passed| *passed > 0) else {
            return Ok(Continue(()));
        };
        // New keys are reported in the first frame in which they are held. So the frames before it had the old keys.
        self.writer.keys(self.keys, passed - 1)?;
        self.keys = event.keys.unwrap_or(self.keys);
        self.writer.keys(self.keys, 1)?;
        if event.ticks.is_multiple_of(self.every.into()) {
            if let Some(hash) = event.hash {
                self.writer.picture(hash)?;
            }
            if let Some(hash) = event.memory {
                self.write_memory_hash(hash)?;
            }
        }
        Ok(Continue(()))
    }

    /// Records the frames up to a discontinuity after `ticks` frames, and ends the recording there. The reset at the
    /// start of a recording from power-on is ignored.
    fn discontinued(&mut self, discontinuity: Discontinuity, ticks: u64) -> io::Result<Next> {
        if std::mem::take(&mut self.own_reset) && (discontinuity, ticks) == (Discontinuity::Reset, 0) {
            return Ok(Continue(()));
        }
        let passed = ticks.saturating_sub(self.writer.frames());
        // No keys have changed in these frames, because there was no event. There is an event at least every
        // `max_quiet` frames, so a larger number cannot be right.
        if passed <= self.max_quiet.into() {
            self.writer.keys(self.keys, passed)?;
        }
        let what = match discontinuity {
            Discontinuity::Reset => "the console was reset",
            Discontinuity::State => "a state was loaded",
            Discontinuity::Game => "another game was loaded",
        };
        Ok(Break(format!("{what} after frame {}", self.writer.frames())))
    }

    /// Records all events that have already arrived.
    fn take_all(&mut self) -> io::Result<Next> {
        while let Some(event) = self.take_reported() {
            if let over @ Break(_) = self.take(&event)? {
                return Ok(over);
            }
        }
        Ok(Continue(()))
    }

    /// Writes the hash of the work RAM after the last recorded frame, unless there already is one.
    fn write_memory_hash(&mut self, hash: u32) -> io::Result<()> {
        if self.hashed.replace(self.writer.frames()) == Some(self.writer.frames()) {
            return Ok(());
        }
        self.writer.memory(hash)
    }

    /// Records the frames up to the frame of `outcome`, and writes the hash of the memory in it. The outcome is that of
    /// [`memory::read`].
    fn record_memory(&mut self, outcome: &Outcome) -> io::Result<Next> {
        // First record the events that have already arrived.
        while let Some(event) = self.take_reported() {
            let later = event.frame.wrapping_sub(self.first) > outcome.frame.wrapping_sub(self.first);
            if later && event.discontinuity.is_none() {
                // The event is about a later frame than the outcome. So no keys changed up to the outcome's frame.
                let _ = self.catch_up(outcome)?;
            }
            if let over @ Break(_) = self.take(&event)? {
                return Ok(over);
            }
        }
        self.catch_up(outcome)
    }

    /// Writes the frames up to the frame of an outcome, and the hash of its memory. No keys changed in these frames.
    /// Does nothing if later frames were already written.
    fn catch_up(&mut self, outcome: &Outcome) -> io::Result<Next> {
        let known = self.writer.frames();
        let Some(passed) = u64::from(outcome.frame.wrapping_sub(self.first)).checked_sub(known) else {
            return Ok(Continue(()));
        };
        // There is an event at least every `max_quiet` frames, so in this case the frame counter was changed.
        if passed > u64::from(self.max_quiet) {
            return Ok(Break(displaced(known)));
        }
        self.writer.keys(self.keys, passed)?;
        if let Ok(hash) = memory::hash(&outcome.results) {
            self.write_memory_hash(hash)?;
        }
        Ok(Continue(()))
    }

    /// The next event, if one has already arrived.
    fn take_reported(&mut self) -> Option<WatchEvent> {
        match pin!(self.watch.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => event,
            Poll::Pending => None,
        }
    }

    /// Records the frames up to the emulator's current frame. Returns the reason why the recording ends.
    async fn close(&mut self) -> io::Result<String> {
        let stopped = "stopped".to_owned();
        match self.submit(memory::read(self.console)).await {
            Ok(outcome) => Ok(match self.record_memory(&outcome)? {
                Continue(()) => stopped,
                Break(reason) => reason,
            }),
            Err(error) => Ok(format!("stopped; the last frames may be missing: {error}")),
        }
    }
}

/// Lets a thread write to a file and sync it.
fn begin_to_write(file: &NamedTempFile, bytes: Vec<u8>) -> io::Result<JoinHandle<io::Result<()>>> {
    let file = file.as_file().try_clone()?;
    Ok(tokio::task::spawn_blocking(move || write_synced(&file, &bytes)))
}

fn write_synced(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_data()
}

/// The value of [`Head::clock`] for the state before the first frame.
fn clock(state: &[u8]) -> String {
    let clock = State::read(state).ok().and_then(|state| state.clock());
    clock.map_or_else(
        || WALL.to_owned(),
        |Clock { unix_ms, zone }| ClockTime { unix_ms, zone: zone.unwrap_or(0) }.to_string(),
    )
}

/// Waits until the recorder is stopped or dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The reason for the end of a recording whose frame counter has an unexpected value.
fn displaced(known: u64) -> String {
    format!("a state was loaded or the console was reset after frame {known}")
}
