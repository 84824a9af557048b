//! Plays a recording on an emulator that can be paused and run frame by frame, and compares the hashes with the
//! recording.

mod slices;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use framewire_emulator::{Emulator, EmulatorError, Kind, Run, State, Watch, WatchRequest};
use framewire_protocol::{Batch, Op, OpError, Outcome, Value};

use crate::head::WALL;
use crate::{ALL_PARTS, Damage, Ending, Recording, memory};
use slices::{Slice, Slices};

/// The longest time to wait for the outcome of a batch, or for an event of the watch.
const DEADLINE: Duration = Duration::from_secs(10);

/// The flag for the clock, which is one of [`ALL_PARTS`].
const CLOCK: u8 = 8;

/// The number of frames per second of both consoles.
const RATE: f64 = 59.7275;

/// How to play.
#[derive(Debug, Clone, Default)]
pub struct PlayOptions {
    /// The number of frames from one hash of the picture to the next; `None` means as in the recording, and 0 means
    /// that pictures are not hashed. A hash is compared if the recording has a hash of the same frame.
    pub every: Option<u32>,
    /// The speed as a multiple of the console's own speed, greater than 0; `None` is unlimited.
    pub speed: Option<f64>,
    /// Whether to restore the state from before the replay when the replay ends, unless another client has changed the
    /// emulator meanwhile.
    pub restore: bool,
    /// Whether to continue after a difference.
    pub through: bool,
    /// The time source of the console's clock.
    pub clock: ReplayClock,
}

/// The time source of the console's clock in a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplayClock {
    /// The clock advances with the frames. It starts at the time in the recording's state. If this state does not
    /// contain such a time, the clock starts at the time when the state was made.
    #[default]
    Recorded,
    /// The clock uses the emulator's own time source.
    Own,
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of frames that were played.
    pub frames: u64,
    /// The number of pictures that were compared.
    pub pictures: u64,
    /// The number of times that memory was compared.
    pub memories: u64,
    /// The number of times that memory differed.
    pub differing_memories: u64,
    /// The first difference from the recording.
    pub divergence: Option<Divergence>,
    /// Where the recording is damaged. It was played up to that place.
    pub damage: Option<Damage>,
    /// Whether the replay was cancelled before the end of the recording.
    pub cancelled: bool,
    /// Whether the recording contains the console's clock. If it does not, a game that reads the clock may play
    /// differently.
    pub clock_known: bool,
    /// The hashes of the replay's pictures: one after every group of [`PlayOptions::every`] frames.
    pub hashes: Vec<u32>,
}

impl Report {
    /// Whether the whole recording was played and all compared hashes are equal.
    pub fn is_equal(&self) -> bool {
        self.divergence.is_none() && self.damage.is_none() && !self.cancelled
    }
}

/// The first difference between a replay and its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divergence {
    /// The first frame of the recording, counted from 1, whose hashes differ.
    pub frame: u64,
    /// The last compared frame before it; all of its hashes were equal. 0 is the state before the first frame.
    pub agreed: u64,
    /// What differs.
    pub what: Compared,
    /// The hash in the recording.
    pub recorded: u32,
    /// The hash in the replay.
    pub played: u32,
}

/// What is hashed and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The picture.
    Picture,
    /// The work RAM.
    Memory,
}

impl Compared {
    /// The name in texts and JSON.
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
    /// The emulator refused an operation, did not answer, or cannot be paused.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The emulator runs another game.
    #[error(
        "the recording is of {recorded} (checksum {recorded_checksum:08x}), but the emulator runs {running} \
         (checksum {running_checksum:08x}); load the recording's game first"
    )]
    OtherGame {
        /// The title of the recording's game.
        recorded: String,
        /// The checksum of the recording's game.
        recorded_checksum: u32,
        /// The title of the emulator's game.
        running: String,
        /// The checksum of the emulator's game.
        running_checksum: u32,
    },
    /// The emulator refused the state before the first frame.
    #[error("the emulator cannot load the state that the recording begins with: {0}")]
    State(OpError),
    /// Another client ran frames, loaded a state or reset the console.
    #[error("another client changed the emulator during the replay, after frame {0} of the recording")]
    Disturbed(u64),
    /// The emulator did not report the hashes of pictures.
    #[error("the emulator did not report its pictures after frame {0} of the recording")]
    NoPictures(u64),
}

impl From<OpError> for ReplayError {
    fn from(error: OpError) -> ReplayError {
        ReplayError::Emulator(error.into())
    }
}

/// Plays `recording` on `emulator`, which must run the recording's game. `progress` is called with the number of frames
/// that were played so far, and can end the replay. Afterwards, the emulator runs or is paused as before, and no keys
/// are held. But if the emulator does not accept the watch of the replay, the held keys stay held.
///
/// # Errors
/// If the recording could not be played. A difference or damage is not an error; the report contains it.
pub async fn replay(
    emulator: &dyn Emulator,
    recording: &Recording,
    options: &PlayOptions,
    progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Report, ReplayError> {
    check_game(emulator, recording).await?;
    let State { kind, lockstep, run, .. } = emulator.state();
    let running = run == Run::Running;
    // In lockstep, an embedded core needs no pause. After a pause, the game would stay paused when lockstep ends.
    if kind != Kind::Embedded || !lockstep {
        // On an emulator that cannot be paused, such as a stock mGBA, this fails before anything has been changed.
        perform(emulator, vec![Op::Pause {}]).await?;
    }

    let mut player = Player::new(emulator, recording, options);
    let played = player.play(progress).await;
    // A state that another client has loaded meanwhile stays.
    if player.before.is_some() && player.is_disturbed(&played).await {
        player.before = None;
    }

    let mut last = Vec::new();
    if player.begun {
        last.push(Op::SetKeys { keys: 0 });
    }
    if running {
        last.push(Op::Resume {});
    }
    // The state is last, because the emulator refuses it if another game has just been loaded.
    if let Some(data) = player.before.take() {
        last.push(Op::LoadState { data, flags: ALL_PARTS });
    }
    let ended = perform(emulator, last).await;
    played?;
    ended?;
    Ok(player.report)
}

/// Fails if the emulator runs another game.
async fn check_game(emulator: &dyn Emulator, recording: &Recording) -> Result<(), ReplayError> {
    let results = perform(emulator, vec![Op::GameTitle {}, Op::Checksum {}]).await?.results;
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

/// Performs operations. All of them must succeed.
async fn perform(emulator: &dyn Emulator, ops: Vec<Op>) -> Result<Outcome, ReplayError> {
    // Skip the check of addresses, because these operations only use memory that each console has.
    let batch = Batch { unchecked: true, ..Batch::new(ops) };
    let outcome = emulator.submit(batch, Instant::now() + DEADLINE).await?;
    match outcome.results.iter().find_map(|result| result.as_ref().err()) {
        None => Ok(outcome),
        Some(error) => Err(error.clone().into()),
    }
}

/// A replay in progress.
struct Player<'a> {
    emulator: &'a dyn Emulator,
    recording: &'a Recording,
    options: &'a PlayOptions,
    /// The number of frames from one hash of the picture to the next; 0 for no hashes.
    every: u32,
    watch: Watch,
    /// Whether the emulator has accepted the watch. If so, the replay may have changed the state and the held keys.
    begun: bool,
    /// The state from before the replay, if it is to be restored.
    before: Option<Vec<u8>>,
    /// The emulator's frame counter before the first frame.
    first: u32,
    report: Report,
    /// The comparisons of the current slice. A slice is a part of the recording that one batch plays.
    compared: Vec<Comparison>,
    /// The last compared frame before the first difference.
    agreed: u64,
}

/// A hash in the recording, and the hash of the same frame in the replay.
struct Comparison {
    frame: u64,
    what: Compared,
    recorded: u32,
    played: u32,
}

impl<'a> Player<'a> {
    fn new(emulator: &'a dyn Emulator, recording: &'a Recording, options: &'a PlayOptions) -> Player<'a> {
        let every = options.every.unwrap_or(recording.head().picture_interval);
        let clock = options.clock == ReplayClock::Recorded;
        let request = WatchRequest {
            every,
            hashes: every > 0,
            clock,
            // At least one of `hashes`, `clock` and `keys` must be set, so that the emulator treats this as the watch
            // of a replay.
            keys: every == 0 && !clock,
            ..WatchRequest::default()
        };
        let watch = emulator.watch(request);
        let clock_known = recording.head().clock != WALL;
        let report = Report { clock_known, ..Report::default() };
        Player {
            emulator,
            recording,
            options,
            every,
            watch,
            begun: false,
            before: None,
            first: 0,
            report,
            compared: Vec::new(),
            agreed: 0,
        }
    }

    async fn play(&mut self, mut progress: impl FnMut(u64) -> ControlFlow<()>) -> Result<(), ReplayError> {
        let flags = match self.options.clock {
            ReplayClock::Recorded => ALL_PARTS,
            ReplayClock::Own => ALL_PARTS & !CLOCK,
        };
        let state = Op::LoadState { data: self.recording.state().to_vec(), flags };
        // The watch comes first, because the emulator can refuse it. With `ReplayClock::Recorded`, the watch also
        // makes the clock advance with the frames, and the recording's state sets the time of this clock.
        let mut ops = vec![self.watch.op(), Op::CancelKeys { id: 0 }];
        if self.options.restore {
            ops.push(Op::SaveState { flags: ALL_PARTS });
        }
        // If keys that the recording presses were held already, they would not raise the keypad interrupt.
        ops.extend([Op::SetKeys { keys: 0 }, state]);
        let count = ops.len();
        let batch = Batch { unchecked: true, ..Batch::new(ops) };
        let outcome = self.emulator.submit(batch, Instant::now() + DEADLINE).await?;
        self.begun = outcome.results.first().is_some_and(Result::is_ok);
        if let Some(Ok(Value::Bytes(data))) = outcome.results.get(2) {
            self.before = Some(data.clone());
        }
        match outcome.results.last() {
            Some(Ok(Value::Bool(true))) if outcome.results.len() == count => {}
            Some(Err(error)) if outcome.results.len() == count => {
                return Err(ReplayError::State(error.clone()));
            }
            Some(Err(error)) => return Err(error.clone().into()),
            _ => return Err(ReplayError::State(OpError::failed("it gave no reason"))),
        }
        self.first = outcome.frame;
        let start = Instant::now();
        for slice in Slices::new(self.recording.entries(), self.options.speed.is_some(), self.every) {
            let before = self.report.frames;
            let outcome = perform(self.emulator, slice.ops(self.recording.head().console)).await?;
            self.report.frames += slice.frames();
            if outcome.frame != self.frame() {
                return Err(ReplayError::Disturbed(before));
            }
            self.pictures(&slice).await?;
            self.memories(&slice, before, &outcome);
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

    /// The emulator's frame counter now, if no other client has changed it.
    fn frame(&self) -> u32 {
        self.first.wrapping_add(self.report.frames as u32)
    }

    /// Whether another client has changed the emulator during or after the replay with this outcome.
    async fn is_disturbed(&self, played: &Result<(), ReplayError>) -> bool {
        match played {
            Ok(()) => {
                let now = perform(self.emulator, vec![Op::CurrentFrame {}]).await;
                now.is_ok_and(|now| now.frame != self.frame())
            }
            Err(error) => matches!(error, ReplayError::Disturbed(_)),
        }
    }

    /// Reads the hashes of pictures and memory that the emulator has reported for the slice. Compares them with the
    /// hashes of the same frames in the recording.
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
            let missing = || ReplayError::NoPictures(frame);
            let event = tokio::time::timeout(DEADLINE, self.watch.next()).await;
            let event = event.ok().flatten().filter(|event| event.ticks == frame).ok_or_else(missing)?;
            let played = event.hash.ok_or_else(missing)?;
            self.report.hashes.push(played);
            while recorded.next_if(|(at, _)| *at < frame).is_some() {}
            if let Some((_, hash)) = recorded.next_if(|(at, _)| *at == frame) {
                self.report.pictures += 1;
                self.compared.push(Comparison { frame, what: Compared::Picture, recorded: hash, played });
            }
            while let Some((at, hash, _)) = memories.next_if(|(at, ..)| *at <= frame) {
                if at == frame {
                    self.memory(frame, hash, event.memory.ok_or_else(missing)?);
                }
            }
        }
        Ok(())
    }

    /// Compares the hashes of memory in the slice that the emulator does not report by itself. For these, the slice's
    /// operations have read the memory. `before` is the number of frames before the slice.
    fn memories(&mut self, slice: &Slice<'_>, before: u64, outcome: &Outcome) {
        for (frame, recorded, results) in slice.memories(before).filter(|(_, _, results)| !results.is_empty())
        {
            let played = outcome.results.get(results).and_then(|results| memory::hash(results).ok());
            if let Some(played) = played {
                self.memory(frame, recorded, played);
            }
        }
    }

    fn memory(&mut self, frame: u64, recorded: u32, played: u32) {
        self.report.memories += 1;
        self.report.differing_memories += u64::from(played != recorded);
        self.compared.push(Comparison { frame, what: Compared::Memory, recorded, played });
    }

    /// Evaluates the comparisons of the slice frame by frame, up to the first difference.
    fn judge(&mut self) {
        // The sort is stable, so the picture of a frame stays before its memory.
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
