//! What each operation does to a core.

use std::path::Path;

use framewire_libmgba::{Core, Error, Level, Options, flags};
use framewire_protocol::{Keys, MAX_RANGE, Op, OpError, Status, Value, timeline, watch};

use super::bounds::find_domain;
use super::computed;
use super::errors::{failed, unknown_register};
use super::expressions;
use super::layers;
use super::machine::Machine;
use super::media;
use super::sensors;
use super::watches::OF_RECORDINGS;
use crate::Discontinuity;

type Result<T = Value> = std::result::Result<T, OpError>;

impl Machine {
    /// Performs any operation except `run`, which `go_on` handles.
    pub(super) fn operation(&mut self, op: Op) -> Result {
        self.settle_protection();
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
                done(core.write_range(address, &data))?
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
                int(core.domain_read8(find_domain(core, &domain)?, address).map_err(failed)?)
            }
            Op::DomainRead16 { domain, address } => {
                int(core.domain_read16(find_domain(core, &domain)?, address).map_err(failed)?)
            }
            Op::DomainRead32 { domain, address } => {
                int(core.domain_read32(find_domain(core, &domain)?, address).map_err(failed)?)
            }
            Op::DomainReadRange { domain, address, length } => {
                check_length(length as usize)?;
                let domain = find_domain(core, &domain)?;
                Value::Bytes(core.domain_read_range(domain, address, length as usize).map_err(failed)?)
            }
            Op::DomainWrite8 { domain, address, value } => {
                done(core.domain_write8(find_domain(core, &domain)?, address, value))?
            }
            Op::DomainWrite16 { domain, address, value } => {
                done(core.domain_write16(find_domain(core, &domain)?, address, value))?
            }
            Op::DomainWrite32 { domain, address, value } => {
                done(core.domain_write32(find_domain(core, &domain)?, address, value))?
            }

            Op::ReadRegister { register } => {
                int(core.read_register(&register).ok_or_else(|| unknown_register(core, &register))?)
            }
            Op::WriteRegister { register, value } => {
                if !core.write_register(&register, value) {
                    return Err(unknown_register(core, &register));
                }
                Value::None
            }

            Op::GetKeys {} => int(core.keys()),
            Op::GetKey { key } => match key {
                0..=9 => int(core.keys() >> key & 1),
                _ => return Err(OpError::bad_argument(format!("key is {key}; use 0 to 9"))),
            },
            Op::SetKeys { keys } => {
                self.set_keys(check_keys(keys)?);
                Value::None
            }
            Op::AddKeys { keys } => {
                let keys = check_keys(keys)?;
                // Ends holds and timelines of these keys, which would release the keys later.
                self.release(keys, 0);
                self.core.add_keys(keys);
                Value::None
            }
            Op::ClearKeys { keys } => {
                self.clear_keys(check_keys(keys)?);
                Value::None
            }
            Op::HoldKeys { keys, frames } => {
                let change = self.keypad.hold(check_keys(keys)?, frames)?;
                self.apply(change);
                Value::None
            }

            Op::PlayKeys { steps } => int(self.play(timeline::decode(&steps)?)?),
            Op::AppendKeys { steps } => {
                let (id, frames, change) = self.keypad.append(timeline::decode(&steps)?)?;
                self.apply(change);
                Value::List(vec![Value::Text(id.to_string()), Value::Text(frames.to_string())])
            }
            Op::CancelKeys { id } => Value::Bool(self.cancel_keys(id)),
            Op::Timeline { id } => self.keypad.describe(id)?,

            Op::SaveState { flags } => Value::Bytes(core.save_state(flags.into()).map_err(failed)?),
            Op::LoadState { data, flags } => {
                let flags = self.load_flags(flags);
                let loaded = self.core.load_state(&data, flags);
                self.loaded(loaded, Discontinuity::State)?
            }
            Op::SaveStateFile { path, flags } => {
                accepted(core.save_state_file(Path::new(&path), flags.into()))?
            }
            Op::LoadStateFile { path, flags } => {
                let flags = self.load_flags(flags);
                let loaded = self.core.load_state_file(Path::new(&path), flags);
                self.loaded(loaded, Discontinuity::State)?
            }
            Op::SaveStateSlot { slot, flags } => accepted(core.save_state_slot(slot, flags.into()))?,
            Op::LoadStateSlot { slot, flags } => {
                let flags = self.load_flags(flags);
                let loaded = self.core.load_state_slot(slot, flags);
                self.loaded(loaded, Discontinuity::State)?
            }

            Op::LoadFile { path } => {
                let loaded = core.load_file(Path::new(&path));
                self.loaded(loaded, Discontinuity::Game)?
            }
            Op::LoadRom { path } => self.load_rom(Path::new(&path))?,
            // When a replay ends, it loads the state from before the replay. The save in that state would overwrite a
            // save file that was loaded during the replay.
            Op::LoadSaveFile { path, temporary } => {
                self.check_may_change("save files")?;
                let path = Path::new(&path);
                if temporary {
                    self.saves.load_temporary(&mut self.core, path)?;
                } else {
                    self.saves.load(&mut self.core, path)?;
                }
                Value::Bool(true)
            }
            Op::AutoloadSave {} => {
                self.check_may_change("save files")?;
                self.saves.autoload(&mut self.core).map(|()| Value::Bool(true))?
            }

            Op::Reset {} => {
                self.reset();
                Value::None
            }
            Op::Step {} => {
                self.check_may_change("single steps")?;
                self.core.step();
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
            Op::SetSpeed { thousandths } => self.run.set_speed(thousandths).map(|()| Value::None)?,
            Op::Advance { frames } => int(self.advance(frames)),
            Op::Rewind { frame, line } => int(self.rewind(line, frame)?),
            Op::Lockstep { timeout } => self.run.set_lockstep(timeout).map(|()| Value::None)?,

            Op::Screenshot {} => Value::Bytes(media::png(core)?),
            Op::ScreenshotFile { path } => done(core.screenshot_file(Path::new(&path)))?,

            Op::ConsoleLog { message } => self.log(Level::Info, &message),
            Op::ConsoleWarn { message } => self.log(Level::Warn, &message),
            Op::ConsoleError { message } => self.log(Level::Error, &message),

            Op::Cheats {} => {
                self.cheats.drop_if_removed(core);
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
                self.cheats.enable(&mut self.core, id, enabled).map(|()| Value::None)?
            }
            Op::RemoveCheat { id } => {
                self.check_may_change("cheats")?;
                self.cheats.remove(&mut self.core, id).map(|()| Value::None)?
            }

            Op::Sensors {} => sensors::list(core),
            Op::SetSensor { sensor, thousandths } => {
                self.check_may_change("sensors")?;
                sensors::set(&mut self.core, &sensor, thousandths).map(|()| Value::None)?
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
                // If the code loaded a state with the same frame counter, this is not detected.
                if self.core.frame_counter() != before {
                    self.discontinue(Discontinuity::State);
                }
                reply?
            }

            Op::Watch { id, every, flags, ranges } => {
                if flags & watch::FLAG_KEYS != 0
                    && let Some(name) = self.frozen.first()
                {
                    return Err(OpError::new(Status::Busy, computed::not_recorded(name)));
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
            Op::ReadAt { address, length } => {
                check_length(length as usize)?;
                Value::Bytes(computed::read_at(core, &address, length)?)
            }
            Op::WriteAt { address, data } => {
                check_length(data.len())?;
                int(computed::write_at(core, &address, &data)?)
            }
            Op::Freeze { name, kind, address, data } => {
                self.check_may_change("writes to memory")?;
                self.frozen.add(&mut self.core, name, kind, &address, data).map(|()| Value::None)?
            }
            Op::Unfreeze { name } => Value::Bool(self.frozen.remove(&name)),
            Op::Frozen {} => self.frozen.list(),
            Op::Run { .. } => return Err(OpError::failed("`run` was not begun")),
        })
    }

    /// Refuses to begin a recording or a replay while something is in effect that recordings do not contain, such as a
    /// cheat.
    fn check_recordable(&mut self) -> Result<()> {
        self.cheats.drop_if_removed(&mut self.core);
        let problem = if let Some(problem) = self.cheats.recording_problem() {
            problem
        } else if let Some(sensor) = sensors::not_at_rest(&self.core) {
            format!(
                "the sensor {sensor} is not 0, and recordings do not hold sensors; set all of them to 0 first"
            )
        } else if let Some(layer) = layers::hidden(&self.core) {
            format!("the layer {layer} is off, and recordings do not hold layers; switch all layers on first")
        } else if let Some(problem) = self.frozen.recording_problem() {
            problem
        } else {
            return Ok(());
        };
        Err(OpError::new(Status::Busy, problem))
    }

    /// Fails if the game is being recorded or replayed. In the error, `what` names the thing that cannot be changed,
    /// such as `cheats`. For single steps and frozen values, the script for a stock mGBA uses the same text.
    fn check_may_change(&mut self, what: &str) -> Result<()> {
        self.cheats.drop_if_removed(&mut self.core);
        if self.watches.has_recording_or_replay() {
            let message = format!(
                "the game is being recorded or replayed, and recordings do not hold {what}; end that first"
            );
            return Err(OpError::new(Status::Busy, message));
        }
        Ok(())
    }

    /// The flags for loading a state. If the state is loaded together with its save, this save replaces the cartridge's
    /// save, except during a replay. Recordings are also an exception, because their watches look like those of
    /// replays. When a replay ends, it loads the state from before the replay. If the save of another state hid the
    /// cartridge's save at that time, the state from before the replay does not contain the cartridge's save, so the
    /// replay could not restore it. For states that scripts load, [`Machine::settle_protection`] does the same.
    fn load_flags(&self, flags: u8) -> u32 {
        let keep = if self.watches.has_recording_or_replay() { 0 } else { flags::KEEP_SAVE };
        u32::from(flags) | keep
    }

    /// The result of an operation that loads a state or a game. If it succeeded, reports the discontinuity.
    fn loaded(&mut self, loaded: std::result::Result<(), Error>, what: Discontinuity) -> Result {
        if loaded.is_ok() {
            self.discontinue(what);
        }
        accepted(loaded)
    }

    /// Loads a ROM and resets the console. For a ROM of the other console, this creates a new core.
    fn load_rom(&mut self, path: &Path) -> Result {
        match self.core.load_file(path) {
            Ok(()) => {}
            Err(Error::OtherPlatform { .. }) => {
                let Options { patching, hardware } = self.core.options().clone();
                let hardware = hardware.for_other_game(self.bios_of_other_console());
                let options = Options { patching, hardware };
                let mut other = Core::open_with(path, &options).map_err(failed)?;
                other.set_clock(self.core.clock());
                other.set_keys(self.core.keys());
                other.adopt_save_type(&self.core);
                // The save type takes effect here. If the save file were loaded with another type, it could get longer.
                other.reset();
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

    fn log(&mut self, level: Level, message: &str) -> Value {
        (self.console)(level, message);
        Value::None
    }

    fn reset(&mut self) {
        self.core.reset();
        self.discontinue(Discontinuity::Reset);
    }
}

fn int(value: impl Into<i64>) -> Value {
    Value::Int(value.into())
}

/// The result of an operation that returns nothing.
fn done(result: std::result::Result<(), Error>) -> Result {
    result.map(|()| Value::None).map_err(failed)
}

/// The result of an action: `true` if it succeeded. If it failed, mGBA's script interface returns only `false`; this
/// function returns an error with the reason.
fn accepted(result: std::result::Result<(), Error>) -> Result {
    result.map(|()| Value::Bool(true)).map_err(failed)
}

fn check_length(length: usize) -> Result<()> {
    if length > MAX_RANGE as usize {
        return Err(OpError::bad_argument(format!("length is {length}; use 0 to {MAX_RANGE} bytes")));
    }
    Ok(())
}

pub(super) fn check_keys(keys: u16) -> Result<u16> {
    Keys::from_mask(keys)
        .map(Keys::mask)
        .ok_or_else(|| OpError::bad_argument(format!("keys is {keys}; use a mask of 0 to {}", Keys::MASK)))
}
