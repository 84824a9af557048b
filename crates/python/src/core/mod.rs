//! One embedded core, as the class `Core` of the native module.

mod access;
mod convert;
mod options;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use framewire_expression::{Code, Type};
use framewire_libmgba::{Clock, Time, flags, read_cheats};
use framewire_protocol::registers::{ADVANCE, GAME_BOY};
use framewire_protocol::{Access, OpError, sequence, timeline};
use framewire_recording::Start;
use framewire_states::{Console, OnBus, State};
use framewire_symbols::{Game, SymbolFiles, Symbols};
use framewire_vecenv::{Memory, VectorEnv};
use numpy::{PyArray1, PyArray3, PyArrayMethods};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use self::access::{CLOSED, Inner};
use self::convert::{check_parts, encoded, texts, value, written_type};
use self::options::GameOptions;
use crate::errors::{self, Conflict, InvalidData, NotFound, argument};
use crate::machine::{Change, Machine, Observed};
use crate::recorder::{self, Recorder, Replayed};
use crate::store::{check_note, read_recording};

/// One embedded core. `framewire.core` wraps it.
#[pyclass(frozen, module = "framewire._native")]
pub(crate) struct Core {
    inner: Mutex<Inner>,
    /// The symbol files. A core that replaces this one takes them over.
    files: Arc<SymbolFiles>,
    /// The names for this core's game.
    symbols: Arc<Symbols>,
    /// The environment to which the core belongs, if there is one.
    environment: Option<(SharedVector, usize)>,
}

/// A vector of environments, `None` after it was closed.
pub(crate) type SharedVector = Arc<Mutex<Option<VectorEnv>>>;

/// Name, address, type, number of elements, and description of a symbol.
type SymbolRow<'a> = (&'a str, u32, Option<&'static str>, u32, Option<&'a str>);

/// Bank (if the memory has banks) and address on the bus.
type BusPlace = (Option<u32>, u32);

/// A change: index of the expression, frame, tick, old value, new value, and how many changes were lost before it.
type ChangeRow<'py> = (usize, u32, u64, Bound<'py, PyAny>, Bound<'py, PyAny>, u64);

/// The error for a request for the picture, if the last frame was not drawn.
const UNDRAWN: &str = "the last frame was run with draw=False or by an environment without render_mode, so it has no \
                       picture; run the frame you need with draw=True";

/// The largest number of compiled expressions that a core keeps, and the largest number of memory locations.
const MAX_KEPT: usize = 1024;

#[pymethods]
impl Core {
    /// Opens a ROM and starts it. `clock` is the Unix time in milliseconds at which the cartridge's clock starts; the
    /// clock then advances with the frames. With `None`, the clock shows the time of this computer. If `before` is
    /// given, the new core replaces that core and takes over its symbol files; `symbols` is then ignored. The names
    /// in a symbol file that belongs to another game cannot be used.
    #[new]
    fn new(
        py: Python<'_>,
        rom: PathBuf,
        symbols: Vec<PathBuf>,
        clock: Option<i64>,
        options: GameOptions,
        before: Option<PyRef<'_, Core>>,
    ) -> PyResult<Core> {
        let files = if let Some(before) = before {
            before.files.look_again();
            before.files.clone()
        } else {
            let mut files = SymbolFiles::default();
            for path in &symbols {
                files.load(path).map_err(|error| argument(errors::with_sources(&error)))?;
            }
            Arc::new(files)
        };
        let cheats = options.cheats.clone();
        let options = options.of_core()?;
        let core = py.detach(|| framewire_libmgba::Core::open_with(&rom, &options));
        let mut core = core.map_err(errors::of_core)?;
        if let Some(unix_ms) = clock {
            core.reset_with_clock(Clock::Frames(Time { unix_ms, zone: Some(0) }));
        }
        let game = Game { title: core.title(), code: core.code(), checksum: core.crc32() };
        let mut machine = Machine::new(core);
        for path in &cheats {
            // Read the file first: if it cannot be read, the exception must be an OSError.
            read_cheats(path).map_err(errors::of_core)?;
            let loaded = machine.cheats.load(&mut machine.core, path);
            loaded.map_err(errors::of_operation)?;
        }
        let symbols = files.read_for(Some(&game));
        Ok(Core { inner: Mutex::new(Inner::new(machine)), files, symbols, environment: None })
    }

    /// The number at a symbol or an address. With a domain, the address is an offset in it.
    fn read(&self, py: Python<'_>, place: &str, kind: Option<&str>, domain: Option<&str>) -> PyResult<i64> {
        let inner = &mut *self.lock(py);
        let core = &mut inner.machine.as_mut().ok_or_else(|| argument(CLOSED))?.core;
        let is_plain = kind.is_none() && domain.is_none();
        if is_plain && let Some(memory) = inner.places.get(place) {
            memory.read(core, &mut inner.values);
            return Ok(inner.values[0]);
        }
        let found = self.place(place, kind, domain)?;
        let memory = Memory::new(core, &[found]).map_err(argument)?;
        memory.read(core, &mut inner.values);
        if is_plain && inner.places.len() < MAX_KEPT {
            inner.places.insert(place.to_owned(), memory);
        }
        Ok(inner.values[0])
    }

    /// Writes a number at a symbol or an address. With a domain, the address is an offset in it.
    fn write(
        &self,
        py: Python<'_>,
        place: &str,
        value: i64,
        kind: Option<&str>,
        domain: Option<&str>,
    ) -> PyResult<()> {
        let found = self.place(place, kind, domain)?;
        self.write_bytes(py, found.address, &encoded(value, found.kind)?, domain)
    }

    /// Reads `length` bytes, starting at an address, or at an offset in a domain.
    fn read_bytes<'py>(
        &self,
        py: Python<'py>,
        address: u32,
        length: usize,
        domain: Option<&str>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let access = access_to(domain, address, length, false);
        let bytes = match domain {
            None => self.access(py, &access, |machine| machine.core.read_range(address, length))?,
            Some(name) => {
                let index = self.domain(py, name)?;
                self.access(py, &access, |machine| machine.core.domain_read_range(index, address, length))?
            }
        };
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes bytes, starting at an address, or at an offset in a domain.
    fn write_bytes(&self, py: Python<'_>, address: u32, data: &[u8], domain: Option<&str>) -> PyResult<()> {
        let access = access_to(domain, address, data.len(), true);
        match domain {
            None => self.access(py, &access, |machine| machine.core.write_range(address, data)),
            Some(name) => {
                let index = self.domain(py, name)?;
                self.access(py, &access, |machine| machine.core.domain_write_range(index, address, data))
            }
        }
    }

    /// Reads the text at an address. It ends at its end character, or after `length` bytes.
    fn read_text(&self, py: Python<'_>, address: u32, length: usize) -> PyResult<String> {
        let access = access_to(None, address, length, false);
        let bytes = self.access(py, &access, |machine| machine.core.read_range(address, length))?;
        Ok(self.symbols.decode_text(&bytes))
    }

    /// The bytes of a text, as the game has them in memory.
    fn encode_text<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.symbols.encode_text(text);
        Ok(PyBytes::new(py, &bytes.map_err(argument)?))
    }

    /// The names of these addresses. Addresses without a name are left out.
    fn names(&self, addresses: Vec<u32>) -> BTreeMap<u32, String> {
        self.symbols.names_of(&addresses)
    }

    /// The size of a memory domain in bytes.
    fn size(&self, py: Python<'_>, domain: &str) -> PyResult<u32> {
        let index = self.domain(py, domain)?;
        self.call(py, |machine| machine.core.domains()[index].size)
    }

    /// For each of these offsets in a domain: the bank and the address of the byte on the bus. `None` if the bus does
    /// not show the byte.
    fn on_bus(&self, py: Python<'_>, domain: &str, offsets: Vec<u32>) -> PyResult<Vec<Option<BusPlace>>> {
        let console = self.call(py, |machine| match machine.core.platform() {
            framewire_libmgba::Platform::Gba => Console::Gba,
            framewire_libmgba::Platform::Gb => Console::Gb,
        })?;
        let place = |offset| console.on_bus(domain, offset).map(|OnBus { bank, address }| (bank, address));
        Ok(offsets.into_iter().map(place).collect())
    }

    /// Writes a number to memory now and after every frame, until `unfreeze` is called with this name.
    fn freeze(
        &self,
        py: Python<'_>,
        name: String,
        address: &str,
        value: i64,
        kind: Option<&str>,
    ) -> PyResult<()> {
        let (code, own) = Code::parse_address(address, &*self.symbols)
            .map_err(|error| argument(format!("address: {error}")))?;
        let kind = written_type(kind, own)?;
        let data = encoded(value, kind)?;
        self.operate(py, true, |machine| {
            machine.frozen.add(&mut machine.core, name, kind.name().to_owned(), &code.encode(), data)
        })
    }

    /// Ends the `freeze` with this name; with `*`, all of them. Returns whether there was one.
    fn unfreeze(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.call(py, |machine| machine.frozen.remove(name))
    }

    /// The frozen numbers: three texts for each, which are the name, the type, and the bytes as pairs of hex digits.
    fn frozen(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, |machine| texts(machine.frozen.list()))
    }

    /// The cheats: five texts for each, which are the number, `on` or `off`, the kind, the name and the codes.
    fn cheats(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.call(py, |machine| texts(machine.cheats.list()))
    }

    /// Adds a cheat. Returns its number.
    fn add_cheat(&self, py: Python<'_>, name: &str, kind: &str, codes: &str, enabled: bool) -> PyResult<u32> {
        self.operate(py, true, |machine| machine.cheats.add(&mut machine.core, name, kind, codes, enabled))
    }

    /// Adds the cheats of a file. Returns how many it added.
    fn load_cheats(&self, py: Python<'_>, path: PathBuf) -> PyResult<usize> {
        self.operate(py, true, |machine| machine.cheats.load(&mut machine.core, &path))
    }

    /// Switches a cheat on or off.
    fn enable_cheat(&self, py: Python<'_>, id: u32, enabled: bool) -> PyResult<()> {
        self.operate(py, true, |machine| machine.cheats.enable(&mut machine.core, id, enabled))
    }

    /// Removes a cheat; with 0, all of them.
    fn remove_cheat(&self, py: Python<'_>, id: u32) -> PyResult<()> {
        self.operate(py, true, |machine| machine.cheats.remove(&mut machine.core, id))
    }

    /// The registers of the processor by name, unsigned.
    fn registers(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u32>> {
        self.call(py, |machine| {
            let core = &mut machine.core;
            let names: &[&str] = match core.platform() {
                framewire_libmgba::Platform::Gba => &ADVANCE,
                framewire_libmgba::Platform::Gb => &GAME_BOY,
            };
            let value =
                |name: &&str| core.read_register(name).map(|value| ((*name).to_owned(), value as u32));
            names.iter().filter_map(value).collect()
        })
    }

    /// Writes a register of the processor.
    fn write_register(&self, py: Python<'_>, name: &str, value: i32) -> PyResult<()> {
        self.operate(py, false, |machine| {
            if machine.core.write_register(name, value) {
                return Ok(());
            }
            let names = machine.core.registers().join(", ");
            Err(OpError::bad_argument(format!("no register {name:?}; there are {names}")))
        })
    }

    /// Clock cycles since the last reset. A loaded state sets the number to the one in the state.
    fn cycles(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, |machine| machine.core.cycles())
    }

    /// Starts a timeline: presses keys one after another, beginning with the next frame. `presses` is a text such
    /// as `A:2 .:10`. Returns the id of the timeline, and its number of frames.
    fn play(&self, py: Python<'_>, presses: &str) -> PyResult<(u32, u32)> {
        let presses = sequence::parse(presses).map_err(|error| argument(error.to_string()))?;
        let steps = timeline::of_presses(&presses).map_err(|problem| {
            argument(format!("the sequence {problem}; use presses such as \"A:2 .:10 Up+B:30\""))
        })?;
        let played = self.call(py, |machine| machine.play(steps))?;
        played.map_err(|error| Conflict::new_err(error.message))
    }

    /// Ends a timeline; with 0, all of them. Returns whether there was one.
    fn cancel(&self, py: Python<'_>, id: u32) -> PyResult<bool> {
        self.call(py, |machine| machine.cancel(id))
    }

    /// Whether a timeline was cancelled; `None` if it has not ended.
    fn timeline(&self, py: Python<'_>, id: u32) -> PyResult<Option<bool>> {
        let words = self.call(py, |machine| machine.timeline(id))?;
        let words = words.map_err(|error| NotFound::new_err(error.message))?;
        Ok(match texts(words).first().map(String::as_str) {
            None | Some("playing") => None,
            Some(word) => Some(word == "cancelled"),
        })
    }

    /// Holds the keys of `add`, and releases the keys of `clear` that are not in `add`.
    fn set_keys(&self, py: Python<'_>, add: u16, clear: u16) -> PyResult<()> {
        self.call(py, |machine| machine.set_keys(add, clear))
    }

    /// The keys that stay held until they are released, as a mask: the held keys without those of timelines.
    fn lasting_keys(&self, py: Python<'_>) -> PyResult<u16> {
        self.call(py, |machine| machine.lasting_keys())
    }

    /// The timelines that ended since the last call: id, frame, and whether the timeline was cancelled.
    fn take_ended(&self, py: Python<'_>) -> PyResult<Vec<(u32, u32, bool)>> {
        self.call(py, |machine| machine.ended.drain(..).collect())
    }

    /// The address of a symbol, or an address that is given as text.
    fn locate(&self, text: &str) -> PyResult<u32> {
        self.symbols.locate(text).map(|location| location.address).map_err(argument)
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

    /// Runs frames. The last one is drawn if `draw` is true. Other frames are drawn only if a recording needs their
    /// picture.
    fn advance(&self, py: Python<'_>, frames: u32, draw: bool) -> PyResult<()> {
        self.call(py, |machine| machine.run(frames, draw))
    }

    /// Runs frames until an expression is true, but at most `most` frames. Returns the number of frames that were run,
    /// and whether the expression is true.
    fn run_until(&self, py: Python<'_>, expression: &str, most: u32) -> PyResult<(u32, bool)> {
        let inner = &mut *self.lock(py);
        let observed = self.compiled(inner, expression)?;
        let machine = inner.machine()?;
        Ok(py.detach(|| {
            let mut frames = 0;
            while !observed.value(&mut machine.core).is_true() {
                if frames == most {
                    return (frames, false);
                }
                // Any frame can be the last one, so every frame is drawn.
                machine.run_frame(true);
                frames += 1;
            }
            (frames, true)
        }))
    }

    /// The value of an expression; `None` if it has no value, for example after a division by zero.
    fn evaluate<'py>(&self, py: Python<'py>, expression: &str) -> PyResult<Bound<'py, PyAny>> {
        let inner = &mut *self.lock(py);
        let observed = self.compiled(inner, expression)?;
        let machine = inner.machine()?;
        value(py, observed.value(&mut machine.core))
    }

    /// Begins to watch expressions. Returns the id of the watch, and the present values.
    fn watch<'py>(
        &self,
        py: Python<'py>,
        expressions: Vec<String>,
    ) -> PyResult<(u32, Vec<Bound<'py, PyAny>>)> {
        let inner = &mut *self.lock(py);
        let machine = inner.machine()?;
        let observed = expressions
            .iter()
            .map(|text| self.compile(&machine.core, text))
            .collect::<PyResult<Vec<Observed>>>()?;
        let (id, values) = machine.watch(observed);
        Ok((id, values.into_iter().map(|each| value(py, each)).collect::<PyResult<_>>()?))
    }

    /// Takes the oldest change of a watch. If there is no change, runs up to `frames` frames until there is one, and
    /// draws them.
    fn change<'py>(&self, py: Python<'py>, watch: u32, frames: u32) -> PyResult<Option<ChangeRow<'py>>> {
        let found = self.call(py, |machine| {
            let mut found = machine.take_change(watch);
            for _ in 0..frames {
                if found.is_some() {
                    break;
                }
                machine.run_frame(true);
                found = machine.take_change(watch);
            }
            found
        })?;
        let Some((change, missed)) = found else { return Ok(None) };
        let Change { expression, frame, tick, old, new } = change;
        Ok(Some((expression, frame, tick, value(py, old)?, value(py, new)?, missed)))
    }

    /// Ends a watch. After `close`, there are none.
    fn unwatch(&self, py: Python<'_>, watch: u32) {
        let _ = self.call(py, |machine| machine.unwatch(watch));
    }

    /// Begins to keep the sound of each frame. Returns an id for `sound` and `unlisten`.
    fn listen(&self, py: Python<'_>) -> PyResult<u32> {
        self.call(py, |machine| machine.listen())
    }

    /// Takes the oldest chunk of sound. Returns it and how many samples were lost before it. Runs a frame if there is
    /// no chunk. Each sample is two numbers in the chunk: left, then right. Returns `None` after `unlisten`.
    fn sound<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Option<(Bound<'py, PyArray1<i16>>, u64)>> {
        let found = self.call(py, |machine| {
            let taken = machine.take_sound(id);
            if taken.is_some() || !machine.is_listening(id) {
                return taken;
            }
            machine.run_frame(true);
            machine.take_sound(id)
        })?;
        Ok(found.map(|(samples, missed)| (PyArray1::from_vec(py, samples), missed)))
    }

    /// Ends `listen`. After `close`, there is no sound.
    fn unlisten(&self, py: Python<'_>, id: u32) {
        let _ = self.call(py, |machine| machine.unlisten(id));
    }

    /// Begins a recording. `every` is the number of frames from one hash of the picture and the memory to the next.
    fn start_recording(&self, py: Python<'_>, start: &str, every: u32, note: &str) -> PyResult<()> {
        let Ok(start) = start.parse::<Start>() else {
            return Err(argument(format!("start is {start:?}; use \"state\" or \"power-on\"")));
        };
        if every == 0 {
            return Err(argument("every is 0; use a number of frames from 1"));
        }
        check_note(note)?;
        self.check_recordable(py)?;
        self.call(py, |machine| {
            if machine.recorder.is_some() {
                return Err(Conflict::new_err("a recording is being made; stop it first"));
            }
            let begun = Recorder::begin(machine, start, every, note).map(|recorder| {
                machine.recorder = Some(recorder);
            });
            // If the recording could not begin, this restores the clock.
            machine.release_clock();
            begun.map_err(InvalidData::new_err)
        })?
    }

    /// Frames and bytes of the recording, and why it ended; `None` if there is no recording.
    fn recording(&self, py: Python<'_>) -> PyResult<Option<(u64, u64, Option<String>)>> {
        self.call(py, |machine| {
            let recorder = machine.recorder.as_ref()?;
            Some((recorder.frames(), recorder.bytes(), recorder.ended().map(str::to_owned)))
        })
    }

    /// Ends the recording. Returns its file; `None` if there is no recording.
    fn stop_recording<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let file = self.call(py, |machine| {
            let mut recorder = machine.recorder.take()?;
            recorder.end("stopped", Some(&mut machine.core));
            machine.release_clock();
            recorder.into_file()
        })?;
        Ok(file.map(|file| PyBytes::new(py, &file)))
    }

    /// Replays the file of a recording and compares the hashes. With `restore`, the state from before the replay is
    /// loaded again at the end. With `through`, the replay continues after the first difference.
    fn replay(&self, py: Python<'_>, file: &[u8], restore: bool, through: bool) -> PyResult<Replayed> {
        let recording = read_recording(file)?;
        self.check_recordable(py)?;
        self.with(py, |machine| {
            let before = if restore { Some(machine.core.save_state(flags::ALL)?) } else { None };
            let replayed = recorder::replay(machine, &recording, through);
            let restored = before.map_or(Ok(()), |before| machine.core.load_state(&before, flags::ALL));
            machine.release_clock();
            restored.map(|()| replayed)
        })?
    }

    /// The picture: an array of rows, columns, and the three colours red, green and blue.
    fn screen<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let mut inner = self.lock(py);
        let machine = inner.machine()?;
        if machine.has_old_picture() {
            return Err(Conflict::new_err(UNDRAWN));
        }
        let frame = machine.core.frame();
        let shape = [frame.height as usize, frame.width as usize, 3];
        PyArray1::from_vec(py, frame.to_rgb()).reshape(shape)
    }

    /// Samples of sound per second.
    fn sample_rate(&self, py: Python<'_>) -> PyResult<u32> {
        self.call(py, |machine| machine.core.sample_rate())
    }

    /// The state of the console. `parts` is a sum of mGBA's flags that says what the state contains.
    fn save_state<'py>(&self, py: Python<'py>, parts: u32) -> PyResult<Bound<'py, PyBytes>> {
        check_parts(parts)?;
        let state = self.with(py, |machine| machine.core.save_state(parts))?;
        Ok(PyBytes::new(py, &state))
    }

    /// Loads a state into the console. `force` also accepts a state of another game.
    fn load_state(&self, py: Python<'_>, state: &[u8], parts: u32, force: bool) -> PyResult<()> {
        check_parts(parts)?;
        let of_state = |error: framewire_states::StateError| InvalidData::new_err(error.to_string());
        let theirs = State::read(state).map_err(of_state)?;
        let (checksum, title) = self.call(py, |machine| (machine.core.crc32(), machine.core.title()))?;
        let mut own = None;
        if checksum != theirs.checksum() {
            if !force {
                let message = format!(
                    "the state is of {} (checksum {:08x}), and {title} (checksum {checksum:08x}) is running; with force=True it \
                     is loaded all the same, and the game may crash",
                    theirs.title(),
                    theirs.checksum()
                );
                return Err(Conflict::new_err(message));
            }
            // mGBA accepts only states of the running game, so the game's title, code and checksum in the state are
            // replaced with those of the running game.
            let now = self.with(py, |machine| machine.core.save_state(0))?;
            own = Some(theirs.as_of(&State::read(&now).map_err(of_state)?).map_err(of_state)?);
        }
        self.with(py, |machine| {
            machine.core.load_state(own.as_deref().unwrap_or(state), parts)?;
            machine.discontinue("a state was loaded");
            Ok(())
        })
    }

    /// Restarts the game.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |machine| {
            machine.core.reset();
            machine.discontinue("the console was reset");
        })
    }

    /// Frames since the game was started or reset. A loaded state sets the number to the one in the state.
    fn frame(&self, py: Python<'_>) -> PyResult<u32> {
        self.call(py, |machine| machine.core.frame_counter())
    }

    /// Title, code, CRC-32 of the ROM, and "GBA" or "GB".
    fn game(&self, py: Python<'_>) -> PyResult<(String, String, u32, &'static str)> {
        self.call(py, |machine| {
            let core = &machine.core;
            let platform = match core.platform() {
                framewire_libmgba::Platform::Gba => "GBA",
                framewire_libmgba::Platform::Gb => "GB",
            };
            (core.title(), core.code(), core.crc32(), platform)
        })
    }

    /// Frees the core. The core of an environment is not freed, because it belongs to the environment.
    fn close(&self, py: Python<'_>) {
        if self.environment.is_none() {
            self.lock(py).machine = None;
        }
    }
}

impl Core {
    /// The core of an environment. While a call uses the environment's core, the environment has the core `spare`
    /// instead.
    pub(crate) fn of_environment(
        spare: framewire_libmgba::Core,
        symbols: Arc<Symbols>,
        vector: SharedVector,
        index: usize,
    ) -> Core {
        let inner = Inner::new(Machine::new(spare));
        Core { inner: Mutex::new(inner), files: Arc::default(), symbols, environment: Some((vector, index)) }
    }
}

fn access_to(domain: Option<&str>, address: u32, length: usize, write: bool) -> Access<'_> {
    Access { domain, address, length: u32::try_from(length).unwrap_or(u32::MAX), write }
}
