//! A core in this process. It runs on its own thread.

mod bounds;
#[cfg(target_os = "linux")]
mod channel;
mod cheats;
mod computed;
mod driver;
mod errors;
mod expressions;
mod history;
mod keys;
mod layers;
mod lease;
mod machine;
mod media;
mod operation;
mod outcomes;
mod pace;
mod perform;
mod run;
mod runs;
mod saves;
mod scripting;
mod sensors;
mod shared;
mod watches;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
#[cfg(target_os = "linux")]
use framewire_channel::Endpoint;
use framewire_libmgba::{Core, Level};
pub use framewire_libmgba::{GbModel, Hardware, Options, Palette, Patching, SaveType};
use framewire_protocol::{Batch, OpError};
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::{
    Audio, Clock, Emulator, EmulatorError, Event, History, Kind, Pending, PendingPicture, Responder, Run,
    State, Video, Watch, WatchRequest,
};
pub use bounds::check as check_access;
pub use cheats::Cheats;
pub use computed::Frozen;
use driver::{Driver, ThreadWaker};
pub use keys::{KeyChange, Keypad};
use lease::{Lease, LentMachine};
use machine::Machine;
pub use pace::{Speed, SpeedError};
use perform::is_quick;
use saves::Saves;
pub use saves::check as check_save;
use scripting::Scripting;
use shared::EmbeddedState;
pub use watches::hash_of_memory;
use worker::Worker;

/// The largest number of batches that wait for the core.
const CAPACITY: usize = 4096;
/// The longest time to wait until the thread ends. After that, the thread is abandoned.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// Additional time to wait while the thread writes the game's save.
const SAVE_LIMIT: Duration = Duration::from_secs(20);

/// The source of a ROM.
#[derive(Debug, Clone)]
pub enum Rom {
    /// A file. Saves and states are next to it. The battery save is loaded, and written when the game changes it.
    File(PathBuf),
    /// Bytes. Saves and states exist only as long as the core.
    Bytes(&'static [u8]),
}

/// A function that receives log lines: those of scripts, those of the operations `console_log`, `console_warn` and
/// `console_error`, and messages about the core and its saves.
pub type Console = Box<dyn FnMut(Level, &str) + Send>;

/// The settings of an embedded emulator.
pub struct Config {
    /// The game.
    pub rom: Rom,
    /// The speed at the start.
    pub speed: Speed,
    /// Whether the game is paused before its first frame.
    pub paused: bool,
    /// The time source of the console's clock.
    pub clock: Clock,
    /// Lua scripts to load.
    pub scripts: Vec<PathBuf>,
    /// The largest amount of memory for the history, in bytes. With 0, no earlier states are kept to go back to.
    pub history: usize,
    /// Changes to the game and to its console.
    pub mods: Mods,
    /// Creates a receiver of log lines. It is called several times: for the operations, for the scripts, and for
    /// messages about the core and its saves.
    pub console: fn() -> Console,
}

impl Config {
    /// The settings for this game at the console's own speed, without scripts, history or changes. Log lines are
    /// dropped.
    pub fn new(rom: Rom) -> Config {
        Config {
            rom,
            speed: Speed::Times(1.0),
            paused: false,
            clock: Clock::default(),
            scripts: Vec::new(),
            history: 0,
            mods: Mods::default(),
            console: || Box::new(|_, _| {}),
        }
    }
}

/// Changes to a game and to its console.
#[derive(Debug, Clone, Default)]
pub struct Mods {
    /// The patch for the ROM, and the model and hardware of the console.
    pub options: Options,
    /// Files of cheats, in mGBA's format.
    pub cheats: Vec<PathBuf>,
    /// The file of the battery save. With `None`, a [`Rom::File`] uses the file next to it, and [`Rom::Bytes`] has no
    /// save file.
    pub save: Option<PathBuf>,
}

/// Why an embedded emulator could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ROM, its patch, the BIOS or a script cannot be used.
    #[error(transparent)]
    Core(#[from] framewire_libmgba::Error),
    /// A file of cheats cannot be used.
    #[error("{0}")]
    Cheats(OpError),
    /// The file of the battery save cannot be used.
    #[error("{0}")]
    Save(OpError),
    /// The speed is out of range.
    #[error(transparent)]
    Speed(#[from] SpeedError),
    /// The system could not create a thread.
    #[error("cannot create a thread for the core")]
    Thread(#[from] std::io::Error),
    /// The channel cannot be created.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Channel(#[from] framewire_channel::Error),
}

/// What other threads send to the core's thread.
enum Job {
    Batch {
        batch: Batch,
        deadline: Instant,
        responder: Responder,
    },
    /// Send the current picture, because there is a new receiver of pictures or a new request for one picture.
    Show,
    Stop,
}

/// Creates the core, loads its game and save, resets it, and loads its scripts and cheats.
fn machine(config: &Config) -> Result<Machine, StartError> {
    let speed = config.speed.checked()?;
    let mut core = match &config.rom {
        Rom::File(path) => Core::open_with(path, &config.mods.options)?,
        Rom::Bytes(bytes) => Core::from_bytes_with(bytes, &config.mods.options)?,
    };
    let shared = EmbeddedState::new(speed, config.history);
    let mut saves = Saves::start(&shared, config.console)?;
    match (&config.mods.save, &config.rom) {
        (Some(file), _) => saves.load_own(&mut core, file).map_err(StartError::Save)?,
        (None, Rom::File(_)) => saves.autoload_at_start(&mut core),
        (None, Rom::Bytes(_)) => {}
    }
    core.reset_with_clock(machine::core_clock(config.clock));
    let mut console = (config.console)();
    core.rom_problems().iter().for_each(|problem| console(Level::Warn, problem));
    let scripting = Scripting::new(config.console);
    if !config.scripts.is_empty() {
        scripting.attach(&mut core)?;
    }
    for script in &config.scripts {
        core.load_script(script)?;
    }
    let mut machine = Machine::new(core, saves, speed, config.paused, config.clock, scripting, shared);
    for file in &config.mods.cheats {
        machine.cheats.load(&mut machine.core, file).map_err(StartError::Cheats)?;
    }
    // The history stores with each state what acts on the game, such as these cheats.
    machine.note_surroundings();
    Ok(machine)
}

/// An embedded emulator. Dropping it stops the core. If the core's thread does not end in time, for example because a
/// script does not end, the thread is abandoned.
pub struct Embedded {
    jobs: Sender<Job>,
    /// The machine, while the core's thread waits and does not need it.
    lent: Arc<LentMachine>,
    /// Wakes the core's thread if it waits in a driver.
    waker: ThreadWaker,
    shared: Arc<EmbeddedState>,
    /// Receives no message. It is disconnected when the core's thread ends.
    ended: Receiver<()>,
    /// The core's thread, until it is stopped.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// [`Config::console`].
    console: fn() -> Console,
}

impl Embedded {
    /// Starts a core on a thread of its own.
    ///
    /// # Errors
    /// If the speed is out of range, if the ROM, its patch, the BIOS, a script, a file of cheats or the save file from
    /// the settings cannot be used, or if the system cannot create a thread.
    pub fn start(config: Config) -> Result<Embedded, StartError> {
        let machine = machine(&config)?;
        Embedded::with_driver(config, machine, None, ThreadWaker::default())
    }

    /// Like [`start`](Self::start), but the core's thread also serves a channel with this name. Through a channel,
    /// which is shared memory, one client at a time runs frames, reads the game's memory and sees its picture.
    /// `docs/emulator-channel.md` describes channels.
    ///
    /// # Errors
    /// Those of [`start`](Self::start). Also if the channel cannot be created, for example because another program uses
    /// its name.
    #[cfg(target_os = "linux")]
    pub fn start_on_channel(config: Config, name: &str) -> Result<Embedded, StartError> {
        let mut machine = machine(&config)?;
        let waker = ThreadWaker::default();
        let host = channel::ChannelHost::open(name, &mut machine, waker.clone())?;
        Embedded::with_driver(config, machine, Some(Box::new(host)), waker)
    }

    /// Checks whether [`start_on_channel`](Self::start_on_channel) can create a channel with this name. Creates nothing.
    ///
    /// # Errors
    /// [`StartError::Channel`].
    #[cfg(target_os = "linux")]
    pub fn check_channel(name: &str) -> Result<(), StartError> {
        Ok(Endpoint::check_name(name)?)
    }

    fn with_driver(
        config: Config,
        machine: Machine,
        driver: Option<Box<dyn Driver>>,
        waker: ThreadWaker,
    ) -> Result<Embedded, StartError> {
        let (jobs, inbox) = bounded(CAPACITY);
        let shared = machine.shared.clone();
        let lent = Arc::<LentMachine>::default();
        let worker = Worker::new(Lease::new(machine, lent.clone()), inbox, driver);
        let (end, ended) = bounded(0);
        let run = move || {
            let _end: Sender<()> = end;
            worker.run();
        };
        let thread = std::thread::Builder::new().name("core".to_owned()).spawn(run)?;
        let (watched, thread_ended) = (shared.clone(), ended.clone());
        let watch_over = move || shared::watch_over(&watched, &thread_ended);
        // The watchdog ends when the core's thread ends, so its handle is not needed.
        drop(std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch_over)?);
        let thread = Mutex::new(Some(thread));
        Ok(Embedded { jobs, lent, waker, shared, ended, thread, console: config.console })
    }

    /// Sends a job to the core's thread, unless the queue is full.
    fn try_send(&self, job: Job) -> Result<(), TrySendError<Job>> {
        self.lent.begin_job();
        let sent = self.jobs.try_send(job);
        if sent.is_err() {
            self.lent.end_job();
        }
        self.waker.wake();
        sent
    }
}

impl Emulator for Embedded {
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending {
        if is_quick(&batch)
            && let Some(mut machine) = self.lent.borrow()
        {
            return Pending::ready(Ok(machine.perform_quick(batch)));
        }
        let (responder, pending) = Pending::until(deadline);
        match self.try_send(Job::Batch { batch, deadline, responder }) {
            Ok(()) => pending,
            Err(TrySendError::Full(_)) => Pending::refused(EmulatorError::Busy(CAPACITY)),
            Err(TrySendError::Disconnected(_)) => Pending::refused(EmulatorError::Stopped),
        }
    }

    fn state(&self) -> State {
        let report = self.shared.report.lock();
        let silent = report.is_silent();
        State {
            kind: Kind::Embedded,
            connected: true,
            run: if silent {
                Run::Stalled
            } else if report.run_state.stopped {
                Run::Paused
            } else {
                Run::Running
            },
            speed: Some(report.run_state.speed),
            lockstep: report.run_state.lockstep,
            frames_per_second: if silent { 0.0 } else { report.frames_per_second },
            frame: report.frame,
            title: Some(report.title.clone()),
            code: Some(report.code.clone()),
            checksum: Some(report.checksum),
            script_version: None,
            library_version: Some(framewire_libmgba::version()),
            library_build: Some(framewire_libmgba::BUILD.to_owned()),
            address: None,
            problem: None,
            save_problem: report.save_problems.first().cloned(),
            patch: report.patch.clone(),
            rom_problems: report.rom_problems.clone(),
        }
    }

    fn checksum(&self) -> Option<u32> {
        Some(self.shared.report.lock().checksum)
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    fn watch(&self, request: WatchRequest) -> Watch {
        self.shared.queues.watch(&request)
    }

    fn video(&self) -> Option<Video> {
        let video = self.shared.outputs.video();
        // If the queue is full, the next frame sends a picture.
        let _ = self.try_send(Job::Show);
        Some(video)
    }

    fn picture_of(&self, frame: u32) -> Option<PendingPicture> {
        let picture = self.shared.outputs.picture_of(frame);
        let _ = self.try_send(Job::Show);
        Some(picture)
    }

    fn audio(&self) -> Option<Audio> {
        Some(self.shared.outputs.audio())
    }

    fn history(&self) -> Option<Arc<History>> {
        Some(self.shared.history.clone())
    }
}

impl Embedded {
    /// Stops the core, which first writes the battery save. After that, batches fail with [`EmulatorError::Stopped`].
    /// Blocks until the core's thread has ended, or until it is abandoned. Does nothing if the core was stopped before.
    pub fn stop(&self) {
        let Some(thread) = self.thread.lock().take() else { return };
        self.shared.stop.store(true, Relaxed);
        // If the queue is full, the thread is awake and sees the flag.
        let _ = self.try_send(Job::Stop);
        let mut ended = self.ended.recv_timeout(STOP_LIMIT);
        if ended == Err(RecvTimeoutError::Timeout) && self.shared.finishing.load(Relaxed) {
            // The thread still writes the save. A slow disk gets more time than a script that does not end.
            ended = self.ended.recv_timeout(SAVE_LIMIT);
        }
        match ended {
            Err(RecvTimeoutError::Timeout) => {
                self.shared.queues.close();
                (self.console)()(
                    Level::Error,
                    "the core does not stop: a script, a request or a write to the disk does not end; the core is abandoned",
                );
            }
            _ => drop(thread.join()),
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.stop();
    }
}
