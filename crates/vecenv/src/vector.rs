use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::available_parallelism;

use parking_lot::Mutex;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::batch::{Batch, OwnedRow, Row};
use crate::environment::Environment;
use crate::error::Error;
use crate::task::Task;

/// The largest number of environments in a vector.
const MAX_ENVS: usize = 65_536;

/// What happens after the end of an episode. The names are those of Gymnasium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Autoreset {
    /// The next step resets the environment. Its action is ignored, and its reward is 0.
    #[default]
    NextStep,
    /// The same step resets the environment. The last observation of the episode goes to the batch's `final_` slices.
    SameStep,
    /// The environment is not reset automatically; call [`VectorEnv::reset`].
    Disabled,
}

/// The options of a vector.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The number of environments, from 1 to 65,536. The default is 0, which is not accepted.
    pub envs: usize,
    /// The largest number of threads that run the environments; 0 means one per processor. There are never more threads
    /// than processors.
    pub threads: usize,
    /// What happens after the end of an episode.
    pub autoreset: Autoreset,
    /// Whether each step draws its last frame even if the picture is not observed, so that [`VectorEnv::with_core`] can
    /// read it.
    pub renders: bool,
}

/// A pool of threads. They exist only in the process that has started them.
pub(crate) struct Pool {
    threads: ThreadPool,
    process: u32,
}

impl Pool {
    /// A pool of threads with this name. If `threads` is 0, there is one thread per processor. There are never more
    /// threads than processors, because the additional threads would only look for work that the others already do.
    pub(crate) fn new(name: &'static str, threads: usize) -> Result<Pool, Error> {
        let threads = threads.min(available_parallelism().map_or(threads, NonZero::get));
        let pool =
            ThreadPoolBuilder::new().num_threads(threads).thread_name(move |index| format!("{name}-{index}"));
        let threads = pool.build().map_err(|error| Error::Threads(error.to_string()))?;
        Ok(Pool { threads, process: std::process::id() })
    }

    /// The threads.
    ///
    /// # Errors
    /// In a process that was forked later. Work for the threads would wait there for ever.
    pub(crate) fn threads(&self) -> Result<&ThreadPool, Error> {
        if self.process == std::process::id() {
            return Ok(&self.threads);
        }
        Err(Error::Argument(
            "this process was forked after this object was made, so it does not have the object's threads; make a new \
             object in this process"
                .to_owned(),
        ))
    }
}

/// Environments of one task that run at the same time.
///
/// While there are steps of [`send`](VectorEnv::send) whose results have not been taken yet,
/// [`reset`](VectorEnv::reset), [`step`](VectorEnv::step), [`hashes`](VectorEnv::hashes), [`save`](VectorEnv::save) and
/// [`restore`](VectorEnv::restore) return an error.
pub struct VectorEnv {
    task: Arc<Task>,
    envs: Vec<Arc<Mutex<Environment>>>,
    pool: Pool,
    autoreset: Autoreset,
    /// Whether each environment has been reset, or continues from a state of one that has been reset.
    has_begun: Vec<bool>,
    /// Whether each environment has a step of [`send`](VectorEnv::send) whose result has not been taken yet.
    is_sent: Vec<bool>,
    /// Whether the episode of each environment has ended. It can be read while the environment is locked for a step.
    is_over: Vec<bool>,
    /// The channel for the results of [`send`](VectorEnv::send).
    done: (Sender<Sent>, Receiver<Sent>),
}

/// The result of a step of [`VectorEnv::send`].
struct Sent {
    index: usize,
    row: OwnedRow,
    is_over: bool,
    result: Result<(), Error>,
}

impl VectorEnv {
    /// Starts the environments. They must be [`reset`](VectorEnv::reset) before the first step.
    ///
    /// # Errors
    /// If the numbers in `options` are not accepted, or a core cannot be created.
    pub fn new(task: Task, options: &Options) -> Result<VectorEnv, Error> {
        let Options { envs, threads, autoreset, renders } = *options;
        if !(1..=MAX_ENVS).contains(&envs) {
            return Err(Error::Argument(format!("num_envs is {envs}; use a number from 1 to {MAX_ENVS}")));
        }
        let pool = Pool::new("vecenv", threads)?;
        let task = Arc::new(task);
        let make = |index: usize| Environment::new(&task, index as u64, renders);
        let make = |index| make(index).map(|env| Arc::new(Mutex::new(env)));
        let envs: Vec<_> =
            pool.threads()?.install(|| (0..envs).into_par_iter().map(make).collect::<Result<_, _>>())?;
        let none = vec![false; envs.len()];
        let (has_begun, is_sent, is_over) = (none.clone(), none.clone(), none);
        Ok(VectorEnv { task, envs, pool, autoreset, has_begun, is_sent, is_over, done: channel() })
    }

    /// The task that the environments run.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The number of environments.
    pub fn count(&self) -> usize {
        self.envs.len()
    }

    /// Begins an episode in each environment for which `mask` is true or, without a mask, in all environments. If
    /// `seeds` has a seed for such an environment, its random numbers start again from this seed. An environment that
    /// is not reset writes its last observation again. After [`restore`](VectorEnv::restore), that is the observation
    /// of the restored state.
    ///
    /// # Errors
    /// If the lengths do not match the number of environments, or a core cannot load its state.
    pub fn reset(
        &mut self,
        seeds: &[Option<u64>],
        mask: Option<&[bool]>,
        batch: Batch<'_>,
    ) -> Result<(), Error> {
        let count = self.envs.len();
        self.fits("seeds", seeds.len())?;
        if let Some(mask) = mask {
            self.fits("reset_mask", mask.len())?;
        }
        self.check_idle()?;
        let rows = self.rows(batch, count)?;
        let chosen: Vec<bool> = mask.map_or_else(|| vec![true; count], <[bool]>::to_vec);
        for (index, chosen) in chosen.iter().enumerate() {
            self.has_begun[index] |= chosen;
            self.is_over[index] &= !chosen;
        }
        self.pool.threads()?.install(|| {
            self.envs.par_iter().zip(rows).zip(seeds).zip(chosen).with_max_len(1).try_for_each(
                |(((env, mut row), seed), chosen)| {
                    let env = &mut *env.lock();
                    if !chosen {
                        env.write_last(&mut row);
                        return Ok(());
                    }
                    if let Some(seed) = seed {
                        env.seed(*seed);
                    }
                    env.reset(&mut row)
                },
            )
        })
    }

    /// Plays a step in each environment. There is one action per environment, in the form that [`Task::keys`] accepts.
    ///
    /// # Errors
    /// If the lengths do not match the number of environments, there is no such action, an environment has not been
    /// reset, or an episode has ended and there is no automatic reset. In these cases, no environment has played a step.
    /// Also if an environment cannot be reset; then others may have played their steps.
    pub fn step(&mut self, actions: &[i64], batch: Batch<'_>) -> Result<(), Error> {
        self.fits("actions", actions.len())?;
        let keys = actions.iter().map(|action| self.task.keys(*action)).collect::<Result<Vec<u16>, _>>()?;
        self.check_idle()?;
        (0..self.envs.len()).try_for_each(|index| self.check_playable(index))?;
        let rows = self.rows(batch, self.envs.len())?;
        let autoreset = self.autoreset;
        let all = self.envs.iter().zip(&mut self.is_over).zip(rows).zip(keys);
        if self.envs.len() == 1 {
            // For a single environment, another thread would only cost the time to wake it.
            let mut all = all;
            return all.try_for_each(|(((env, is_over), mut row), keys)| {
                advance(&mut env.lock(), keys, autoreset, &mut row, is_over)
            });
        }
        let all: Vec<_> = all.collect();
        self.pool.threads()?.install(|| {
            all.into_par_iter().with_max_len(1).try_for_each(|(((env, is_over), mut row), keys)| {
                advance(&mut env.lock(), keys, autoreset, &mut row, is_over)
            })
        })
    }

    /// Begins a step in each environment of `envs`, with one action each, and returns at once.
    /// [`recv`](VectorEnv::recv) returns the results.
    ///
    /// # Errors
    /// If the numbers of environments and actions differ, there is no such environment or action, an environment has not
    /// been reset or is already playing a step, or its episode has ended and there is no automatic reset. In these cases,
    /// no step has begun.
    pub fn send(&mut self, envs: &[usize], actions: &[i64]) -> Result<(), Error> {
        if envs.len() != actions.len() {
            let (envs, actions) = (envs.len(), actions.len());
            return Err(Error::Argument(format!(
                "there are {actions} actions for {envs} environments; give one for each"
            )));
        }
        let keys = actions.iter().map(|action| self.task.keys(*action)).collect::<Result<Vec<u16>, _>>()?;
        let mut seen = self.is_sent.clone();
        for index in envs {
            match seen.get_mut(*index) {
                None => return Err(self.unknown(*index)),
                Some(is_sent) if *is_sent => {
                    return Err(Error::Argument(format!(
                        "environment {index} is already playing a step; get its result with recv first"
                    )));
                }
                Some(is_sent) => *is_sent = true,
            }
            self.check_playable(*index)?;
        }
        let threads = self.pool.threads()?;
        self.is_sent = seen;
        for (index, keys) in envs.iter().copied().zip(keys) {
            let (env, task, autoreset) = (self.envs[index].clone(), self.task.clone(), self.autoreset);
            let done = self.done.0.clone();
            threads.spawn(move || {
                let finals = autoreset == Autoreset::SameStep;
                let mut row = OwnedRow::new(task.screen_len(), task.memory_len(), task.info.len(), finals);
                let mut is_over = false;
                let result = advance(&mut env.lock(), keys, autoreset, &mut row.row(), &mut is_over);
                // Sending fails only if the vector was dropped.
                let _ = done.send(Sent { index, row, is_over, result });
            });
        }
        Ok(())
    }

    /// The number of steps of [`send`](VectorEnv::send) whose results have not been taken yet, finished or not.
    pub fn under_way(&self) -> usize {
        self.is_sent.iter().filter(|is_sent| **is_sent).count()
    }

    /// Waits until `count` steps of [`send`](VectorEnv::send) are finished, and writes their results into a batch of
    /// that size, in the order in which they finish. Returns the index of the environment of each row.
    ///
    /// # Errors
    /// If there are fewer than `count` steps whose results have not been taken yet, the batch does not have this size,
    /// or an environment cannot be reset.
    pub fn recv(&mut self, count: usize, batch: Batch<'_>) -> Result<Vec<usize>, Error> {
        let under_way = self.under_way();
        if count > under_way {
            return Err(Error::Argument(format!(
                "recv waits for {count} environments, but only {under_way} play a step; send actions to more of them first"
            )));
        }
        let mut rows = self.rows(batch, count)?;
        // In a process that was forked later, no thread sends a result.
        self.pool.threads()?;
        let mut numbers = Vec::with_capacity(count);
        let mut failed = Ok(());
        for row in &mut rows {
            let Ok(Sent { index, row: played, is_over, result }) = self.done.1.recv() else {
                return Err(Error::Threads("the threads of the environments are gone".to_owned()));
            };
            self.is_sent[index] = false;
            self.is_over[index] = is_over;
            played.copy_to(row);
            numbers.push(index);
            failed = failed.and(result);
        }
        failed.map(|()| numbers)
    }

    fn check_idle(&self) -> Result<(), Error> {
        match self.under_way() {
            0 => Ok(()),
            count => Err(Error::Argument(format!(
                "{count} environments are playing a step that send began; get their results with recv first"
            ))),
        }
    }

    fn check_playable(&self, index: usize) -> Result<(), Error> {
        if !self.has_begun[index] {
            return Err(Error::Argument(format!(
                "environment {index} has not begun an episode; call reset first"
            )));
        }
        if self.autoreset == Autoreset::Disabled && self.is_over[index] {
            return Err(Error::Argument(format!(
                "the episode of environment {index} has ended; reset it first, with options={{\"reset_mask\": mask}}"
            )));
        }
        Ok(())
    }

    fn unknown(&self, index: usize) -> Error {
        let count = self.envs.len();
        Error::Argument(format!("there is no environment {index}; use a number below {count}"))
    }

    /// SHA-256 of the state of each console, without the sound unit, which libmgba does not restore exactly.
    ///
    /// # Errors
    /// If a state cannot be saved.
    pub fn hashes(&mut self) -> Result<Vec<[u8; 32]>, Error> {
        self.check_idle()?;
        self.pool.threads()?.install(|| self.envs.par_iter().map(|env| env.lock().hash()).collect())
    }

    /// The state of each environment for which `mask` is true: everything that its next steps depend on, and its last
    /// observation.
    ///
    /// # Errors
    /// If the length does not match the number of environments, or a state cannot be saved.
    pub fn save(&mut self, mask: &[bool]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.fits("mask", mask.len())?;
        self.check_idle()?;
        self.pool.threads()?.install(|| {
            let envs = self.envs.par_iter().zip(mask).with_max_len(1);
            envs.map(|(env, chosen)| if *chosen { env.lock().save().map(Some) } else { Ok(None) }).collect()
        })
    }

    /// Continues environments from states that [`save`](VectorEnv::save) returned. Environments with `None` are not
    /// changed.
    ///
    /// # Errors
    /// If the length does not match the number of environments, or a state is damaged or belongs to another scenario.
    /// In these cases, no environment has changed. Also if a core refuses the console's state inside one of the states;
    /// then other environments may have changed.
    pub fn restore(&mut self, states: &[Option<&[u8]>]) -> Result<(), Error> {
        self.fits("states", states.len())?;
        self.check_idle()?;
        let threads = self.pool.threads()?;
        let read = self.envs.par_iter().zip(states).with_max_len(1);
        let read = read.map(|(env, state)| state.map(|state| env.lock().read(state)).transpose());
        let saved = threads.install(|| read.collect::<Result<Vec<_>, _>>())?;
        let ends = self.has_begun.iter_mut().zip(&mut self.is_over);
        let all: Vec<_> = self.envs.iter().zip(ends).zip(saved).collect();
        threads.install(|| {
            all.into_par_iter().with_max_len(1).try_for_each(|((env, (has_begun, is_over)), saved)| {
                let Some(saved) = saved else { return Ok(()) };
                let env = &mut *env.lock();
                env.restore(saved)?;
                (*has_begun, *is_over) = (env.has_begun(), env.is_over());
                Ok(())
            })
        })
    }

    /// How many times an environment has run a frame, begun an episode or loaded a state; `None` if there is no such
    /// environment. Frames that [`with_core`](VectorEnv::with_core) runs do not count.
    pub fn moves(&self, index: usize) -> Option<u64> {
        self.envs.get(index).map(|env| env.lock().moves)
    }

    /// Runs `with` on the core of one environment. The second argument of `with` says whether the core's picture is
    /// that of its last frame; if `with` runs frames, it must update this argument. If a thread is playing a step of
    /// the environment, this waits for the end of the step. It does not wait for a step of [`send`](VectorEnv::send)
    /// that has not begun yet.
    ///
    /// # Errors
    /// If there is no such environment.
    pub fn with_core<T>(
        &mut self,
        index: usize,
        with: impl FnOnce(&mut framewire_libmgba::Core, &mut bool) -> T,
    ) -> Result<T, Error> {
        if self.is_sent.get(index) == Some(&true) {
            // In a process that was forked during the step, the environment stays locked.
            self.pool.threads()?;
        }
        let env = self.envs.get(index).ok_or_else(|| self.unknown(index))?;
        let env = &mut *env.lock();
        Ok(with(&mut env.core, &mut env.has_picture))
    }

    fn fits(&self, name: &str, len: usize) -> Result<(), Error> {
        let count = self.envs.len();
        if len == count {
            return Ok(());
        }
        Err(Error::Argument(format!("{name} has {len} values for {count} environments; give one for each")))
    }

    /// Checks the lengths of a batch for `count` environments, and splits it into rows.
    fn rows<'a>(&self, batch: Batch<'a>, count: usize) -> Result<Vec<Row<'a>>, Error> {
        let (screen, memory, info) = (self.task.screen_len(), self.task.memory_len(), self.task.info.len());
        let finals = if self.autoreset == Autoreset::SameStep { count } else { 0 };
        for (name, found, expected) in [
            ("screens", batch.screens.len(), count * screen),
            ("memory", batch.memory.len(), count * memory),
            ("rewards", batch.rewards.len(), count),
            ("terminated", batch.terminated.len(), count),
            ("truncated", batch.truncated.len(), count),
            ("info", batch.info.len(), count * info),
            ("final_screens", batch.final_screens.len(), finals * screen),
            ("final_memory", batch.final_memory.len(), finals * memory),
            ("final_info", batch.final_info.len(), finals * info),
        ] {
            if found != expected {
                return Err(Error::Argument(format!(
                    "the batch's {name} has {found} values; it needs {expected}"
                )));
            }
        }
        Ok(batch.rows(screen, memory, info))
    }
}

/// Plays one step of one environment, including the automatic reset. Writes to `is_over` whether the episode has ended.
fn advance(
    env: &mut Environment,
    keys: u16,
    autoreset: Autoreset,
    row: &mut Row<'_>,
    is_over: &mut bool,
) -> Result<(), Error> {
    *is_over = false;
    if env.is_over() {
        return env.reset(row);
    }
    env.step(keys, row);
    *is_over = env.is_over();
    if autoreset == Autoreset::SameStep && env.is_over() {
        row.final_screen.copy_from_slice(row.screen);
        row.final_memory.copy_from_slice(row.memory);
        row.final_info.copy_from_slice(row.info);
        let (reward, terminated, truncated) = (*row.reward, *row.terminated, *row.truncated);
        env.reset(row)?;
        *is_over = false;
        (*row.reward, *row.terminated, *row.truncated) = (reward, terminated, truncated);
    }
    Ok(())
}
