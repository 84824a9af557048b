//! A vector of environments, as the class `VectorEnv` of the native module, and the arrays that its steps write into.

use std::path::PathBuf;
use std::sync::Arc;

use framewire_game::{Actions, GameFile};
use framewire_symbols::Symbols;
use framewire_vecenv::{Autoreset, Options, Task};
use numpy::{BorrowError, PyArray1, PyArray3, PyArrayMethods, PyReadonlyArray1};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::core::{Core, SharedVector};
use crate::errors::{self, GameFileError};

/// The arrays that steps write into. Each array has the values of all environments one after another.
#[pyclass(frozen, get_all, module = "framewire._native")]
pub(crate) struct Batch {
    screens: Py<PyArray1<u8>>,
    memory: Py<PyArray1<f32>>,
    rewards: Py<PyArray1<f64>>,
    terminated: Py<PyArray1<bool>>,
    truncated: Py<PyArray1<bool>>,
    info: Py<PyArray1<f64>>,
    final_screens: Py<PyArray1<u8>>,
    final_memory: Py<PyArray1<f32>>,
    final_info: Py<PyArray1<f64>>,
}

/// Environments of one scenario, in one process. See `framewire.envs`.
#[pyclass(frozen, module = "framewire._native")]
pub(crate) struct VectorEnv {
    vector: SharedVector,
    symbols: Arc<Symbols>,
    #[pyo3(get)]
    num_envs: usize,
    #[pyo3(get)]
    frame_skip: u32,
    #[pyo3(get)]
    screen_shape: Option<Vec<usize>>,
    #[pyo3(get)]
    memory_len: usize,
    #[pyo3(get)]
    info_names: Vec<String>,
    /// Names of the actions, such as "Up+B"; `None` if an action is a mask of buttons.
    #[pyo3(get)]
    action_names: Option<Vec<String>>,
    /// Names of the buttons of a mask, bit 0 first.
    #[pyo3(get)]
    button_names: Option<Vec<String>>,
    /// Whether the arrays `final_*` get the last observation of an episode. This is the case with the autoreset
    /// `SameStep`.
    keeps_finals: bool,
}

#[pymethods]
impl VectorEnv {
    // Python passes most of these arguments by name.
    #[allow(clippy::too_many_arguments)]
    #[new]
    #[pyo3(signature = (game, scenario, num_envs, *, rom=None, threads=0, autoreset="NextStep", render=false))]
    fn new(
        py: Python<'_>,
        game: PathBuf,
        scenario: Option<&str>,
        num_envs: usize,
        rom: Option<PathBuf>,
        threads: usize,
        autoreset: &str,
        render: bool,
    ) -> PyResult<VectorEnv> {
        let autoreset = match autoreset {
            "NextStep" => Autoreset::NextStep,
            "SameStep" => Autoreset::SameStep,
            "Disabled" => Autoreset::Disabled,
            other => {
                let message = format!("autoreset is {other:?}; use NextStep, SameStep or Disabled");
                return Err(errors::argument(message));
            }
        };
        let file =
            GameFile::read(&game).map_err(|error| GameFileError::new_err(errors::with_sources(&error)))?;
        let options = Options { envs: num_envs, threads, autoreset, renders: render };
        let vector = py.detach(|| {
            let task = Task::new(&file, scenario, rom.as_deref())?;
            framewire_vecenv::VectorEnv::new(task, &options)
        });
        let vector = vector.map_err(errors::of_env)?;
        let task = vector.task();
        let (action_names, button_names) = match &task.scenario().actions {
            Actions::List(list) => {
                let names = (0..list.len() as i64).map(|action| task.action_name(action));
                (Some(names.collect::<Result<_, _>>().map_err(errors::of_env)?), None)
            }
            Actions::Buttons(buttons) => (None, Some(buttons.iter().map(ToString::to_string).collect())),
        };
        Ok(VectorEnv {
            num_envs,
            frame_skip: task.scenario().frame_skip,
            screen_shape: task.screen_shape(),
            memory_len: task.memory_len(),
            info_names: task.info_names().map(str::to_owned).collect(),
            action_names,
            button_names,
            keeps_finals: autoreset == Autoreset::SameStep,
            symbols: file.symbols.clone(),
            vector: Arc::new(Mutex::new(Some(vector))),
        })
    }

    /// Arrays for steps of `envs` environments; `None` means all. Observations go into `screens` and `memory` if they
    /// are passed, or else into new arrays.
    #[pyo3(signature = (envs=None, *, screens=None, memory=None))]
    fn batch(
        &self,
        py: Python<'_>,
        envs: Option<usize>,
        screens: Option<Py<PyArray1<u8>>>,
        memory: Option<Py<PyArray1<f32>>>,
    ) -> Batch {
        let envs = envs.unwrap_or(self.num_envs);
        let screen = self.screen_shape.as_ref().map_or(0, |shape| shape.iter().product());
        let finals = if self.keeps_finals { envs } else { 0 };
        let infos = self.info_names.len();
        Batch {
            screens: screens.unwrap_or_else(|| PyArray1::zeros(py, envs * screen, false).unbind()),
            memory: memory.unwrap_or_else(|| PyArray1::zeros(py, envs * self.memory_len, false).unbind()),
            rewards: PyArray1::zeros(py, envs, false).unbind(),
            terminated: PyArray1::zeros(py, envs, false).unbind(),
            truncated: PyArray1::zeros(py, envs, false).unbind(),
            info: PyArray1::zeros(py, envs * infos, false).unbind(),
            final_screens: PyArray1::zeros(py, finals * screen, false).unbind(),
            final_memory: PyArray1::zeros(py, finals * self.memory_len, false).unbind(),
            final_info: PyArray1::zeros(py, finals * infos, false).unbind(),
        }
    }

    /// Begins episodes in all environments, or in those where `mask` is true.
    #[pyo3(signature = (seeds, mask, batch))]
    fn reset(
        &self,
        py: Python<'_>,
        seeds: Vec<Option<u64>>,
        mask: Option<PyReadonlyArray1<'_, bool>>,
        batch: &Batch,
    ) -> PyResult<()> {
        let mask = mask.map(|mask| mask.as_array().to_vec());
        self.with(py, batch, |vector, batch| vector.reset(&seeds, mask.as_deref(), batch))
    }

    /// Plays a step in each environment.
    fn step(&self, py: Python<'_>, actions: PyReadonlyArray1<'_, i64>, batch: &Batch) -> PyResult<()> {
        let actions = actions.as_slice()?;
        self.with(py, batch, |vector, batch| vector.step(actions, batch))
    }

    /// Begins a step in each of these environments, and returns at once. `recv` returns the results.
    fn send(
        &self,
        py: Python<'_>,
        envs: PyReadonlyArray1<'_, i64>,
        actions: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<()> {
        let number = |index: &i64| {
            usize::try_from(*index).map_err(|_| {
                errors::argument(format!("there is no environment {index}; use a number from 0"))
            })
        };
        let envs = envs.as_slice()?.iter().map(number).collect::<PyResult<Vec<usize>>>()?;
        let actions = actions.as_slice()?;
        self.call(py, |vector| vector.send(&envs, actions))
    }

    /// Waits until `count` environments have finished the steps that `send` began, and writes their results. Returns
    /// the numbers of these environments.
    fn recv<'py>(&self, py: Python<'py>, count: usize, batch: &Batch) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let numbers = self.with(py, batch, |vector, batch| vector.recv(count, batch))?;
        let numbers = numbers.into_iter().map(|index| index as i64).collect();
        Ok(PyArray1::from_vec(py, numbers))
    }

    /// The picture of an environment: an array of rows, columns, and the three colours red, green and blue.
    fn screen<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let (shape, pixels) = self.call(py, |vector| {
            vector.with_core(index, |core, _| {
                let frame = core.frame();
                ([frame.height as usize, frame.width as usize, 3], frame.to_rgb())
            })
        })?;
        PyArray1::from_vec(py, pixels).reshape(shape)
    }

    /// The emulator of an environment, for everything except steps. `rom` is the current path of the ROM.
    fn emulator(&self, py: Python<'_>, index: usize, rom: PathBuf) -> PyResult<Core> {
        // While a call of the emulator uses the environment's core, the environment has the spare core instead.
        let spare = self.call(py, |vector| {
            // Check the index before a core is opened.
            vector.with_core(index, |_, _| ())?;
            Ok(framewire_libmgba::Core::open(&rom)?)
        })?;
        Ok(Core::of_environment(spare, self.symbols.clone(), self.vector.clone(), index))
    }

    /// The path of the ROM.
    fn rom(&self, py: Python<'_>) -> PyResult<PathBuf> {
        self.call(py, |vector| Ok(vector.task().rom().to_owned()))
    }

    /// SHA-256 of the state of each console, without its sound unit.
    fn hashes(&self, py: Python<'_>) -> PyResult<Vec<[u8; 32]>> {
        self.call(py, framewire_vecenv::VectorEnv::hashes)
    }

    /// The state of each environment, or of those where `mask` is true. A state has everything that the next steps
    /// depend on.
    fn save<'py>(
        &self,
        py: Python<'py>,
        mask: Option<PyReadonlyArray1<'_, bool>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let mask = mask.map_or_else(|| vec![true; self.num_envs], |mask| mask.as_array().to_vec());
        let states = self.call(py, |vector| vector.save(&mask))?;
        Ok(states.into_iter().map(|state| Some(PyBytes::new(py, &state?))).collect())
    }

    /// Loads saved states into the environments. An environment whose state is `None` does not change.
    fn restore(&self, py: Python<'_>, states: Vec<Option<Vec<u8>>>) -> PyResult<()> {
        let states: Vec<Option<&[u8]>> = states.iter().map(Option::as_deref).collect();
        self.call(py, |vector| vector.restore(&states))
    }

    /// Frees the cores.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *self.vector.lock() = None);
    }
}

const CLOSED: &str = "the environments are closed; make new ones";

const BUSY: &str = "another thread is using these environments; use them from one thread at a time";

impl VectorEnv {
    /// Calls `act` with the vector, without the interpreter's lock.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        act: impl Send + FnOnce(&mut framewire_vecenv::VectorEnv) -> Result<T, framewire_vecenv::Error>,
    ) -> PyResult<T> {
        py.detach(|| self.vector.lock().as_mut().map(act))
            .ok_or_else(|| errors::argument(CLOSED))?
            .map_err(errors::of_env)
    }

    /// Like `call`, with the slices of a batch.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        batch: &Batch,
        act: impl Send
        + FnOnce(
            &mut framewire_vecenv::VectorEnv,
            framewire_vecenv::Batch<'_>,
        ) -> Result<T, framewire_vecenv::Error>,
    ) -> PyResult<T> {
        let refused = |error| match error {
            BorrowError::AlreadyBorrowed => errors::argument(BUSY),
            other => other.into(),
        };
        macro_rules! slices {
            ($($name:ident),*) => {{
                $(let mut $name = batch.$name.bind(py).try_readwrite().map_err(refused)?;)*
                let arrays = framewire_vecenv::Batch { $($name: $name.as_slice_mut()?),* };
                self.call(py, |vector| act(vector, arrays))
            }};
        }
        slices!(
            screens,
            memory,
            rewards,
            terminated,
            truncated,
            info,
            final_screens,
            final_memory,
            final_info
        )
    }
}
