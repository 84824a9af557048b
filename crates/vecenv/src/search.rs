//! Plays many branches for searches. A branch begins at a saved state and plays a list of actions.

use std::collections::HashMap;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use framewire_expression::{Formula, Number};
use framewire_game::GameFile;
use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::environment::{Environment, chance};
use crate::error::Error;
use crate::memory::Memory;
use crate::task::{Evaluated, Task};
use crate::vector::Pool;

/// The largest number of steps in a branch with random actions.
const MAX_STEPS: u32 = 1_000_000;

/// What a search looks for, as formulas over memory. Functions that remember earlier frames are not accepted, because a
/// branch can begin at any state.
#[derive(Debug, Clone, Default)]
pub struct Goals {
    /// How good a state is; greater is better. `None` means the sum of the scenario's rewards.
    pub score: Option<String>,
    /// A branch that reaches a frame in which this formula is not 0 has found a solution.
    pub goal: Option<String>,
    /// States in which these formulas have the same values, rounded down, belong to the same cell. Only the best known
    /// state of a cell matters to the search.
    pub cell: Vec<String>,
}

/// A branch to play.
#[derive(Debug, Clone)]
pub struct Job {
    /// The state at which the branch begins, from [`Explorer::start`] or from an earlier branch.
    pub state: Arc<[u8]>,
    /// The actions to play.
    pub plan: Plan,
    /// Whether to return the state at the end of the branch.
    pub keep: bool,
    /// Whether to return states in new cells, and states that are better than the best known state of their cell. Has
    /// no effect if [`Goals::cell`] is empty.
    pub find: bool,
}

/// The actions of a branch.
#[derive(Debug, Clone)]
pub enum Plan {
    /// These actions, in the form that [`Task::keys`] accepts.
    Actions(Vec<i64>),
    /// Random actions.
    Random {
        /// The seed of the random numbers.
        seed: u64,
        /// The number of steps.
        steps: u32,
        /// The probability that a step repeats the action of the previous step.
        repeat: f64,
    },
}

/// The result of a branch.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// The actions that were played. A branch ends early if the episode ends or the goal is reached.
    pub actions: Vec<i64>,
    /// The number of frames of the last action. It is smaller than for other actions if the branch ended during this
    /// action, and 0 if no action was played.
    pub last_frames: u32,
    /// Frames since the start of the episode.
    pub frames: u32,
    /// The score at the end of the branch.
    pub score: f64,
    /// Whether the branch reached the goal.
    pub reached: bool,
    /// Whether the episode has ended without reaching the goal.
    pub over: bool,
    /// States in new cells, or better ones in known cells, in the order of their steps.
    pub found: Vec<Found>,
    /// The state at the end of the branch, if the job asked for it and `over` is false.
    pub state: Option<Vec<u8>>,
    /// SHA-256 of the console's state at the end of the branch, without the sound unit.
    pub hash: [u8; 32],
}

/// A state worth keeping.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its cell.
    pub cell: Vec<i64>,
    /// Its score.
    pub score: f64,
    /// Frames since the start of the episode.
    pub frames: u32,
    /// The number of the branch's actions that lead to it.
    pub steps: usize,
    /// The state.
    pub state: Vec<u8>,
}

/// How good the best known state of a cell is.
#[derive(Debug, Clone, Copy)]
struct Best {
    score: f64,
    frames: u32,
}

impl Best {
    /// Whether it is better than another one: a greater score, or the same score in fewer frames.
    fn beats(self, other: Option<Best>) -> bool {
        match other {
            None => true,
            Some(other) => {
                self.score > other.score || (self.score == other.score && self.frames < other.frames)
            }
        }
    }
}

/// Plays branches of one scenario on a pool of threads. The results of a branch depend only on its job and on the
/// cells that are known when it begins. Branches use neither `max_noops` nor `sticky` of the scenario, so that their
/// inputs can be replayed.
pub struct Explorer {
    task: Arc<Task>,
    pool: Pool,
    /// One environment for each thread of the pool. All are opened at the start, so the ROM may be removed after that.
    environments: Vec<Mutex<Environment>>,
    start: Arc<[u8]>,
    score: Option<Evaluated>,
    goal: Option<Evaluated>,
    cell: Vec<Evaluated>,
    known: HashMap<Vec<i64>, Best>,
}

impl Explorer {
    /// Prepares a scenario of a game file. If `threads` is 0, there is one thread per processor. There are never more
    /// threads than processors.
    ///
    /// # Errors
    /// The same as for [`Task::new`]. Also if a formula of `goals` is not accepted, if there is neither a score in
    /// `goals` nor a reward in the scenario, or if the threads cannot be started.
    pub fn new(
        file: &GameFile,
        scenario: Option<&str>,
        rom: Option<&Path>,
        goals: &Goals,
        threads: usize,
    ) -> Result<Explorer, Error> {
        let mut scenario = file.scenario(scenario).map_err(Error::Argument)?.clone();
        scenario.screen = None;
        scenario.memory.clear();
        scenario.info.clear();
        scenario.sticky = 0.0;
        scenario.max_noops = 0;
        if goals.score.is_none() && scenario.reward.is_none() {
            let name = &scenario.name;
            return Err(Error::Argument(format!(
                "scenario {name} has no reward, so the search needs `score`, an expression that says how good a state is"
            )));
        }
        let task = Arc::new(Task::of(file, scenario, rom)?);
        let mut environment = Environment::new(&task, 0, false)?;
        environment.begin()?;
        let core = &environment.core;
        let compile = |name: &str, text: &String| {
            let wrong = |message: String| Error::Argument(format!("{name}: {message}"));
            let formula = Formula::parse(text, &*file.symbols).map_err(|error| wrong(error.to_string()))?;
            if formula.functions() > 0 {
                return Err(wrong(format!(
                    "{text} compares frames; a search accepts expressions over the memory of one frame"
                )));
            }
            let memory = Memory::new(core, formula.places()).map_err(wrong)?;
            Ok(Evaluated { formula, memory })
        };
        let score = goals.score.as_ref().map(|text| compile("score", text)).transpose()?;
        let goal = goals.goal.as_ref().map(|text| compile("goal", text)).transpose()?;
        let cell = goals.cell.iter().map(|text| compile("cell", text)).collect::<Result<_, _>>()?;
        let pool = Pool::new("search", threads)?;
        let start = environment.save()?.into();
        let others = 1..pool.threads()?.current_num_threads();
        let others = pool.threads()?.install(|| {
            others.into_par_iter().map(|_| Environment::new(&task, 0, false)).collect::<Result<Vec<_>, _>>()
        })?;
        let environments = iter::once(environment).chain(others).map(Mutex::new).collect();
        Ok(Explorer { task, pool, environments, start, score, goal, cell, known: HashMap::new() })
    }

    /// The state in which episodes begin.
    pub fn start(&self) -> Arc<[u8]> {
        self.start.clone()
    }

    /// The task that the branches play.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Adds a known state of a cell. From now on, states of this cell are returned only if they are better: if they
    /// have a greater score, or the same score in fewer frames.
    pub fn learn(&mut self, cell: Vec<i64>, score: f64, frames: u32) {
        let best = Best { score, frames };
        if best.beats(self.known.get(&cell).copied()) {
            self.known.insert(cell, best);
        }
    }

    /// Forgets all cells.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Plays branches at the same time. The results are in the order of the jobs.
    ///
    /// # Errors
    /// If a job's actions or state are not accepted. In this case, no branch is returned.
    pub fn run(&self, jobs: &[Job]) -> Result<Vec<Rollout>, Error> {
        for job in jobs {
            self.check(&job.plan)?;
        }
        self.pool.threads()?.install(|| jobs.par_iter().with_max_len(1).map(|job| self.play(job)).collect())
    }

    fn check(&self, plan: &Plan) -> Result<(), Error> {
        match plan {
            Plan::Actions(actions) => actions.iter().try_for_each(|action| self.task.keys(*action).map(drop)),
            Plan::Random { steps, repeat, .. } => {
                if *steps > MAX_STEPS {
                    return Err(Error::Argument(format!("steps is {steps}; use a number up to {MAX_STEPS}")));
                }
                if !(0.0..=1.0).contains(repeat) {
                    return Err(Error::Argument(format!(
                        "repeat is {repeat}; use a probability from 0.0 to 1.0"
                    )));
                }
                Ok(())
            }
        }
    }

    /// Plays a branch, on a thread of the pool.
    fn play(&self, job: &Job) -> Result<Rollout, Error> {
        let thread = rayon::current_thread_index().unwrap_or(0);
        self.play_on(&mut self.environments[thread].lock(), job)
    }

    fn play_on(&self, environment: &mut Environment, job: &Job) -> Result<Rollout, Error> {
        environment.restore(environment.read(&job.state)?)?;
        if environment.is_over() {
            return Err(Error::State(
                "the episode of this state has ended; begin a branch at another one".to_owned(),
            ));
        }
        let skip = self.task.scenario().frame_skip;
        let mut actions = Vec::new();
        let mut found: HashMap<Vec<i64>, Found> = HashMap::new();
        let (mut reached, mut last_frames) = (false, 0);
        for action in actions_of(&job.plan, self.task.actions()) {
            let keys = self.task.keys(action)?;
            actions.push(action);
            last_frames = 0;
            while last_frames < skip && !reached && !environment.is_over() {
                environment.play_frame(keys, false);
                last_frames += 1;
                reached = self.is_goal(environment);
            }
            if reached || environment.is_over() {
                break;
            }
            if !job.find || self.cell.is_empty() {
                continue;
            }
            let (cell, score) = (self.cell_of(environment), self.score_of(environment));
            let best = Best { score, frames: environment.frames };
            let known = match found.get(&cell) {
                Some(earlier) => Some(Best { score: earlier.score, frames: earlier.frames }),
                None => self.known.get(&cell).copied(),
            };
            if !best.beats(known) {
                continue;
            }
            let state = environment.save()?;
            let here = Found { cell: cell.clone(), score, frames: best.frames, steps: actions.len(), state };
            found.insert(cell, here);
        }
        let mut found: Vec<Found> = found.into_values().collect();
        // Each step adds at most one state, so the order does not depend on the map.
        found.sort_by_key(|found| found.steps);
        let over = environment.is_over() && !reached;
        Ok(Rollout {
            score: self.score_of(environment),
            frames: environment.frames,
            state: if job.keep && !over { Some(environment.save()?) } else { None },
            hash: environment.hash()?,
            actions,
            last_frames,
            reached,
            over,
            found,
        })
    }

    fn is_goal(&self, environment: &mut Environment) -> bool {
        let value = self.goal.as_ref().and_then(|goal| environment.value(goal));
        value.is_some_and(Number::is_true)
    }

    /// The score in the current frame. A formula without a value counts as 0.
    fn score_of(&self, environment: &mut Environment) -> f64 {
        match &self.score {
            Some(score) => environment.value(score).map_or(0.0, Number::as_f64),
            None => environment.earned,
        }
    }

    fn cell_of(&self, environment: &mut Environment) -> Vec<i64> {
        let whole = |number: Number| match number {
            Number::Whole(number) => number,
            Number::Real(number) => number.floor() as i64,
        };
        self.cell.iter().map(|part| environment.value(part).map_or(i64::MIN, whole)).collect()
    }

    /// SHA-256 of the state in which episodes begin, the number of frames in a step, and the keys of the actions. If
    /// two explorers of a scenario have the same fingerprint, one can continue the other's branches.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(&self.task.start);
        hash.update(self.task.scenario().frame_skip.to_le_bytes());
        hash.update(format!("{:?}", self.task.scenario().actions));
        hash.finalize().into()
    }
}

/// The actions of a plan, one after the other. `count` is the number of different actions.
fn actions_of(plan: &Plan, count: i64) -> Box<dyn Iterator<Item = i64> + '_> {
    match *plan {
        Plan::Actions(ref actions) => Box::new(actions.iter().copied()),
        Plan::Random { seed, steps, repeat } => {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut last = None;
            Box::new((0..steps).map(move |_| {
                if let Some(action) = last
                    && chance(&mut random, repeat)
                {
                    return action;
                }
                let action = (random.next_u64() % count as u64) as i64;
                last = Some(action);
                action
            }))
        }
    }
}
