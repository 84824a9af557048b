use std::collections::HashMap;
use std::path::PathBuf;

use framewire_expression::{Expression, Place, Type};
use framewire_libmgba::{Clock, Time, flags};
use framewire_protocol::sequence;
use framewire_symbols::{SymbolFiles, Symbols};
use framewire_vecenv::Memory;
use numpy::{PyArray1, PyArray3, PyArrayMethods};
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

use crate::errors::{self, argument};

/// One embedded core. `framewire.core` wraps it.
#[pyclass(frozen, module = "framewire._native")]
pub(crate) struct Core {
    inner: Mutex<Inner>,
    symbols: Arc<Symbols>,
}

struct Inner {
    /// `None` after `close`.
    core: Option<framewire_libmgba::Core>,
    /// Numbers that were read by name or address before.
    places: HashMap<String, Memory>,
    /// Conditions and values that were evaluated before.
    expressions: HashMap<String, (Expression, Memory)>,
    values: Vec<i64>,
}

/// Name, address, type, count, and what it means.
type SymbolRow<'a> = (&'a str, u32, Option<&'static str>, u32, Option<&'a str>);

/// Runs frames while these keys are held. If `draws`, the last one is drawn.
fn run(core: &mut framewire_libmgba::Core, frames: u32, keys: u16, draws: bool) {
    core.set_keys(keys);
    for left in (0..frames).rev() {
        core.set_drawing(draws && left == 0);
        core.run_frame();
    }
}

const CLOSED: &str = "the emulator is closed; load the ROM again";

/// Most expressions that are kept compiled.
const MAX_KEPT: usize = 1024;

#[pymethods]
impl Core {
    /// Opens a ROM and starts it. `clock` is the Unix time in milliseconds at which the cartridge's clock starts; the
    /// clock then follows the frames. `None` is the time of this machine.
    #[new]
    #[pyo3(signature = (rom, symbols=Vec::new(), clock=None))]
    fn new(py: Python<'_>, rom: PathBuf, symbols: Vec<PathBuf>, clock: Option<i64>) -> PyResult<Core> {
        let mut files = SymbolFiles::default();
        for path in &symbols {
            files.load(path).map_err(|error| argument(py, errors::with_sources(&error)))?;
        }
        let core = py.detach(|| framewire_libmgba::Core::open(&rom));
        let mut core = core.map_err(|error| errors::of_core(py, &error))?;
        if let Some(unix_ms) = clock {
            core.set_clock(Clock::Frames(Time { unix_ms, zone: Some(0) }));
        }
        let inner = Inner {
            core: Some(core),
            places: HashMap::new(),
            expressions: HashMap::new(),
            values: Vec::new(),
        };
        Ok(Core { inner: Mutex::new(inner), symbols: files.read_for(None) })
    }

    /// The number at a symbol or an address.
    fn read(&self, py: Python<'_>, place: &str, kind: Option<&str>, domain: Option<&str>) -> PyResult<i64> {
        let inner = &mut *self.lock(py);
        let core = inner.core.as_mut().ok_or_else(|| argument(py, CLOSED))?;
        let is_plain = kind.is_none() && domain.is_none();
        if is_plain && let Some(memory) = inner.places.get(place) {
            memory.read(core, &mut inner.values);
            return Ok(inner.values[0]);
        }
        let found = self.place(py, place, kind, domain)?;
        let memory = Memory::new(core, &[found]).map_err(|message| argument(py, message))?;
        memory.read(core, &mut inner.values);
        if is_plain && inner.places.len() < MAX_KEPT {
            inner.places.insert(place.to_owned(), memory);
        }
        Ok(inner.values[0])
    }

    /// Writes a number at a symbol or an address.
    fn write(
        &self,
        py: Python<'_>,
        place: &str,
        value: i64,
        kind: Option<&str>,
        domain: Option<&str>,
    ) -> PyResult<()> {
        let found = self.place(py, place, kind, domain)?;
        let (least, greatest) = found.kind.range();
        if !(least..=greatest).contains(&value) {
            let name = found.kind.name();
            return Err(argument(
                py,
                format!("{value} does not fit {name}; use a number from {least} to {greatest}"),
            ));
        }
        let bytes = value.to_le_bytes();
        let bytes = &bytes[..usize::from(found.kind.size())];
        self.write_at(py, found.address, bytes, domain)
    }

    /// `length` bytes from an address on, or from an offset in a domain.
    fn read_bytes<'py>(
        &self,
        py: Python<'py>,
        address: u32,
        length: usize,
        domain: Option<&str>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = match domain {
            None => self.with(py, |core| core.read_range(address, length))?,
            Some(name) => {
                let index = self.domain(py, name)?;
                self.with(py, |core| core.domain_read_range(index, address, length))?
            }
        };
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes bytes from an address on, or from an offset in a domain.
    fn write_bytes(&self, py: Python<'_>, address: u32, data: &[u8], domain: Option<&str>) -> PyResult<()> {
        self.write_at(py, address, data, domain)
    }

    /// Presses keys one after the other, in addition to those of the mask `held`. Only the last frame is drawn.
    fn play(&self, py: Python<'_>, presses: &str, held: u16) -> PyResult<()> {
        let presses = sequence::parse(presses).map_err(|error| argument(py, error.to_string()))?;
        self.with(py, |core| {
            let last = presses.len().saturating_sub(1);
            for (index, (keys, frames)) in presses.iter().enumerate() {
                run(core, *frames, keys.mask() | held, index == last);
            }
            Ok(())
        })
    }

    /// Address, type and count of a symbol or an address in text.
    fn locate(&self, py: Python<'_>, text: &str) -> PyResult<(u32, Option<&'static str>)> {
        let location = self.symbols.locate(text).map_err(|message| argument(py, message))?;
        Ok((location.address, location.kind.map(Type::name)))
    }

    /// All symbols.
    fn symbols(&self) -> Vec<SymbolRow<'_>> {
        let symbols = self.symbols.iter();
        symbols
            .map(|(name, entry)| {
                let symbol = entry.symbol;
                (name, symbol.address, symbol.kind.map(Type::name), symbol.count, entry.doc.as_deref())
            })
            .collect()
    }

    /// Runs frames while these keys are held. Only the last one is drawn.
    fn advance(&self, py: Python<'_>, frames: u32, keys: u16) -> PyResult<()> {
        self.with(py, |core| {
            run(core, frames, keys, true);
            Ok(())
        })
    }

    /// Runs frames while these keys are held, until an expression is true: the frames that were run, and whether it is.
    fn run_until(&self, py: Python<'_>, expression: &str, most: u32, keys: u16) -> PyResult<(u32, bool)> {
        let inner = &mut *self.lock(py);
        let (expression, memory) = self.compiled(py, inner, expression)?;
        let core = inner.core.as_mut().ok_or_else(|| argument(py, CLOSED))?;
        let values = &mut inner.values;
        Ok(py.detach(|| {
            let mut is_true = |core: &mut framewire_libmgba::Core| {
                memory.read(core, values);
                expression.value(core.frame_counter(), values).is_some_and(|value| value != 0)
            };
            core.set_keys(keys);
            // The frame of the condition is not known before: all are drawn.
            core.set_drawing(true);
            let mut frames = 0;
            while !is_true(core) {
                if frames == most {
                    return (frames, false);
                }
                core.run_frame();
                frames += 1;
            }
            (frames, true)
        }))
    }

    /// The value of an expression; `None` if it has none, for example for a division by zero.
    fn evaluate(&self, py: Python<'_>, expression: &str) -> PyResult<Option<i64>> {
        let inner = &mut *self.lock(py);
        let (expression, memory) = self.compiled(py, inner, expression)?;
        let core = inner.core.as_mut().ok_or_else(|| argument(py, CLOSED))?;
        memory.read(core, &mut inner.values);
        Ok(expression.value(core.frame_counter(), &inner.values))
    }

    /// The picture: rows, columns, and red, green and blue.
    fn screen<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let inner = self.lock(py);
        let core = inner.core.as_ref().ok_or_else(|| argument(py, CLOSED))?;
        let frame = core.frame();
        let shape = [frame.height as usize, frame.width as usize, 3];
        PyArray1::from_vec(py, frame.to_rgb()).reshape(shape)
    }

    /// The picture as a PNG file.
    fn png<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let png = self.with(py, framewire_libmgba::Core::screenshot_png)?;
        Ok(PyBytes::new(py, &png))
    }

    /// The sound since the last call: left and right in turn.
    fn audio<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i16>>> {
        let samples = self.with(py, |core| Ok(core.read_samples()))?;
        Ok(PyArray1::from_vec(py, samples))
    }

    /// Samples per second of `audio`.
    fn sample_rate(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |core| Ok(core.sample_rate()))
    }

    /// The state of the console, with the battery save and the cartridge's clock.
    fn save_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.with(py, |core| core.save_state(flags::SAVEDATA | flags::RTC))?;
        Ok(PyBytes::new(py, &state))
    }

    /// Brings the console into a saved state.
    fn load_state(&self, py: Python<'_>, state: &[u8]) -> PyResult<()> {
        self.with(py, |core| core.load_state(state, flags::SAVEDATA | flags::RTC))
    }

    /// Restarts the game.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |core| {
            core.reset();
            Ok(())
        })
    }

    /// Frames since the game was started or reset.
    fn frame(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |core| Ok(core.frame_counter()))
    }

    /// Title, code, CRC-32 of the ROM, and "GBA" or "GB".
    fn game(&self, py: Python<'_>) -> PyResult<(String, String, u32, &'static str)> {
        self.with(py, |core| {
            let platform = match core.platform() {
                framewire_libmgba::Platform::Gba => "GBA",
                framewire_libmgba::Platform::Gb => "GB",
            };
            Ok((core.title(), core.code(), core.crc32(), platform))
        })
    }

    /// Frees the core.
    fn close(&self, py: Python<'_>) {
        self.lock(py).core = None;
    }
}

impl Core {
    /// Waits for the core without the interpreter's lock, so that a thread that runs frames can finish.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Inner> {
        loop {
            if let Some(inner) = self.inner.try_lock() {
                return inner;
            }
            py.detach(|| drop(self.inner.lock()));
        }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl Send + FnOnce(&mut framewire_libmgba::Core) -> Result<T, framewire_libmgba::Error>,
    ) -> PyResult<T> {
        py.detach(|| self.inner.lock().core.as_mut().map(act))
            .ok_or_else(|| argument(py, CLOSED))?
            .map_err(|error| errors::of_core(py, &error))
    }

    fn write_at(&self, py: Python<'_>, address: u32, data: &[u8], domain: Option<&str>) -> PyResult<()> {
        match domain {
            None => self.with(py, |core| core.write_range(address, data)),
            Some(name) => {
                let index = self.domain(py, name)?;
                self.with(py, |core| core.domain_write_range(index, address, data))
            }
        }
    }

    fn domain(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        let found = self.with(py, |core| {
            let names: Vec<String> = core.domains().iter().map(|domain| domain.name.clone()).collect();
            Ok(core.domain_index(name).ok_or(names))
        })?;
        found.map_err(|names| {
            argument(py, format!("there is no memory domain {name:?}; this game has {}", names.join(", ")))
        })
    }

    fn place(&self, py: Python<'_>, text: &str, kind: Option<&str>, domain: Option<&str>) -> PyResult<Place> {
        let location = self.symbols.locate(text).map_err(|message| argument(py, message))?;
        let kind = match kind {
            None => location.kind.unwrap_or(Type::U8),
            Some(name) => Type::named(name)
                .ok_or_else(|| argument(py, format!("type is {name:?}; use u8, u16, u32, i8, i16 or i32")))?,
        };
        Ok(Place { domain: domain.map(str::to_owned), address: location.address, kind })
    }

    /// An expression that was compiled before, or is now.
    fn compiled(&self, py: Python<'_>, inner: &mut Inner, text: &str) -> PyResult<(Expression, Memory)> {
        if let Some(known) = inner.expressions.get(text) {
            return Ok(known.clone());
        }
        let core = inner.core.as_ref().ok_or_else(|| argument(py, CLOSED))?;
        let expression =
            Expression::parse(text, &*self.symbols).map_err(|error| argument(py, error.to_string()))?;
        let memory = Memory::new(core, expression.places()).map_err(|message| argument(py, message))?;
        if inner.expressions.len() < MAX_KEPT {
            inner.expressions.insert(text.to_owned(), (expression.clone(), memory.clone()));
        }
        Ok((expression, memory))
    }
}
