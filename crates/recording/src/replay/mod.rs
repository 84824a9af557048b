//! Plays a recording on an emulator that can be paused and stepped, and compares the result with the recording.

mod slices;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use framewire_emulator::{Emulator, EmulatorError, Run, Watch, WatchRequest};
use framewire_protocol::{Batch, Op, OpError, Outcome, Value};

use crate::head::WALL;
use crate::{Damage, Ending, Recording, memory};
use slices::{Slice, Slices};

/// Longest time for a slice of frames.
const DEADLINE: Duration = Duration::from_secs(10);

/// The parts of the first state that are loaded: all of them, so that the game finds its battery save.
const ALL: u8 = 31;

/// The clock, one part of it.
const CLOCK: u8 = 8;

/// Frames per second of both consoles.
const RATE: f64 = 59.7275;

/// How to play.
#[derive(Debug, Clone, Default)]
pub struct PlayOptions {
    /// Frames from one hash of the picture to the next; `None` means as in the recording. Hashes that the recording also has
    /// are compared.
    pub every: Option<u32>,
    /// A multiple of the console's speed; `None` is unlimited.
    pub speed: Option<f64>,
    /// Whether to restore the emulator's state after the last frame.
    pub restore: bool,
    /// Whether to continue after a difference.
    pub through: bool,
    /// The time source of the console's clock.
    pub clock: ReplayClock,
}

/// The time source of the console's clock in a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplayClock {
    /// The frames, starting at the time in the recording's state, or at the time when that state was made.
    #[default]
    Recorded,
    /// The time source of that emulator.
    Own,
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Frames played.
    pub frames: u64,
    /// Pictures compared.
    pub pictures: u64,
    /// Memories compared.
    pub memories: u64,
    /// How many of these differ.
    pub other_memories: u64,
    /// The first difference from the recording.
    pub divergence: Option<Divergence>,
    /// Where the recording is damaged. It was played up to there.
    pub damage: Option<Damage>,
    /// Whether it was cancelled before the end of the recording.
    pub cancelled: bool,
    /// Whether the recording contains the console's clock. If not, that may be why a game that reads the clock differs.
    pub clock_known: bool,
    /// The hashes of the pictures, one each [`PlayOptions::every`] frames.
    pub hashes: Vec<u32>,
}

impl Report {
    /// Whether the whole recording was played and everything that was compared is equal.
    pub fn is_equal(&self) -> bool {
        self.divergence.is_none() && self.damage.is_none() && !self.cancelled
    }
}

/// The first difference between a replay and its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divergence {
    /// The frame of the recording, counted from 1, after which they differ.
    pub frame: u64,
    /// The last frame before it after which everything that was compared was equal; 0 is the state before the first.
    pub agreed: u64,
    /// What differs.
    pub what: Compared,
    /// The hash in the recording.
    pub recorded: u32,
    /// The hash in the replay.
    pub played: u32,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The picture.
    Picture,
    /// The work RAM.
    Memory,
}

impl Compared {
    /// Its name in texts and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Compared::Picture => "picture",
            Compared::Memory => "memory",
        }
    }
}

/// Why a recording could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The emulator refused, did not answer, or cannot be stepped.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// It runs another game.
    #[error(
        "the recording is of {recorded} (checksum {recorded_checksum:08x}), and the emulator runs {running} \
         (checksum {running_checksum:08x}); load that game first"
    )]
    OtherGame {
        /// Title of the recording's game.
        recorded: String,
        /// Checksum of the recording's game.
        recorded_checksum: u32,
        /// Title of the emulator's game.
        running: String,
        /// Checksum of the emulator's game.
        running_checksum: u32,
    },
    /// The emulator refused the state before the first frame.
    #[error("the emulator does not take the state that the recording begins with: {0}")]
    State(OpError),
    /// Another client ran frames, loaded a state or reset the console.
    #[error("another client changed the emulator during the replay, after frame {0} of the recording")]
    Disturbed(u64),
    /// The hashes of pictures did not come.
    #[error("the emulator did not report its pictures after frame {0} of the recording")]
    Untold(u64),
}

impl From<OpError> for ReplayError {
    fn from(error: OpError) -> ReplayError {
        ReplayError::Emulator(error.into())
    }
}

/// Plays `recording` on `emulator`, which has its game. `progress` gets the number of played frames now and then, and
/// may end the replay. After the end the emulator runs or is paused as before, without keys held.
///
/// # Errors
///
/// Why it could not be played. A difference or damage is not an error: it is in the report.
pub async fn replay(
    emulator: &dyn Emulator,
    recording: &Recording,
    options: &PlayOptions,
    progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Report, ReplayError> {
    check_game(emulator, recording).await?;
    let running = emulator.state().run == Run::Running;
    // Refused where frames cannot be stepped, with nothing changed yet.
    let mut first = vec![Op::Pause {}, Op::CancelKeys { id: 0 }];
    if options.restore {
        first.push(Op::SaveState { flags: ALL });
    }
    let before = done(emulator, first).await?.results.pop();

    let mut player = Player::new(emulator, recording, options);
    let played = player.play(progress).await;

    let mut last = vec![Op::SetKeys { keys: 0 }];
    if let Some(Ok(Value::Bytes(data))) = before {
        last.push(Op::LoadState { data, flags: ALL });
    }
    if running {
        last.push(Op::Resume {});
    }
    let ended = done(emulator, last).await;
    played?;
    ended?;
    Ok(player.report)
}

/// Refuses to play in another game.
async fn check_game(emulator: &dyn Emulator, recording: &Recording) -> Result<(), ReplayError> {
    let results = done(emulator, vec![Op::GameTitle {}, Op::Checksum {}]).await?.results;
    let head = recording.head();
    match &results[..] {
        [Ok(Value::Text(_)), Ok(Value::Int(checksum))] if *checksum as u32 == head.checksum => Ok(()),
        [Ok(Value::Text(title)), Ok(Value::Int(checksum))] => Err(ReplayError::OtherGame {
            recorded: head.title.clone(),
            recorded_checksum: head.checksum,
            running: title.clone(),
            running_checksum: *checksum as u32,
        }),
        _ => Err(OpError::failed("the emulator answered with something other than its game").into()),
    }
}

/// Does operations, all of them.
async fn done(emulator: &dyn Emulator, ops: Vec<Op>) -> Result<Outcome, ReplayError> {
    // What was done when it was recorded is done again, whatever its addresses.
    let batch = Batch { unchecked: true, ..Batch::new(ops) };
    let outcome = emulator.submit(batch, Instant::now() + DEADLINE).await?;
    match outcome.results.iter().find_map(|result| result.as_ref().err()) {
        None => Ok(outcome),
        Some(error) => Err(error.clone().into()),
    }
}

/// What a recording is played with.
struct Player<'a> {
    emulator: &'a dyn Emulator,
    recording: &'a Recording,
    options: &'a PlayOptions,
    /// Frames from one hash of the picture to the next; 0 for none.
    every: u32,
    watch: Watch,
    report: Report,
    /// The comparisons of the current slice.
    compared: Vec<Comparison>,
    /// The last frame after which everything that was compared was equal, before the first that differs.
    agreed: u64,
}

/// A hash of the recording and that of the replay.
struct Comparison {
    frame: u64,
    what: Compared,
    recorded: u32,
    played: u32,
}

impl<'a> Player<'a> {
    fn new(emulator: &'a dyn Emulator, recording: &'a Recording, options: &'a PlayOptions) -> Player<'a> {
        let every = options.every.unwrap_or(recording.head().pictures);
        let clock = options.clock == ReplayClock::Recorded;
        let request = WatchRequest {
            every,
            hashes: every > 0,
            clock,
            // One of the three shows the emulator that the watch is for a replay.
            keys: every == 0 && !clock,
            ..WatchRequest::default()
        };
        let watch = emulator.watch(request);
        let clock_known = recording.head().clock != WALL;
        let report = Report { clock_known, ..Report::default() };
        Player { emulator, recording, options, every, watch, report, compared: Vec::new(), agreed: 0 }
    }

    async fn play(&mut self, mut progress: impl FnMut(u64) -> ControlFlow<()>) -> Result<(), ReplayError> {
        let flags = match self.options.clock {
            ReplayClock::Recorded => ALL,
            ReplayClock::Own => ALL & !CLOCK,
        };
        let state = Op::LoadState { data: self.recording.state().to_vec(), flags };
        // The watch comes first, so that the state sets a clock that counts frames.
        let batch = Batch { unchecked: true, ..Batch::new(vec![self.watch.op(), state]) };
        let outcome = self.emulator.submit(batch, Instant::now() + DEADLINE).await?;
        match &outcome.results[..] {
            [Ok(_), Ok(Value::Bool(true))] => {}
            [Err(error), ..] => return Err(error.clone().into()),
            [_, Err(error)] => return Err(ReplayError::State(error.clone())),
            _ => return Err(ReplayError::State(OpError::failed("it gave no reason"))),
        }
        let (start, first) = (Instant::now(), outcome.frame);
        for slice in Slices::new(self.recording.entries(), self.options.speed.is_some(), self.every) {
            let frames = self.report.frames;
            let outcome = done(self.emulator, slice.ops(self.recording.head().console)).await?;
            self.report.frames += slice.frames();
            if outcome.frame != first.wrapping_add(self.report.frames as u32) {
                return Err(ReplayError::Disturbed(frames));
            }
            self.pictures(&slice).await?;
            self.memories(&slice, frames, &outcome);
            self.judge();
            if self.report.divergence.is_some() && !self.options.through {
                return Ok(());
            }
            if progress(self.report.frames).is_break() {
                self.report.cancelled = true;
                return Ok(());
            }
            if let Some(speed) = self.options.speed {
                let due = Duration::from_secs_f64(self.report.frames as f64 / RATE / speed);
                tokio::time::sleep_until((start + due).into()).await;
            }
        }
        if let Ending::Damaged(damage) = self.recording.ending() {
            self.report.damage = Some(damage.clone());
        }
        Ok(())
    }

    /// Reads the hashes of pictures and memory that the emulator reports in the slice, and compares those that the recording
    /// also has.
    async fn pictures(&mut self, slice: &Slice<'_>) -> Result<(), ReplayError> {
        if self.every == 0 {
            return Ok(());
        }
        let every = u64::from(self.every);
        let before = self.report.frames - slice.frames();
        let mut recorded = slice.pictures(before).peekable();
        let mut memories = slice.memories(before).filter(|(_, _, results)| results.is_empty()).peekable();
        while (self.report.hashes.len() as u64 + 1) * every <= self.report.frames {
            let frame = (self.report.hashes.len() as u64 + 1) * every;
            let untold = || ReplayError::Untold(frame);
            let event = tokio::time::timeout(DEADLINE, self.watch.next()).await;
            let event = event.ok().flatten().filter(|event| event.ticks == frame).ok_or_else(untold)?;
            let played = event.hash.ok_or_else(untold)?;
            self.report.hashes.push(played);
            while recorded.next_if(|(at, _)| *at < frame).is_some() {}
            if let Some((_, hash)) = recorded.next_if(|(at, _)| *at == frame) {
                self.report.pictures += 1;
                self.compared.push(Comparison { frame, what: Compared::Picture, recorded: hash, played });
            }
            while let Some((at, hash, _)) = memories.next_if(|(at, ..)| *at <= frame) {
                if at == frame {
                    self.memory(frame, hash, event.memory.ok_or_else(untold)?);
                }
            }
        }
        Ok(())
    }

    /// Compares the other memory hashes of the slice, which come from the outcome of its operations.
    fn memories(&mut self, slice: &Slice<'_>, frames: u64, outcome: &Outcome) {
        for (frame, recorded, results) in slice.memories(frames).filter(|(_, _, results)| !results.is_empty())
        {
            let played = outcome.results.get(results).and_then(|results| memory::hash(results).ok());
            if let Some(played) = played {
                self.memory(frame, recorded, played);
            }
        }
    }

    fn memory(&mut self, frame: u64, recorded: u32, played: u32) {
        self.report.memories += 1;
        self.report.other_memories += u64::from(played != recorded);
        self.compared.push(Comparison { frame, what: Compared::Memory, recorded, played });
    }

    /// Evaluates the comparisons frame by frame, up to the first difference.
    fn judge(&mut self) {
        // The sort is stable: in a frame, pictures stay before memories.
        self.compared.sort_by_key(|comparison| comparison.frame);
        let compared = std::mem::take(&mut self.compared);
        for of_frame in compared.chunk_by(|one, next| one.frame == next.frame) {
            if self.report.divergence.is_some() {
                return;
            }
            match of_frame.iter().find(|comparison| comparison.recorded != comparison.played) {
                None => self.agreed = of_frame[0].frame,
                Some(&Comparison { frame, what, recorded, played }) => {
                    let agreed = self.agreed;
                    self.report.divergence = Some(Divergence { frame, agreed, what, recorded, played });
                }
            }
        }
    }
}
