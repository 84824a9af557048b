use std::io::{self, BufWriter};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use framewire_emulator::{Emulator, EmulatorError, Pending, Watch, WatchEvent, WatchRequest};
use framewire_protocol::{Batch, Keys, Op, OpError, Outcome, Status, Value};
use framewire_states::{Folder, FolderError, Name};
use parking_lot::Mutex;
use tempfile::NamedTempFile;
use tokio::sync::watch;

use crate::{Head, MAX_FILE, RecordError, Start, Writer, memory};

/// What goes into the state before the first frame: all, with the battery save, so that nothing else is needed.
const FLAGS: u8 = 31;

/// Time that the emulator has for what is asked of it in the middle of a recording.
const DEADLINE: Duration = Duration::from_secs(3);

/// Room left in a file for its end.
const MARGIN: u64 = 64 * 1024;

/// How to record.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to begin: here, or with a reset.
    pub start: Start,
    /// Frames from one hash of the picture to the next, at least 1. Where the emulator has no hashes, there is one of its
    /// memory about as often.
    pub every: u32,
    /// Whatever is to be remembered with it, at most [`Head::MAX_NOTE`] bytes.
    pub note: String,
    /// Whether a recording of this name is replaced.
    pub replace: bool,
}

/// How far a recording is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Frames recorded.
    pub frames: u64,
    /// Bytes of its file.
    pub bytes: u64,
}

/// A recording that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What it is called.
    pub name: Name,
    /// Frames recorded.
    pub frames: u64,
    /// Bytes of its file.
    pub bytes: u64,
    /// Why it ended.
    pub reason: String,
}

/// A recording being made. Dropping it ends the recording as [`stop`](Recorder::stop) does, in its own time.
#[derive(Debug)]
pub struct Recorder {
    name: Name,
    progress: Arc<Mutex<Progress>>,
    stop: watch::Sender<bool>,
    end: watch::Receiver<Option<Result<Summary, Arc<FolderError>>>>,
}

impl Recorder {
    /// Begins to record what `emulator` does as `name` in `folder`. What was begun goes on in a task of its own until it
    /// is stopped, or until something happens that a recording cannot hold: then it ends before that.
    ///
    /// # Errors
    ///
    /// If the emulator does not answer or the file cannot be written.
    pub async fn start(
        emulator: Arc<dyn Emulator>,
        folder: Arc<Folder>,
        name: Name,
        options: Options,
    ) -> Result<Recorder, RecordError> {
        folder.check_free(&name, options.replace)?;
        let file = BufWriter::new(folder.begin()?);
        let tape = Tape::begin(emulator, file, &options).await?;
        let progress = tape.progress.clone();
        let (stop, stopped) = watch::channel(false);
        let (done, end) = watch::channel(None);
        let place = name.clone();
        tokio::spawn(async move {
            let finished = tape.record(stopped).await;
            let summary = tokio::task::spawn_blocking(move || {
                let Finished { file, frames, bytes, reason } = finished.map_err(unwritten(&folder))?;
                folder.finish(file, &place, options.replace)?;
                Ok(Summary { name: place, frames, bytes, reason })
            });
            let summary = summary.await.unwrap_or_else(|error| Err(unwritten_because(error)));
            done.send_replace(Some(summary.map_err(Arc::new)));
        });
        Ok(Recorder { name, progress, stop, end })
    }

    /// What it is called.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.progress.lock().clone()
    }

    /// Whether it has ended, and how.
    pub fn ended(&self) -> Option<Result<Summary, Arc<FolderError>>> {
        self.end.borrow().clone()
    }

    /// Ends it behind the frame that the emulator is at, and waits until its file is complete.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub async fn stop(&self) -> Result<Summary, Arc<FolderError>> {
        self.stop.send_replace(true);
        let mut end = self.end.clone();
        let ended = end.wait_for(Option::is_some).await.map(|end| end.clone());
        ended.ok().flatten().unwrap_or_else(|| Err(Arc::new(unwritten_because("its task is gone"))))
    }
}

fn unwritten(folder: &Folder) -> impl FnOnce(io::Error) -> FolderError {
    let path = folder.path().to_owned();
    move |source| FolderError::Io { action: "write in", path, source }
}

fn unwritten_because(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> FolderError {
    FolderError::Io { action: "write", path: "the recording".into(), source: io::Error::other(error) }
}

struct Finished {
    file: NamedTempFile,
    frames: u64,
    bytes: u64,
    reason: String,
}

/// What a recording is made with.
struct Tape {
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
    progress: Arc<Mutex<Progress>>,
}

/// Whether to go on, and why not.
enum Next {
    On,
    Over(String),
}

impl Tape {
    async fn begin(
        emulator: Arc<dyn Emulator>,
        file: BufWriter<NamedTempFile>,
        options: &Options,
    ) -> Result<Tape, RecordError> {
        let every = options.every.max(1);
        let request = |hashes| WatchRequest { ranges: Vec::new(), every, keys: true, hashes };
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
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            note: options.note.clone(),
        };
        let writer = Writer::begin(file, &head, state).map_err(unwritten_because)?;
        let progress = Arc::new(Mutex::new(Progress { frames: 0, bytes: writer.bytes() }));
        Ok(Tape { emulator, watch, writer, first, console, every, keys, pictures, progress })
    }

    /// Records until it is told to stop, or must.
    async fn record(mut self, mut stop: watch::Receiver<bool>) -> io::Result<Finished> {
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

/// Ends when the recorder is told to stop, or nobody holds it any more.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn displaced(known: u64) -> String {
    format!("a state was loaded or the console was reset behind frame {known}")
}

/// Begins to watch, and takes down where everything begins: all at one frame boundary.
async fn begin(emulator: &dyn Emulator, watch: &Watch, start: Start) -> Result<Outcome, EmulatorError> {
    // The watch comes first, as it may be refused, and behind that nothing is done.
    let mut ops = vec![watch.op()];
    if start == Start::PowerOn {
        ops.push(Op::Reset {});
    }
    ops.extend([Op::GameTitle {}, Op::GameCode {}, Op::Checksum {}, Op::Platform {}, Op::GetKeys {}]);
    ops.push(Op::SaveState { flags: FLAGS });
    emulator.submit(Batch::new(ops), Instant::now() + DEADLINE).await
}

/// Whether the emulator has no such watch.
fn refused(outcome: &Result<Outcome, EmulatorError>) -> bool {
    let refusal = match outcome {
        Ok(outcome) => outcome.results.first().and_then(|result| result.as_ref().err()),
        Err(EmulatorError::Refused(refusal)) => Some(refusal),
        Err(_) => None,
    };
    refusal.is_some_and(|refusal| refusal.status == Status::Unsupported)
}

/// What [`begin`] found.
struct Opening {
    title: String,
    code: String,
    checksum: u32,
    console: u8,
    keys: u16,
    state: Vec<u8>,
}

impl Opening {
    fn read(outcome: Outcome) -> Result<Opening, OpError> {
        let mut values = outcome.results.into_iter().collect::<Result<Vec<Value>, OpError>>()?;
        // Behind the watch and the reset.
        let last = values.split_off(values.len().saturating_sub(6));
        match <[Value; 6]>::try_from(last) {
            Ok(
                [
                    Value::Text(title),
                    Value::Text(code),
                    Value::Int(checksum),
                    Value::Int(console),
                    Value::Int(keys),
                    Value::Bytes(state),
                ],
            ) => {
                let (checksum, console) = (checksum as u32, console.clamp(0, 1) as u8);
                Ok(Opening { title, code, checksum, console, keys: keys as u16 & Keys::MASK, state })
            }
            _ => Err(OpError::failed("the emulator answered with something else than its game and state")),
        }
    }
}
