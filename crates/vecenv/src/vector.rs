use std::sync::Arc;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::batch::{Batch, Row};
use crate::environment::Environment;
use crate::error::Error;
use crate::task::Task;

/// Most environments of a vector.
const MAX_ENVS: usize = 65_536;

/// What follows the end of an episode, as in Gymnasium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Autoreset {
    /// The next step resets the environment. Its action is ignored, and its reward is 0.
    #[default]
    NextStep,
    /// The same step resets it. The last observation of the episode goes to the batch's `final_` slices.
    SameStep,
    /// Nothing: it has to be reset by [`VectorEnv::reset`].
    Disabled,
}

/// How a vector runs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How many environments; at least 1.
    pub envs: usize,
    /// Threads that run them; 0 is one per processor.
    pub threads: usize,
    /// What follows the end of an episode.
    pub autoreset: Autoreset,
    /// Whether each step draws its last frame even if the picture is not observed, for [`VectorEnv::with_core`].
    pub renders: bool,
}

/// Environments of one task that run at the same time.
pub struct VectorEnv {
    task: Arc<Task>,
    envs: Vec<Environment>,
    pool: ThreadPool,
    autoreset: Autoreset,
}

impl VectorEnv {
    /// Starts the environments. They have to be [`reset`](VectorEnv::reset) before the first step.
    ///
    /// # Errors
    /// If the numbers of `options` are not accepted, or a core cannot be made.
    pub fn new(task: Task, options: &Options) -> Result<VectorEnv, Error> {
        let Options { envs, threads, autoreset, renders } = *options;
        if !(1..=MAX_ENVS).contains(&envs) {
            return Err(Error::Argument(format!("num_envs is {envs}; use a number from 1 to {MAX_ENVS}")));
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("vecenv-{index}"))
            .build()
            .map_err(|error| Error::Threads(error.to_string()))?;
        let task = Arc::new(task);
        let make = |index: usize| Environment::new(&task, index as u64, renders);
        let envs = pool.install(|| (0..envs).into_par_iter().map(make).collect::<Result<Vec<_>, _>>())?;
        Ok(VectorEnv { task, envs, pool, autoreset })
    }

    /// What the environments run.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// How many environments there are.
    pub fn len(&self) -> usize {
        self.envs.len()
    }

    /// Whether there are no environments. There always are.
    pub fn is_empty(&self) -> bool {
        self.envs.is_empty()
    }

    /// Begins an episode in each environment for which `mask` is true, or in all. A seed replaces the random numbers of its
    /// environment. Rows of other environments are unchanged.
    ///
    /// # Errors
    /// If the lengths do not fit, or a core does not take its state.
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
        let rows = self.rows(batch)?;
        let chosen: Vec<bool> = mask.map_or_else(|| vec![true; count], <[bool]>::to_vec);
        self.pool.install(|| {
            self.envs.par_iter_mut().zip(rows).zip(seeds).zip(chosen).with_max_len(1).try_for_each(
                |(((env, mut row), seed), chosen)| {
                    if !chosen {
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

    /// Plays a step in each environment: the action of each, as [`Task::keys`] takes it.
    ///
    /// # Errors
    /// If the lengths do not fit, there is no such action, or an episode has ended and nothing resets it. Then no
    /// environment has done anything.
    pub fn step(&mut self, actions: &[i64], batch: Batch<'_>) -> Result<(), Error> {
        self.fits("actions", actions.len())?;
        let keys = actions.iter().map(|action| self.task.keys(*action)).collect::<Result<Vec<u16>, _>>()?;
        if self.autoreset == Autoreset::Disabled
            && let Some(index) = self.envs.iter().position(Environment::is_over)
        {
            return Err(Error::Argument(format!(
                "the episode of environment {index} has ended; reset it first, with options={{\"reset_mask\": mask}}"
            )));
        }
        let rows = self.rows(batch)?;
        let autoreset = self.autoreset;
        if self.envs.len() == 1 {
            // Another thread would only cost the time to wake it.
            let mut all = self.envs.iter_mut().zip(rows).zip(keys);
            return all.try_for_each(|((env, mut row), keys)| advance(env, keys, autoreset, &mut row));
        }
        self.pool.install(|| {
            self.envs
                .par_iter_mut()
                .zip(rows)
                .zip(keys)
                .with_max_len(1)
                .try_for_each(|((env, mut row), keys)| advance(env, keys, autoreset, &mut row))
        })
    }

    /// SHA-256 of the state of each console, without the sound unit: libmgba does not restore all of that exactly.
    ///
    /// # Errors
    /// If a state cannot be saved.
    pub fn hashes(&mut self) -> Result<Vec<[u8; 32]>, Error> {
        self.pool.install(|| self.envs.par_iter_mut().map(Environment::hash).collect())
    }

    /// The state of each environment for which `mask` is true: everything that its next steps depend on.
    ///
    /// # Errors
    /// If the length does not fit, or a state cannot be saved.
    pub fn save(&mut self, mask: &[bool]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.fits("mask", mask.len())?;
        self.pool.install(|| {
            let envs = self.envs.par_iter_mut().zip(mask).with_max_len(1);
            envs.map(|(env, chosen)| if *chosen { env.save().map(Some) } else { Ok(None) }).collect()
        })
    }

    /// Continues environments from states that [`save`](VectorEnv::save) returned. Those with `None` stay as they are.
    ///
    /// # Errors
    /// If the length does not fit, or a state is damaged or of another scenario. That environment is unchanged; others may
    /// have taken their states.
    pub fn restore(&mut self, states: &[Option<&[u8]>]) -> Result<(), Error> {
        self.fits("states", states.len())?;
        self.pool.install(|| {
            let envs = self.envs.par_iter_mut().zip(states).with_max_len(1);
            envs.try_for_each(|(env, state)| match state {
                Some(state) => env.restore(state),
                None => Ok(()),
            })
        })
    }

    /// Runs `with` on the core of one environment.
    ///
    /// # Errors
    /// If there is no such environment.
    pub fn with_core<T>(
        &mut self,
        index: usize,
        with: impl FnOnce(&mut framewire_libmgba::Core) -> T,
    ) -> Result<T, Error> {
        let count = self.envs.len();
        match self.envs.get_mut(index) {
            Some(env) => Ok(with(env.core())),
            None => {
                Err(Error::Argument(format!("there is no environment {index}; use a number below {count}")))
            }
        }
    }

    fn fits(&self, name: &str, len: usize) -> Result<(), Error> {
        let count = self.envs.len();
        if len == count {
            return Ok(());
        }
        Err(Error::Argument(format!("{name} has {len} values for {count} environments; give one for each")))
    }

    fn rows<'a>(&self, batch: Batch<'a>) -> Result<Vec<Row<'a>>, Error> {
        let count = self.envs.len();
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

/// One step of one environment, with what follows the end of an episode.
fn advance(env: &mut Environment, keys: u16, autoreset: Autoreset, row: &mut Row<'_>) -> Result<(), Error> {
    if env.is_over() {
        return env.reset(row);
    }
    env.step(keys, row);
    if autoreset == Autoreset::SameStep && env.is_over() {
        row.final_screen.copy_from_slice(row.screen);
        row.final_memory.copy_from_slice(row.memory);
        row.final_info.copy_from_slice(row.info);
        let (reward, terminated, truncated) = (*row.reward, *row.terminated, *row.truncated);
        env.reset(row)?;
        (*row.reward, *row.terminated, *row.truncated) = (reward, terminated, truncated);
    }
    Ok(())
}
