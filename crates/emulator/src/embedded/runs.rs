//! Runs: operations that run frames, with or without keys, until conditions hold or a number of frames has passed. A
//! run has steps, one after another.

use std::collections::VecDeque;

use framewire_expression::Code;
use framewire_libmgba::Core;
use framewire_protocol::run::{self, EndReason, RunStep, RunSteps, StepEnd};
use framewire_protocol::{OpError, Status, Value};

use super::expressions::{CoreMemory, compile};
use super::machine::Machine;
use super::perform::BatchProgress;

/// The largest number of runs at the same time. The conditions of all runs are evaluated after every frame.
const MAX_RUNS: usize = 256;

/// The active runs, each with the batch that waits for it.
#[derive(Default)]
pub(super) struct Runs {
    active: Vec<(ActiveRun, BatchProgress)>,
    /// The batches whose runs are over and whose next operation is an `advance`. They continue one after another, when
    /// the other batches have continued and no other `advance` is running.
    held: VecDeque<BatchProgress>,
}

/// A run that needs more frames.
pub(super) struct ActiveRun {
    /// The conditions that end the whole run.
    stop: Vec<Code>,
    steps: Vec<CompiledStep>,
    /// How the steps before the current step ended.
    ends: Vec<StepEnd>,
    /// The timeline that plays the keys of the current step.
    timeline: Option<u32>,
    /// The number of frames that the current step has taken.
    frames: u32,
    /// Why the current step ended after the last frame; `None` if it did not end.
    over: Option<EndReason>,
    /// Whether the game was stopped when the run began. If so, the core's thread runs frames for this run.
    drives: bool,
    /// The checksum of the game in which the run began.
    game: u32,
    /// Whether another game was loaded. The keys and the conditions of the run do not fit that game.
    lost: bool,
}

pub(super) struct CompiledStep {
    /// The largest number of frames.
    frames: u32,
    /// The keys to play.
    keys: Vec<framewire_protocol::KeyStep>,
    /// The conditions that end the step.
    until: Vec<Code>,
    /// Whether the run continues with the next step if no condition has ended this step in time.
    goes_on: bool,
}

/// A run that was begun with `begin_run`.
pub(super) enum BegunRun {
    /// The run was over at once, without a frame.
    Over(Vec<StepEnd>),
    /// The run needs frames.
    Active(ActiveRun),
}

impl Runs {
    pub fn add(&mut self, run: ActiveRun, progress: BatchProgress) {
        self.active.push((run, progress));
    }

    /// Adds a batch whose next operation is an `advance`.
    pub fn hold(&mut self, progress: BatchProgress) {
        self.held.push_back(progress);
    }

    /// The batches that wait for runs.
    pub fn progresses(&self) -> impl Iterator<Item = &BatchProgress> {
        self.active.iter().map(|(_, progress)| progress)
    }

    /// Whether an active run needs frames even if the game is stopped.
    pub fn are_driving(&self) -> bool {
        self.active.iter().any(|(run, _)| run.drives)
    }

    /// Whether the picture of the next frame would be needed if a run ended there. At the end of a run that drives, the
    /// game stops again, and no later frame would update the picture.
    pub fn need_picture(&self) -> bool {
        self.active.iter().any(|(run, progress)| run.drives || progress.needs_picture())
    }

    /// Finds the steps that end now. Called after each frame, before requests, scripts or timelines change the game.
    pub fn after_frame(&mut self, core: &mut Core) {
        let game = core.crc32();
        for (run, _) in &mut self.active {
            run.frames += 1;
            run.lost = run.game != game;
            run.over = if run.lost { None } else { run.end(core) };
        }
    }
}

impl ActiveRun {
    fn step(&self) -> Option<&CompiledStep> {
        self.steps.get(self.ends.len())
    }

    /// Why the current step ends now; `None` if it does not.
    fn end(&self, core: &mut Core) -> Option<EndReason> {
        let step = self.step()?;
        let mut first = |conditions: &[Code]| {
            let holds = |code: &Code| code.value(&mut CoreMemory(core)).is_some_and(|value| value != 0);
            conditions.iter().position(holds).map(|index| index as u8)
        };
        if let Some(index) = first(&self.stop) {
            return Some(EndReason::Stop(index));
        }
        if let Some(index) = first(&step.until) {
            return Some(EndReason::Condition(index));
        }
        if self.frames < step.frames {
            return None;
        }
        Some(if step.until.is_empty() { EndReason::Frames } else { EndReason::TimedOut })
    }

    /// Whether the run is over. The last step that has ended decides this.
    fn is_over(&self) -> bool {
        let Some(last) = self.ends.last() else { return false };
        match last.why {
            EndReason::Stop(_) => true,
            EndReason::TimedOut => !self.steps[self.ends.len() - 1].goes_on || self.step().is_none(),
            EndReason::Frames | EndReason::Condition(_) => self.step().is_none(),
        }
    }
}

/// Decodes a run: the conditions that end it, and its steps.
///
/// # Errors
/// If the bytes are not a run, or if a condition has a fixed address at which the core has no memory.
pub(super) fn compile_run(core: &Core, bytes: &[u8]) -> Result<(Vec<Code>, Vec<CompiledStep>), OpError> {
    let RunSteps { stop, steps } = RunSteps::decode_checked(bytes)?;
    let stop = compile(core, &stop, "stop")?;
    let compile_step = |(index, step): (usize, RunStep)| {
        let RunStep { frames, keys, until, goes_on } = step;
        let until = compile(core, &until, &format!("steps[{index}].until"))?;
        Ok(CompiledStep { frames, keys, until, goes_on })
    };
    let steps = steps.into_iter().enumerate().map(compile_step).collect::<Result<Vec<_>, OpError>>()?;
    Ok((stop, steps))
}

impl Machine {
    /// Begins a run. If a condition already holds, its step ends without a frame.
    ///
    /// # Errors
    /// If too many runs are active, if the bytes are not a run, if a condition has a fixed address at which the core
    /// has no memory, or if another timeline owns keys of the step that begins.
    pub fn begin_run(&mut self, bytes: &[u8]) -> Result<BegunRun, OpError> {
        if self.runs.active.len() >= MAX_RUNS {
            let message =
                format!("{MAX_RUNS} runs are under way, which is the limit; wait for the end of one");
            return Err(OpError::new(Status::Busy, message));
        }
        let (stop, steps) = compile_run(&self.core, bytes)?;
        let (drives, game) = (self.run.run_state().stopped, self.core.crc32());
        let mut run = ActiveRun {
            stop,
            steps,
            ends: Vec::new(),
            timeline: None,
            frames: 0,
            over: None,
            drives,
            game,
            lost: false,
        };
        let is_over = self.begin_steps(&mut run)?;
        Ok(if is_over { BegunRun::Over(run.ends) } else { BegunRun::Active(run) })
    }

    /// Begins the current step. If it ends at once, begins the next step, and so on. Returns whether the run is over.
    ///
    /// # Errors
    /// If another timeline owns keys of a step.
    fn begin_steps(&mut self, run: &mut ActiveRun) -> Result<bool, OpError> {
        while !run.is_over() {
            run.frames = 0;
            let Some(why) = run.end(&mut self.core) else {
                if let Some(step) = run.step()
                    && !step.keys.is_empty()
                {
                    run.timeline = Some(self.play(step.keys.clone())?);
                }
                return Ok(false);
            };
            run.ends.push(StepEnd { why, frames: 0, frame: self.core.frame_counter() });
        }
        Ok(true)
    }

    /// Begins the next step of each run whose step has ended, and continues the batch of each run that is over. Also
    /// removes the runs that no client waits for. Called after each frame, and also while no frames run.
    pub fn settle_runs(&mut self) {
        // The batches continue last, because they may begin new runs.
        let mut over = Vec::new();
        let mut index = 0;
        while let Some((run, progress)) = self.runs.active.get_mut(index) {
            let is_abandoned = progress.is_abandoned();
            let why = run.over.take();
            if why.is_none() && !run.lost && !is_abandoned {
                index += 1;
                continue;
            }
            let (mut run, progress) = self.runs.active.remove(index);
            if let Some(timeline) = run.timeline.take() {
                self.cancel_keys(timeline);
            }
            if is_abandoned {
                continue;
            }
            let Some(why) = why else {
                over.push((progress, Err(OpError::failed(run::OTHER_GAME))));
                continue;
            };
            run.ends.push(StepEnd { why, frames: run.frames, frame: self.core.frame_counter() });
            match self.begin_steps(&mut run) {
                Ok(false) => {
                    self.runs.active.insert(index, (run, progress));
                    index += 1;
                }
                Ok(true) => over.push((progress, Ok(Value::Bytes(run::encode_ends(&run.ends))))),
                // Frames have run, so this is not a refusal: if the request is repeated, they must not run again.
                Err(error) => over.push((progress, Err(OpError::failed(error.message)))),
            }
        }
        for (progress, result) in over {
            self.run_is_over(progress, result);
        }
        self.release_held();
    }

    /// Continues the batches whose next operation is an `advance`, unless another `advance` is running.
    pub fn release_held(&mut self) {
        while !self.advancing
            && let Some(progress) = self.runs.held.pop_front()
        {
            self.proceed(progress, true);
        }
    }
}
