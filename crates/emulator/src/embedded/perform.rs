//! Operations on a core.

use std::path::Path;
use std::time::Instant;

use framewire_libmgba::{Core, Error, Level, Options};
use framewire_protocol::{Batch, Effect, Keys, MAX_RANGE, Op, OpError, Outcome, Status, Value, run, watch};

use super::bounds;
use super::computed;
use super::errors::{failed, unknown_domain, unknown_register};
use super::expressions;
use super::history::Influence;
use super::layers;
use super::machine::Machine;
use super::media;
use super::runs::{ActiveRun, BegunRun};
use super::saves::Saves;
use super::sensors;
use super::watches::OF_RECORDINGS;
use crate::{Discontinuity, Pending, Responder};

type Result<T = Value> = std::result::Result<T, OpError>;

/// The words of `lua/src/keyed.lua`.
const UNDER_WAY: &str =
    "the frames of the request with this key are still to run; send it again when they were run";

/// Why no value can be frozen during a recording. The script has the same text.
const RECORDED: &str = "a recording is being made, which holds keys and no writes to memory, so its replay would differ; stop \
                        the recording first";

/// A batch whose operations may be done, or its outcome.
enum Begun {
    Progress(Progress),
    Refused(Outcome, Responder),
}

/// A batch that is being performed: what was done of it, and what is left.
pub(super) struct Progress {
    /// The whole batch and its key, if it has one.
    keyed: Option<(String, Batch)>,
    /// The operations that are left.
    left: std::vec::IntoIter<Op>,
    /// How many of the operations that are left need no check of the memory that they are for.
    checked: usize,
    results: Vec<Result>,
    /// Frames that it has run by `advance`.
    advanced: u32,
    /// Receives the outcome of the batch.
    pub responder: Responder,
}

impl Progress {
    /// Whether nobody waits for the outcome, and no key allows to request it again.
    pub fn is_abandoned(&self) -> bool {
        self.keyed.is_none() && self.responder.is_abandoned()
    }

    /// Whether the operations that are left use or change the picture of the last frame.
    pub fn needs_picture(&self) -> bool {
        self.left.as_slice().iter().any(needs_picture)
    }

    fn has_key(&self, key: &str) -> bool {
        self.keyed.as_ref().is_some_and(|(known, _)| known == key)
    }
}

/// Whether an operation uses the picture of the last frame, or stops frames after it.
pub(super) fn needs_picture(op: &Op) -> bool {
    matches!(op, Op::Screenshot {} | Op::SaveState { .. }) || op.info().effect == Effect::Change
}

/// Most operations of a quick batch, and most bytes that each reads.
const QUICK_OPS: usize = 16;
const QUICK_BYTES: u32 = 4096;

/// Whether a batch only reads from the machine, within a few microseconds.
pub(super) fn is_quick(batch: &Batch) -> bool {
    let is_quick = |op: &Op| match op {
        Op::CurrentFrame {}
        | Op::FrameCycles {}
        | Op::Cycles {}
        | Op::Frequency {}
        | Op::GameCode {}
        | Op::GameTitle {}
        | Op::Platform {}
        | Op::Read8 { .. }
        | Op::Read16 { .. }
        | Op::Read32 { .. }
        | Op::DomainRead8 { .. }
        | Op::DomainRead16 { .. }
        | Op::DomainRead32 { .. }
        | Op::ReadRegister { .. }
        | Op::GetKeys {}
        | Op::GetKey { .. } => true,
        Op::ReadRange { length, .. } | Op::DomainReadRange { length, .. } => *length <= QUICK_BYTES,
        _ => false,
    };
    batch.ops.len() <= QUICK_OPS && batch.ops.iter().all(is_quick)
}

impl Machine {
    /// Does a batch that [`is_quick`].
    pub fn perform_quick(&mut self, batch: Batch) -> Outcome {
        let frame = self.core.frame_counter();
        let Batch { ops, unchecked, .. } = batch;
        if !unchecked && let Err((index, error)) = bounds::check_ops(&self.core, &ops) {
            return Outcome::refused(frame, index, error);
        }
        self.run.note_request();
        let mut results = Vec::with_capacity(ops.len());
        for op in ops {
            results.push(self.operation(op));
            if results.last().is_some_and(Result::is_err) {
                break;
            }
        }
        Outcome { frame, results }
    }

    /// Does a batch for a client that cannot wait for a run.
    pub fn perform(&mut self, batch: Batch) -> Outcome {
        if let Some(index) = batch.ops.iter().position(|op| matches!(op, Op::Run { .. })) {
            let error = OpError::new(
                Status::Unsupported,
                "`run` is not available on a channel; its client runs frames one by one and looks at memory itself",
            );
            return Outcome::refused(self.core.frame_counter(), index, error);
        }
        let (responder, _) = Pending::new();
        if let Some(index) = batch.ops.iter().position(|op| matches!(op, Op::Script { .. })) {
            let error = OpError::new(
                Status::Unsupported,
                "`script` is not available on a channel; use POST /v1/script of a server that was started with --allow-script",
            );
            return Outcome::refused(self.core.frame_counter(), index, error);
        }
        match self.begin(batch, responder) {
            Begun::Refused(outcome, _) => outcome,
            Begun::Progress(mut progress) => {
                self.go_on(&mut progress);
                self.finish(progress).0
            }
        }
    }

    /// Does a batch, or begins it if it has runs. The outcome goes to `answers`.
    pub fn submit(&mut self, batch: Batch, responder: Responder) {
        match self.begin(batch, responder) {
            Begun::Refused(outcome, responder) => self.answers.push((responder, outcome)),
            Begun::Progress(progress) => self.proceed(progress),
        }
    }

    /// Continues a batch until its end, or until it waits for a run.
    pub(super) fn proceed(&mut self, mut progress: Progress) {
        match self.go_on(&mut progress) {
            Some(run) => self.runs.add(run, progress),
            None => {
                let (outcome, responder) = self.finish(progress);
                self.answers.push((responder, outcome));
            }
        }
    }

    /// Continues a batch whose run is over.
    pub(super) fn run_is_over(&mut self, mut progress: Progress, result: Result) {
        let failed = result.is_err();
        progress.results.push(result);
        if failed {
            progress.left = Vec::new().into_iter();
        }
        self.proceed(progress);
    }

    /// Checks a batch before any of its operations is done. It is refused if one of them is for memory that does not exist, or
    /// answered if its key says that it was done already.
    fn begin(&mut self, mut batch: Batch, responder: Responder) -> Begun {
        let frame = self.core.frame_counter();
        let key = batch.key.take().filter(|_| batch.effect() == Effect::Change);
        if let Some(key) = &key {
            if self.runs.progresses().any(|progress| progress.has_key(key)) {
                let refusal = OpError::new(Status::Busy, UNDER_WAY);
                return Begun::Refused(Outcome { frame, results: vec![Err(refusal)] }, responder);
            }
            if let Some(known) = self.memory.recall(key, &batch, Instant::now()) {
                let outcome = known.unwrap_or_else(|refusal| Outcome { frame, results: vec![Err(refusal)] });
                return Begun::Refused(outcome, responder);
            }
        }
        let keyed = key.map(|key| (key, batch.clone()));
        let Batch { ops, unchecked, .. } = batch;
        let checked = if unchecked { ops.len() } else { bounds::known(&ops).len() };
        if !unchecked && let Err((index, error)) = bounds::check_ops(&self.core, &ops[..checked]) {
            return Begun::Refused(Outcome::refused(frame, index, error), responder);
        }
        let results = Vec::with_capacity(ops.len());
        let left = ops.into_iter();
        Begun::Progress(Progress { keyed, left, checked, results, advanced: 0, responder })
    }

    /// Does operations in order, up to and including the first that fails, or up to one that waits. Returns what that one
    /// waits for.
    fn go_on(&mut self, progress: &mut Progress) -> Option<ActiveRun> {
        // A batch may end in a frame that another one runs.
        let outer = std::mem::replace(&mut self.advanced, progress.advanced);
        let mut waits = None;
        for op in progress.left.by_ref() {
            if matches!(op, Op::LoadFile { .. } | Op::LoadRom { .. }) {
                self.games = self.games.wrapping_add(1);
            }
            let checked = if progress.checked > 0 { Ok(()) } else { bounds::check_op(&self.core, &op) };
            progress.checked = progress.checked.saturating_sub(1);
            let influence = Influence::of(&op);
            self.before_operation(influence);
            let result = match (checked, op) {
                (Ok(()), Op::Run { steps }) => match self.begin_run(&steps) {
                    Ok(BegunRun::Over(ends)) => Ok(Value::Bytes(run::encode_ends(&ends))),
                    Ok(BegunRun::Active(run)) => {
                        waits = Some(run);
                        break;
                    }
                    Err(error) => Err(error),
                },
                (Ok(()), op) => self.operation(op),
                (Err(error), _) => Err(error),
            };
            self.after_operation(influence);
            let failed = result.is_err();
            progress.results.push(result);
            if failed {
                break;
            }
        }
        self.run.note_request();
        progress.advanced = std::mem::replace(&mut self.advanced, outer);
        waits
    }

    /// The outcome of a batch that was done. It is remembered under its key.
    fn finish(&mut self, progress: Progress) -> (Outcome, Responder) {
        let Progress { keyed, results, responder, .. } = progress;
        let outcome = Outcome { frame: self.core.frame_counter(), results };
        // A batch that was refused and changed nothing may be sent again with the same key.
        if let Some((key, batch)) = keyed
            && outcome.has_changed(&batch.ops)
        {
            self.memory.remember(key, &batch, outcome.clone(), Instant::now());
        }
        (outcome, responder)
    }

    fn operation(&mut self, op: Op) -> Result {
        let core = &mut self.core;
        Ok(match op {
            Op::Echo { data } => Value::Bytes(data),

            Op::CurrentFrame {} => int(core.frame_counter()),
            Op::FrameCycles {} => int(core.frame_cycles()),
            Op::Cycles {} => Value::Int(core.cycles() as i64),
            Op::Frequency {} => int(core.frequency()),
            Op::GameCode {} => Value::Text(core.code()),
            Op::GameTitle {} => Value::Text(core.title()),
            Op::Platform {} => int(core.platform().number()),
            Op::RomSize {} => Value::Int(core.rom_size() as i64),
            Op::Checksum {} => int(core.crc32()),

            Op::Read8 { address } => int(core.read8(address)),
            Op::Read16 { address } => int(core.read16(address)),
            Op::Read32 { address } => int(core.read32(address)),
            Op::ReadRange { address, length } => {
                check_length(length as usize)?;
                Value::Bytes(core.read_range(address, length as usize).map_err(failed)?)
            }
            Op::Write8 { address, value } => {
                core.write8(address, value);
                Value::None
            }
            Op::Write16 { address, value } => {
                core.write16(address, value);
                Value::None
            }
            Op::Write32 { address, value } => {
                core.write32(address, value);
                Value::None
            }
            Op::WriteRange { address, data } => {
                check_length(data.len())?;
                core.write_range(address, &data).map_err(failed)?;
                Value::None
            }

            Op::Domains {} => {
                Value::List(core.domains().iter().map(|domain| Value::Text(domain.name.clone())).collect())
            }
            Op::DomainBase { domain } => int(core.domains()[find_domain(core, &domain)?].base),
            Op::DomainBound { domain } => int(core.domains()[find_domain(core, &domain)?].bound),
            Op::DomainName { domain } => {
                Value::Text(core.domains()[find_domain(core, &domain)?].short_name.clone())
            }
            Op::DomainSize { domain } => int(core.domains()[find_domain(core, &domain)?].size),
            Op::DomainRead8 { domain, address } => {
                let domain = find_domain(core, &domain)?;
                int(core.domain_read8(domain, address).map_err(failed)?)
            }
            Op::DomainRead16 { domain, address } => {
                let domain = find_domain(core, &domain)?;
                int(core.domain_read16(domain, address).map_err(failed)?)
            }
            Op::DomainRead32 { domain, address } => {
                let domain = find_domain(core, &domain)?;
                int(core.domain_read32(domain, address).map_err(failed)?)
            }
            Op::DomainReadRange { domain, address, length } => {
                check_length(length as usize)?;
                let domain = find_domain(core, &domain)?;
                Value::Bytes(core.domain_read_range(domain, address, length as usize).map_err(failed)?)
            }
            Op::DomainWrite8 { domain, address, value } => {
                let domain = find_domain(core, &domain)?;
                core.domain_write8(domain, address, value).map_err(failed)?;
                Value::None
            }
            Op::DomainWrite16 { domain, address, value } => {
                let domain = find_domain(core, &domain)?;
                core.domain_write16(domain, address, value).map_err(failed)?;
                Value::None
            }
            Op::DomainWrite32 { domain, address, value } => {
                let domain = find_domain(core, &domain)?;
                core.domain_write32(domain, address, value).map_err(failed)?;
                Value::None
            }

            Op::ReadRegister { register } => match core.read_register(&register) {
                Some(value) => Value::Int(i64::from(value)),
                None => return Err(unknown_register(core, &register)),
            },
            Op::WriteRegister { register, value } => {
                if !core.write_register(&register, value) {
                    return Err(unknown_register(core, &register));
                }
                Value::None
            }

            Op::GetKeys {} => int(core.keys()),
            Op::GetKey { key } => match key {
                0..=9 => int(core.keys() >> key & 1),
                _ => return Err(OpError::bad_argument("key: 0 to 9 are accepted")),
            },
            Op::SetKeys { keys } => {
                self.set_keys(check_keys(keys)?);
                Value::None
            }
            Op::AddKeys { keys } => {
                let keys = check_keys(keys)?;
                self.release(keys, 0);
                self.core.add_keys(keys);
                Value::None
            }
            Op::ClearKeys { keys } => {
                let keys = check_keys(keys)?;
                self.release(keys, self.core.keys() & keys);
                self.core.clear_keys(keys);
                Value::None
            }
            Op::HoldKeys { keys, frames } => {
                let keys = check_keys(keys)?;
                if keys == 0 {
                    return Err(OpError::bad_argument("`keys` names no key"));
                }
                self.hold_keys(keys, frames)?;
                Value::None
            }

            Op::PlayKeys { steps } => int(self.play_keys(&steps)?),
            Op::AppendKeys { steps } => {
                let (id, frames) = self.append_keys(&steps)?;
                Value::List(vec![Value::Text(id.to_string()), Value::Text(frames.to_string())])
            }
            Op::CancelKeys { id } => Value::Bool(self.cancel_keys(id)),
            Op::Timeline { id } => self.keypad.describe(id)?,

            Op::SaveState { flags } => Value::Bytes(core.save_state(flags.into()).map_err(failed)?),
            Op::LoadState { data, flags } => {
                let loaded = core.load_state(&data, flags.into());
                self.loaded(loaded, Discontinuity::State)?
            }
            Op::SaveStateFile { path, flags } => {
                accepted(core.save_state_file(Path::new(&path), flags.into()))?
            }
            Op::LoadStateFile { path, flags } => {
                let loaded = core.load_state_file(Path::new(&path), flags.into());
                self.loaded(loaded, Discontinuity::State)?
            }
            Op::SaveStateSlot { slot, flags } => accepted(core.save_state_slot(slot, flags.into()))?,
            Op::LoadStateSlot { slot, flags } => {
                let loaded = core.load_state_slot(slot, flags.into());
                self.loaded(loaded, Discontinuity::State)?
            }

            Op::LoadFile { path } => {
                let loaded = core.load_file(Path::new(&path));
                self.loaded(loaded, Discontinuity::Game)?
            }
            Op::LoadRom { path } => self.load_rom(Path::new(&path))?,
            Op::LoadSaveFile { path, temporary: true } => {
                Saves::load_temporary(core, Path::new(&path))?;
                Value::Bool(true)
            }
            Op::LoadSaveFile { path, temporary: false } => {
                self.saves.load(core, Path::new(&path))?;
                Value::Bool(true)
            }
            Op::AutoloadSave {} => {
                self.saves.autoload(core)?;
                Value::Bool(true)
            }

            Op::Reset {} => {
                self.reset();
                Value::None
            }
            Op::Step {} => {
                core.step();
                Value::None
            }
            Op::Pause {} => {
                self.run.paused = true;
                Value::None
            }
            Op::Resume {} => {
                self.run.resume();
                Value::None
            }
            Op::SetSpeed { thousandths } => {
                self.run.set_speed(thousandths)?;
                Value::None
            }
            Op::Advance { frames } => int(self.advance(frames)?),
            Op::Rewind { frame, line } => int(self.rewind(line, frame)?),
            Op::Lockstep { timeout } => {
                self.run.set_lockstep(timeout)?;
                Value::None
            }

            Op::Screenshot {} => Value::Bytes(media::png(core)?),
            Op::ScreenshotFile { path } => {
                core.screenshot_file(Path::new(&path)).map_err(failed)?;
                Value::None
            }

            Op::ConsoleLog { message } => {
                (self.console)(Level::Info, &message);
                Value::None
            }
            Op::ConsoleWarn { message } => {
                (self.console)(Level::Warn, &message);
                Value::None
            }
            Op::ConsoleError { message } => {
                (self.console)(Level::Error, &message);
                Value::None
            }

            Op::Cheats {} => {
                self.cheats.follow(core);
                self.cheats.list()
            }
            Op::AddCheat { name, kind, codes, enabled } => {
                self.check_may_change("cheats")?;
                int(self.cheats.add(&mut self.core, &name, &kind, &codes, enabled)?)
            }
            Op::LoadCheats { path } => {
                self.check_may_change("cheats")?;
                Value::Int(self.cheats.load(&mut self.core, Path::new(&path))? as i64)
            }
            Op::EnableCheat { id, enabled } => {
                self.check_may_change("cheats")?;
                self.cheats.enable(&mut self.core, id, enabled)?;
                Value::None
            }
            Op::RemoveCheat { id } => {
                self.check_may_change("cheats")?;
                self.cheats.remove(&mut self.core, id)?;
                Value::None
            }

            Op::Sensors {} => sensors::list(core),
            Op::SetSensor { sensor, thousandths } => {
                self.check_may_change("sensors")?;
                sensors::set(&mut self.core, &sensor, thousandths)?;
                Value::None
            }
            Op::Layers {} => layers::list(core),
            Op::SetLayer { layer, enabled } => {
                if layers::is_of_picture(core, &layer)? {
                    self.check_may_change("layers")?;
                }
                self.core.enable_layer(&layer, enabled);
                Value::None
            }

            Op::Script { code } => {
                self.check_may_change("scripts")?;
                let before = self.core.frame_counter();
                let reply = self.scripting.run(&mut self.core, &code);
                // A state of this same frame is not detected.
                if self.core.frame_counter() != before {
                    self.discontinue(Discontinuity::State);
                }
                reply?
            }

            Op::Watch { id, every, flags, ranges } => {
                if flags & watch::FLAG_KEYS != 0
                    && let Some(name) = self.frozen.first()
                {
                    return Err(OpError::bad_argument(computed::not_recorded(name)));
                }
                if flags & OF_RECORDINGS != 0 {
                    self.check_recordable()?;
                }
                let base = self.watches.begin(&mut self.core, id, every, flags, &ranges)?;
                self.settle_clock();
                Value::Bytes(base)
            }
            Op::Unwatch { id } => {
                self.watches.end(id);
                Value::None
            }
            Op::Evaluate { expressions } => Value::Bytes(expressions::evaluate(core, &expressions)?),
            Op::ReadAt { address, length } => Value::Bytes(computed::read_at(core, &address, length)?),
            Op::WriteAt { address, data } => {
                check_length(data.len())?;
                int(computed::write_at(core, &address, &data)?)
            }
            Op::Freeze { name, kind, address, data } => {
                if self.watches.belong_to_recording() {
                    return Err(OpError::bad_argument(RECORDED));
                }
                self.frozen.add(core, name, kind, &address, data)?;
                Value::None
            }
            Op::Unfreeze { name } => Value::Bool(self.frozen.remove(&name)),
            Op::Frozen {} => self.frozen.list(),
            Op::Run { .. } => return Err(OpError::failed("`run` was not begun")),
        })
    }

    /// Refuses to begin a recording or a replay while something is in effect that recordings do not hold.
    fn check_recordable(&mut self) -> Result<()> {
        self.cheats.follow(&mut self.core);
        let problem = if self.cheats.any_enabled() {
            "a cheat is on, and recordings do not hold cheats; switch all cheats off first".to_owned()
        } else if let Some(sensor) = sensors::not_at_rest(&self.core) {
            format!(
                "the sensor {sensor} is not 0, and recordings do not hold sensors; set all of them to 0 first"
            )
        } else if let Some(layer) = layers::hidden(&self.core) {
            format!("the layer {layer} is off, and recordings do not hold layers; switch all layers on first")
        } else if let Some(name) = self.frozen.first() {
            format!("the value at {name} is kept (freeze), so a replay would differ; unfreeze it first")
        } else {
            return Ok(());
        };
        Err(OpError::new(Status::Busy, problem))
    }

    /// Refuses to change `what` while the game is recorded or replayed.
    fn check_may_change(&mut self, what: &str) -> Result<()> {
        self.cheats.follow(&mut self.core);
        if self.watches.belong_to_recording() {
            let message = format!(
                "the game is being recorded or replayed, and recordings do not hold {what}; end that first"
            );
            return Err(OpError::new(Status::Busy, message));
        }
        Ok(())
    }

    /// A state or a game was loaded, or was not.
    fn loaded(&mut self, loaded: std::result::Result<(), Error>, what: Discontinuity) -> Result {
        if loaded.is_ok() {
            self.discontinue(what);
        }
        accepted(loaded)
    }

    /// Loads and resets. For a ROM of the other console, this creates a new core.
    fn load_rom(&mut self, path: &Path) -> Result {
        match self.core.load_file(path) {
            Ok(()) => {}
            Err(Error::OtherPlatform { .. }) => {
                let Options { patching, hardware } = self.core.options().clone();
                let options = Options { patching, hardware: hardware.for_other_game() };
                let mut other = Core::open_with(path, &options).map_err(failed)?;
                other.set_clock(self.core.clock());
                sensors::copy(&self.core, &mut other);
                other.adopt_scripts(&mut self.core);
                other.draw_into(self.core.draw_into(None));
                self.saves.leave(&mut self.core);
                self.core = other;
            }
            Err(error) => return Err(failed(error)),
        }
        self.saves.autoload_at_start(&mut self.core);
        self.discontinue(Discontinuity::Game);
        self.reset();
        self.core.rom_problems().iter().for_each(|problem| (self.console)(Level::Warn, problem));
        Ok(Value::Bool(true))
    }

    fn reset(&mut self) {
        self.core.reset();
        self.discontinue(Discontinuity::Reset);
    }
}

fn int(value: impl Into<i64>) -> Value {
    Value::Int(value.into())
}

/// The result of an action without a value. Where mGBA's script interface returns only `false`, this is an error with its
/// reason.
fn accepted(result: std::result::Result<(), Error>) -> Result {
    result.map(|()| Value::Bool(true)).map_err(failed)
}

fn check_length(length: usize) -> Result<()> {
    if length > MAX_RANGE as usize {
        return Err(OpError::bad_argument(format!("length is {length}; use 0 to {MAX_RANGE} bytes")));
    }
    Ok(())
}

fn check_keys(keys: u16) -> Result<u16> {
    Keys::from_mask(keys)
        .map(Keys::mask)
        .ok_or_else(|| OpError::bad_argument(format!("keys is {keys}; use a mask of 0 to {}", Keys::MASK)))
}

fn find_domain(core: &Core, name: &str) -> Result<usize> {
    core.domain_index(name).ok_or_else(|| unknown_domain(core, name))
}
