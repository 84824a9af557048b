//! Branches from saved states, as the class `Explorer` of the native module.
//!
//! The argument `cell` is a list of formulas. States in which they have the same values, rounded down, belong to the
//! same *cell*. Only the best known state of a cell matters.

use std::path::PathBuf;
use std::sync::Arc;

use framewire_game::GameFile;
use framewire_protocol::hex::hex_digits;
use framewire_vecenv::{Goals, Job, Plan};
use parking_lot::RwLock;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{self, GameFileError};

/// Plays branches from saved states. `framewire.search` wraps it.
#[pyclass(frozen, module = "framewire._native")]
pub(crate) struct Explorer {
    explorer: RwLock<framewire_vecenv::Explorer>,
    #[pyo3(get)]
    frame_skip: u32,
}

/// State, actions (`None` for random actions), seed, steps, probability that a step repeats the last action, whether to
/// return the state at the end, and whether to return states in new cells and better states of known cells.
type JobRow = (Vec<u8>, Option<Vec<i64>>, u64, u32, f64, bool, bool);

/// A state in a new cell, or a better state of a known cell: cell, score, frames, steps and state.
type FoundRow = (Vec<i64>, f64, u32, usize, Py<PyBytes>);

/// The result of a branch: see `framewire_vecenv::Rollout`.
#[pyclass(frozen, get_all, module = "framewire._native")]
pub(crate) struct Rollout {
    actions: Vec<i64>,
    last_frames: u32,
    frames: u32,
    score: f64,
    reached: bool,
    over: bool,
    found: Vec<Py<PyAny>>,
    state: Option<Py<PyBytes>>,
    hash: Py<PyBytes>,
}

#[pymethods]
impl Explorer {
    // Python passes most of these arguments by name.
    #[allow(clippy::too_many_arguments)]
    #[new]
    #[pyo3(signature = (game, scenario, *, rom=None, score=None, goal=None, cell=Vec::new(), threads=0))]
    fn new(
        py: Python<'_>,
        game: PathBuf,
        scenario: Option<&str>,
        rom: Option<PathBuf>,
        score: Option<String>,
        goal: Option<String>,
        cell: Vec<String>,
        threads: usize,
    ) -> PyResult<Explorer> {
        let file =
            GameFile::read(&game).map_err(|error| GameFileError::new_err(errors::with_sources(&error)))?;
        let goals = Goals { score, goal, cell };
        let explorer =
            py.detach(|| framewire_vecenv::Explorer::new(&file, scenario, rom.as_deref(), &goals, threads));
        let explorer = explorer.map_err(errors::of_env)?;
        let frame_skip = explorer.task().scenario().frame_skip;
        Ok(Explorer { explorer: RwLock::new(explorer), frame_skip })
    }

    /// The state in which episodes begin, in the format of `VectorEnv.save`.
    fn start<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.explorer.read().start())
    }

    /// The console's state in which episodes begin, in mGBA's format.
    fn start_savestate<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.explorer.read().task().start())
    }

    /// The ROM's path.
    fn rom(&self) -> PathBuf {
        self.explorer.read().task().rom().to_owned()
    }

    /// A hash, in hex digits. If it is equal for two explorers, one can continue the branches of the other.
    fn fingerprint(&self) -> String {
        hex_digits(&self.explorer.read().fingerprint())
    }

    /// The keys of an action.
    fn action_name(&self, action: i64) -> PyResult<String> {
        self.explorer.read().task().action_name(action).map_err(errors::of_env)
    }

    /// Adds known cells, each with the score and the frames of its best state. Branches return a state in such a cell
    /// only if it is better.
    fn learn(&self, py: Python<'_>, cells: Vec<(Vec<i64>, f64, u32)>) {
        py.detach(|| {
            let mut explorer = self.explorer.write();
            for (cell, score, frames) in cells {
                explorer.learn(cell, score, frames);
            }
        });
    }

    /// Forgets all cells.
    fn forget(&self, py: Python<'_>) {
        py.detach(|| self.explorer.write().forget());
    }

    /// Plays branches in parallel, without the interpreter's lock.
    fn run(&self, py: Python<'_>, jobs: Vec<JobRow>) -> PyResult<Vec<Rollout>> {
        let jobs: Vec<Job> = jobs
            .into_iter()
            .map(|(state, actions, seed, steps, repeat, keep, find)| Job {
                state: Arc::from(state),
                plan: match actions {
                    Some(actions) => Plan::Actions(actions),
                    None => Plan::Random { seed, steps, repeat },
                },
                keep,
                find,
            })
            .collect();
        let rollouts = py.detach(|| self.explorer.read().run(&jobs));
        let rollouts = rollouts.map_err(errors::of_env)?;
        rollouts.into_iter().map(|rollout| Rollout::new(py, rollout)).collect()
    }
}

impl Rollout {
    fn new(py: Python<'_>, rollout: framewire_vecenv::Rollout) -> PyResult<Rollout> {
        let found = rollout.found.into_iter().map(|found| {
            let state = PyBytes::new(py, &found.state).unbind();
            let row: FoundRow = (found.cell, found.score, found.frames, found.steps, state);
            Ok(row.into_pyobject(py)?.into_any().unbind())
        });
        Ok(Rollout {
            actions: rollout.actions,
            last_frames: rollout.last_frames,
            frames: rollout.frames,
            score: rollout.score,
            reached: rollout.reached,
            over: rollout.over,
            found: found.collect::<PyResult<_>>()?,
            state: rollout.state.map(|state| PyBytes::new(py, &state).unbind()),
            hash: PyBytes::new(py, &rollout.hash).unbind(),
        })
    }
}
