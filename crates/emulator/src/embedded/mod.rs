//! A core in this process, owned by a thread of its own.

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
mod memory;
mod operation;
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
use framewire_libmgba::{Core, Level};
pub use framewire_libmgba::{GbModel, Hardware, Options, Palette, Patching, SaveType};
use framewire_protocol::{Batch, OpError};
use tokio::sync::broadcast;

use crate::{
    Audio, Clock, Emulator, EmulatorError, Event, History, Kind, Pending, PendingPicture, Responder, Run,
    State, Video, Watch, WatchRequest,
};
pub use cheats::Cheats;
pub use computed::Frozen;
use driver::{Driver, ThreadWaker};
pub use keys::{KeyChange, Keypad};
use lease::{Lease, LentMachine};
use machine::Machine;
pub use pace::{Speed, SpeedError};
use perform::is_quick;
use saves::Saves;
use scripting::Scripting;
use shared::EmbeddedState;
pub use watches::hash_of_memory;
use worker::Worker;

/// The largest number of batches that wait for the core.
const CAPACITY: usize = 4096;
/// Longest time for the thread to end. After that it is abandoned.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// Additional time for the thread to write the game's save.
const SAVE_LIMIT: Duration = Duration::from_secs(20);

/// The source of a ROM.
#[derive(Debug, Clone)]
pub enum Rom {
    /// A file. Saves and states are next to it. Its battery save is loaded, and written when the game changes it.
    File(PathBuf),
    /// Bytes. Saves and states exist only as long as the core.
    Bytes(&'static [u8]),
}

/// Receives the lines that scripts and the console operations write.
pub type Console = Box<dyn FnMut(Level, &str) + Send>;

/// The settings of an embedded emulator.
pub struct Config {
    /// The game.
    pub rom: Rom,
    /// Its speed.
    pub speed: Speed,
    /// Whether it is paused before its first frame.
    pub paused: bool,
    /// The time source of the console's clock.
    pub clock: Clock,
    /// Lua scripts to load.
    pub scripts: Vec<PathBuf>,
    /// Bytes of memory that the states of the past may take, to which it can go back; 0 keeps none.
    pub history: usize,
    /// Changes of the game and of its console.
    pub mods: Mods,
    /// Creates a console: one for the operations and one for the scripts.
    pub console: fn() -> Console,
}

/// Changes of a game and of its console.
#[derive(Debug, Clone, Default)]
pub struct Mods {
    /// The patch of the ROM, and the console.
    pub options: Options,
    /// Files of cheats, as mGBA writes them.
    pub cheats: Vec<PathBuf>,
    /// The file of the battery save. Without one, it is the file next to the ROM.
    pub save: Option<PathBuf>,
}

/// Why an embedded emulator could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ROM or a script cannot be used.
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

enum Job {
    Batch {
        batch: Batch,
        deadline: Instant,
        responder: Responder,
    },
    Speed(Speed),
    Pause(bool),
    /// Send the current picture, because there is a new receiver.
    Show,
    Stop,
}

/// Creates the core, loads its game, resets it, and loads its scripts.
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
    core.reset();
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
    Ok(machine)
}

/// An embedded emulator. Dropping it stops the core. If a script in it does not end, its thread is abandoned.
pub struct Embedded {
    jobs: Sender<Job>,
    /// The core while its thread waits.
    lent: Arc<LentMachine>,
    /// Wakes the thread if a driver waits on it.
    waker: ThreadWaker,
    shared: Arc<EmbeddedState>,
    /// Disconnected when the thread ends.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
    /// Creates a console, as in the settings.
    console: fn() -> Console,
}

impl Embedded {
    /// Starts a core on a thread of its own.
    ///
    /// # Errors
    /// If the file cannot be read or is not a ROM, or if a script fails to load.
    pub fn start(config: Config) -> Result<Embedded, StartError> {
        let machine = machine(&config)?;
        Embedded::with_driver(config, machine, None, ThreadWaker::default())
    }

    /// Starts a core on a thread of its own that also serves a channel of this name: one client at a time steps the core,
    /// reads its memory and sees its picture through shared memory, as described in `docs/emulator-channel.md`.
    ///
    /// # Errors
    /// Those of [`start`](Self::start), and if the channel cannot be created, for example because another program serves it.
    #[cfg(target_os = "linux")]
    pub fn start_on_channel(config: Config, name: &str) -> Result<Embedded, StartError> {
        let mut machine = machine(&config)?;
        let waker = ThreadWaker::default();
        let host = channel::ChannelHost::open(name, &mut machine, waker.clone())?;
        Embedded::with_driver(config, machine, Some(Box::new(host)), waker)
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
        let (watched, end_of_it) = (shared.clone(), ended.clone());
        let watch_over = move || shared::watch_over(&watched, &end_of_it);
        // It ends together with the core's thread.
        drop(std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch_over)?);
        Ok(Embedded { jobs, lent, waker, shared, ended, thread: Some(thread), console: config.console })
    }

    /// Sends a job to the thread. The job is dropped if the thread is stuck and its queue stays full.
    fn send(&self, job: Job) {
        self.lent.begin_job();
        if self.jobs.send_timeout(job, STOP_LIMIT).is_err() {
            self.lent.end_job();
        }
        self.waker.wake();
    }

    /// Sends a job to the thread, unless its queue is full.
    fn try_send(&self, job: Job) -> Result<(), TrySendError<Job>> {
        self.lent.begin_job();
        let sent = self.jobs.try_send(job);
        if sent.is_err() {
            self.lent.end_job();
        }
        self.waker.wake();
        sent
    }

    /// Sets the speed.
    ///
    /// # Errors
    /// If the speed is out of range.
    pub fn set_speed(&self, speed: Speed) -> Result<(), SpeedError> {
        self.send(Job::Speed(speed.checked()?));
        Ok(())
    }

    /// Stops frames, or lets them run. Batches are done in both cases.
    pub fn set_paused(&self, paused: bool) {
        self.send(Job::Pause(paused));
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
            speed: Some(report.run_state.speed.into()),
            lockstep: report.run_state.lockstep,
            frames_per_second: if silent { 0.0 } else { report.frames_per_second },
            frame: report.frame,
            title: Some(report.title.clone()),
            code: Some(report.code.clone()),
            checksum: Some(report.checksum),
            script_version: None,
            library_version: Some(framewire_libmgba::version().to_string()),
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
        self.shared.feeds.watch(&request)
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

impl Drop for Embedded {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        // If the queue is full, the thread is awake and sees the flag.
        let _ = self.try_send(Job::Stop);
        let Some(thread) = self.thread.take() else { return };
        let mut ended = self.ended.recv_timeout(STOP_LIMIT);
        if ended == Err(RecvTimeoutError::Timeout) && self.shared.finishing.load(Relaxed) {
            // A slow disk gets more time than a script that does not end.
            ended = self.ended.recv_timeout(SAVE_LIMIT);
        }
        match ended {
            Err(RecvTimeoutError::Timeout) => {
                self.shared.feeds.close();
                (self.console)()(
                    Level::Error,
                    "the core does not stop; it is abandoned because a script, a request or a write to the disk does not end",
                );
            }
            _ => drop(thread.join()),
        }
    }
}
