use std::path::{self, Path, PathBuf};

use framewire_expression::Formula;
use framewire_game::{Actions, GameFile, Observed, Scenario, Start};
use framewire_libmgba::{Clock, Core, MAX_STATE_SIZE, Patching, Time, flags};
use framewire_protocol::Keys;

use crate::error::Error;
use crate::memory::{Bytes, Memory};
use crate::screen::{Layout, Pictures};

/// The time of a cartridge's clock when the console is switched on: 2000-01-01 00:00 UTC. It is fixed, so episodes do
/// not depend on the present time. If a scenario starts from a savestate that has a time, the clock gets that time.
const CLOCK: Time = Time { unix_ms: 946_684_800_000, zone: Some(0) };

/// The flags for saving and loading states: a state includes the battery save and the cartridge's clock.
pub(crate) const STATE_FLAGS: u32 = flags::SAVEDATA | flags::RTC;

/// A scenario that is ready to run on a ROM. All environments of a vector share it.
#[derive(Debug)]
pub struct Task {
    pub(crate) rom: PathBuf,
    pub(crate) scenario: Scenario,
    pub(crate) layout: Option<Layout>,
    pub(crate) observed: Vec<Reading>,
    pub(crate) reward: Option<Evaluated>,
    pub(crate) terminated: Option<Evaluated>,
    pub(crate) truncated: Option<Evaluated>,
    pub(crate) info: Vec<(String, Evaluated)>,
    /// The state in which episodes begin.
    pub(crate) start: Vec<u8>,
    /// The same state with its picture, for environments that render.
    pub(crate) start_with_picture: Vec<u8>,
    /// The observed pictures that belong to this state; `None` if the picture is not observed.
    pub(crate) start_pictures: Option<Pictures>,
}

/// A formula, and the memory that it reads.
#[derive(Debug)]
pub(crate) struct Evaluated {
    pub(crate) formula: Formula,
    pub(crate) memory: Memory,
}

/// Memory that is observed.
#[derive(Debug)]
pub(crate) enum Reading {
    Value(Evaluated),
    Bytes(Bytes),
}

impl Task {
    /// Prepares the scenario with this name or, without a name, the only scenario in the game file. `rom` replaces the
    /// path in the file.
    ///
    /// # Errors
    /// If the ROM or the scenario's savestate cannot be loaded, if the ROM is not that of the game file, or if the
    /// scenario does not fit its console.
    pub fn new(file: &GameFile, scenario: Option<&str>, rom: Option<&Path>) -> Result<Task, Error> {
        let scenario = file.scenario(scenario).map_err(Error::Argument)?.clone();
        Task::of(file, scenario, rom)
    }

    /// Like [`new`](Task::new), for a scenario that need not be in the file.
    pub(crate) fn of(file: &GameFile, scenario: Scenario, rom: Option<&Path>) -> Result<Task, Error> {
        let Some(rom) = rom.or(file.rom_path.as_deref()) else {
            let path = file.path.display();
            return Err(Error::Argument(format!(
                "{path} names no ROM; give the path of one, or add `rom` to [game]"
            )));
        };
        // The ROM is opened again for each core, perhaps after the program has changed its working directory.
        let rom = &path::absolute(rom).map_err(|source| Error::Read { path: rom.to_owned(), source })?;
        if let Some(expected) = &file.rom {
            expected.check(&framewire_libmgba::read_patched_rom(rom, &Patching::Off)?)?;
        }
        let mut core = open(rom)?;
        begin(&mut core, &scenario.start)?;
        let wrong = |message: String| Error::Scenario { scenario: scenario.name.clone(), message };
        let picture = core.frame();
        let layout =
            scenario.screen.as_ref().map(|screen| Layout::new(screen, picture.width, picture.height));
        let layout = layout.transpose().map_err(wrong)?;
        let start_pictures = layout.as_ref().map(|layout| {
            let mut pictures = Pictures::new(layout);
            pictures.take(layout, core.frame());
            pictures.begin(layout);
            pictures
        });
        let evaluated = |formula: &Formula| {
            let memory = Memory::new(&core, formula.places()).map_err(wrong)?;
            Ok::<_, Error>(Evaluated { formula: formula.clone(), memory })
        };
        let optional = |formula: &Option<Formula>| formula.as_ref().map(evaluated).transpose();
        let observed = scenario.memory.iter().map(|observed| match observed {
            Observed::Value(formula) => evaluated(formula).map(Reading::Value),
            Observed::Bytes(range) => Bytes::new(&core, range).map(Reading::Bytes).map_err(wrong),
        });
        let info = scenario.info.iter().map(|(name, formula)| Ok((name.clone(), evaluated(formula)?)));
        Ok(Task {
            rom: rom.to_owned(),
            observed: observed.collect::<Result<_, Error>>()?,
            reward: optional(&scenario.reward)?,
            terminated: optional(&scenario.terminated)?,
            truncated: optional(&scenario.truncated)?,
            info: info.collect::<Result<_, Error>>()?,
            layout,
            start_pictures,
            start: core.save_state(STATE_FLAGS)?,
            start_with_picture: core.save_state(STATE_FLAGS | flags::SCREENSHOT)?,
            scenario,
        })
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The ROM's absolute path.
    pub fn rom(&self) -> &Path {
        &self.rom
    }

    /// The console's state in which episodes begin, in mGBA's format.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// The shape of the array of bytes that holds the observed picture: [stacked steps,] rows, columns[, colours].
    /// `None` if the picture is not observed.
    pub fn screen_shape(&self) -> Option<Vec<usize>> {
        self.layout.as_ref().map(Layout::shape)
    }

    /// The number of values in the observed picture; 0 if the picture is not observed.
    pub fn screen_len(&self) -> usize {
        self.layout.as_ref().map_or(0, Layout::len)
    }

    /// The number of observed numbers from memory.
    pub fn memory_len(&self) -> usize {
        self.scenario.memory.iter().map(Observed::count).sum()
    }

    /// The names of the values that are reported with observations.
    pub fn info_names(&self) -> impl Iterator<Item = &str> {
        self.info.iter().map(|(name, _)| name.as_str())
    }

    /// The number of different actions. [`keys`](Task::keys) accepts the numbers from 0 to one less than this number.
    pub(crate) fn actions(&self) -> i64 {
        match &self.scenario.actions {
            Actions::List(list) => list.len() as i64,
            Actions::Buttons(buttons) => 1 << buttons.len(),
        }
    }

    /// The keys of an action: an index into a list of actions, or a mask of buttons.
    ///
    /// # Errors
    /// If there is no such action.
    pub fn keys(&self, action: i64) -> Result<u16, Error> {
        match &self.scenario.actions {
            Actions::List(list) => {
                let keys = usize::try_from(action).ok().and_then(|index| list.get(index));
                keys.map(|keys| keys.mask()).ok_or_else(|| {
                    let last = list.len() - 1;
                    Error::Argument(format!("there is no action {action}; use a number from 0 to {last}"))
                })
            }
            Actions::Buttons(buttons) => {
                let all = buttons.iter().copied().collect::<Keys>().mask();
                u16::try_from(action).ok().filter(|mask| mask & !all == 0).ok_or_else(|| {
                    Error::Argument(format!(
                        "{action:#x} is not a mask of buttons; use a number from 0 to {all:#x}"
                    ))
                })
            }
        }
    }

    /// The names of an action's keys, joined by `+`; `.` if the action has no keys.
    ///
    /// # Errors
    /// If there is no such action.
    pub fn action_name(&self, action: i64) -> Result<String, Error> {
        let keys = Keys::from_mask(self.keys(action)?).unwrap_or_default();
        let name = keys.names("+");
        Ok(if name.is_empty() { ".".to_owned() } else { name })
    }

    /// A core in the state in which episodes begin.
    pub(crate) fn core(&self) -> Result<Core, Error> {
        let mut core = open(&self.rom)?;
        core.load_state(&self.start, STATE_FLAGS)?;
        Ok(core)
    }
}

fn open(rom: &Path) -> Result<Core, Error> {
    let mut core = Core::open(rom)?;
    core.reset_with_clock(Clock::Frames(CLOCK));
    Ok(core)
}

/// Brings a core to the start of an episode, and draws the picture of the last frame.
fn begin(core: &mut Core, start: &Start) -> Result<(), Error> {
    match start {
        Start::Inputs(inputs) => {
            for (keys, frames) in inputs {
                core.set_keys(keys.mask());
                (0..*frames).for_each(|_| core.run_frame());
            }
        }
        Start::State(path) => {
            let state = framewire_files::read(path, MAX_STATE_SIZE as u64)
                .map_err(|source| Error::Read { path: path.clone(), source })?;
            core.load_state(&state, STATE_FLAGS)?;
        }
    }
    // There is no picture directly after a state was loaded or the console was switched on. So one frame is run.
    core.set_keys(0);
    core.run_frame();
    Ok(())
}
