//! A core in this process, owned by a thread of its own.

#[cfg(target_os = "linux")]
mod bounds;
mod channel;
mod clock;
mod guest;
mod keys;
mod machine;
mod memory;
mod pace;
mod perform;
mod run;
mod saves;
mod shared;
mod taps;
mod watchdog;
mod watches;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use framewire_libmgba::{Core, Level};
use framewire_protocol::Batch;
use tokio::sync::broadcast;

use crate::{
    Audio, Clock, Emulator, EmulatorError, Event, Kind, Pending, PictureOf, Responder, Run, State, Video,
    Watch, WatchRequest,
};
use guest::{Bell, Guest};
use machine::Machine;
pub use pace::{Speed, SpeedError};
use saves::Saves;
use shared::Shared;
use worker::Worker;

/// Most batches that wait for the core at once.
const CAPACITY: usize = 4096;
/// How long a thread has to end before it is left to itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// How much longer it has to write the game's save.
const DISK: Duration = Duration::from_secs(20);

/// Where a ROM comes from.
#[derive(Debug, Clone)]
pub enum Rom {
    /// A file; saves and states lie next to it, and its battery save is loaded, and written when the game changes it.
    File(PathBuf),
    /// Bytes; saves and states are kept until the core is gone.
    Bytes(&'static [u8]),
}

/// Takes the lines that scripts and the console operations write.
pub type Console = Box<dyn FnMut(Level, &str) + Send>;

/// How an embedded emulator starts.
pub struct Config {
    /// The game.
    pub rom: Rom,
    /// How fast it runs.
    pub speed: Speed,
    /// Whether it waits before its first frame for someone to let it go on.
    pub paused: bool,
    /// What the console's clock goes by.
    pub clock: Clock,
    /// Lua scripts to load into it.
    pub scripts: Vec<PathBuf>,
    /// Makes a console, one for the operations and one for the scripts.
    pub console: fn() -> Console,
}

/// Why an embedded emulator could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ROM or a script cannot be used.
    #[error(transparent)]
    Core(#[from] framewire_libmgba::Error),
    /// The core cannot run this fast or slowly.
    #[error(transparent)]
    Speed(#[from] SpeedError),
    /// The system gave no thread.
    #[error("no thread for the core")]
    Thread(#[from] std::io::Error),
    /// The channel cannot be made.
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
    /// Somebody began to look: give the picture as it is.
    Show,
    Stop,
}

/// The core with its game, reset, and its scripts loaded.
fn machine(config: &Config) -> Result<Machine, StartError> {
    let speed = config.speed.checked()?;
    let mut core = match &config.rom {
        Rom::File(path) => Core::open(path)?,
        Rom::Bytes(bytes) => Core::from_bytes(bytes)?,
    };
    let shared = Shared::new(speed);
    let mut saves = Saves::start(&shared, config.console)?;
    if matches!(config.rom, Rom::File(_)) {
        saves.autoload_at_start(&mut core);
    }
    core.reset();
    let mut console = (config.console)();
    core.rom_problems().iter().for_each(|problem| console(Level::Warn, problem));
    if !config.scripts.is_empty() {
        core.attach_scripts((config.console)())?;
    }
    for script in &config.scripts {
        core.load_script(script)?;
    }
    Ok(Machine::new(core, saves, speed, config.paused, config.clock, console, shared))
}

/// An embedded emulator. Dropping it stops the core; a script in it that does not end is left behind with its thread.
pub struct Embedded {
    jobs: Sender<Job>,
    /// Wakes the thread where it waits for more than jobs.
    bell: Bell,
    shared: Arc<Shared>,
    /// Is disconnected when the thread ends.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
    /// Of the configuration.
    console: fn() -> Console,
}

impl Embedded {
    /// Starts a core on a thread of its own.
    ///
    /// # Errors
    /// If the ROM cannot be read or is none, or if a script fails to load.
    pub fn start(config: Config) -> Result<Embedded, StartError> {
        let machine = machine(&config)?;
        Embedded::with_guest(config, machine, None, Bell::default())
    }

    /// Starts a core on a thread of its own that also serves a channel of this name: one client at a time steps the core,
    /// reads it and sees its picture through shared memory, as `docs/emulator-channel.md` says.
    ///
    /// # Errors
    /// As [`start`](Self::start), and if the channel cannot be made, such as when another program serves it.
    #[cfg(target_os = "linux")]
    pub fn start_on_channel(config: Config, name: &str) -> Result<Embedded, StartError> {
        let mut machine = machine(&config)?;
        let bell = Bell::default();
        let station = channel::Station::open(name, &mut machine, bell.clone())?;
        Embedded::with_guest(config, machine, Some(Box::new(station)), bell)
    }

    fn with_guest(
        config: Config,
        machine: Machine,
        guest: Option<Box<dyn Guest>>,
        bell: Bell,
    ) -> Result<Embedded, StartError> {
        let (jobs, inbox) = bounded(CAPACITY);
        let shared = machine.shared.clone();
        let worker = Worker::new(machine, inbox, guest);
        let (end, ended) = bounded(0);
        let run = move || {
            let _end: Sender<()> = end;
            worker.run();
        };
        let thread = std::thread::Builder::new().name("core".to_owned()).spawn(run)?;
        let (watched, end_of_it) = (shared.clone(), ended.clone());
        let watch_over = move || watchdog::run(&watched, &end_of_it);
        // Its end is seen to by the core's thread.
        drop(std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch_over)?);
        Ok(Embedded { jobs, bell, shared, ended, thread: Some(thread), console: config.console })
    }

    /// Tells the thread, unless it is stuck with a full queue: then it will not hear of it.
    fn tell(&self, job: Job) {
        let _ = self.jobs.send_timeout(job, FAREWELL);
        self.bell.ring();
    }

    /// Changes how fast frames go by.
    ///
    /// # Errors
    /// If it is no speed.
    pub fn set_speed(&self, speed: Speed) -> Result<(), SpeedError> {
        self.tell(Job::Speed(speed.checked()?));
        Ok(())
    }

    /// Stops frames, or lets them go on. Batches are answered all the same.
    pub fn set_paused(&self, paused: bool) {
        self.tell(Job::Pause(paused));
    }
}

impl Emulator for Embedded {
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending {
        let (responder, pending) = Pending::until(deadline);
        match self.jobs.try_send(Job::Batch { batch, deadline, responder }) {
            Ok(()) => {
                self.bell.ring();
                pending
            }
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
            run: match report.going.stopped {
                _ if silent => Run::Stalled,
                true => Run::Paused,
                false => Run::Running,
            },
            speed: Some(report.going.speed.into()),
            lockstep: report.going.lockstep,
            frames_per_second: if silent { 0.0 } else { report.frames_per_second },
            frame: report.frame,
            title: Some(report.title.clone()),
            code: Some(report.code.clone()),
            checksum: Some(report.checksum),
            script_version: None,
            library_version: Some(framewire_libmgba::version().to_string()),
            address: None,
            problem: None,
            save_problem: report.save_problems.first().cloned(),
        }
    }

    fn checksum(&self) -> Option<u32> {
        Some(self.shared.report.lock().checksum)
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.teller.subscribe()
    }

    fn watch(&self, request: WatchRequest) -> Watch {
        self.shared.feeds.watch(&request)
    }

    fn video(&self) -> Option<Video> {
        let video = self.shared.taps.video();
        // If the queue is full, the next frame will show.
        let _ = self.jobs.try_send(Job::Show);
        self.bell.ring();
        Some(video)
    }

    fn picture_of(&self, frame: u32) -> Option<PictureOf> {
        let picture = self.shared.taps.picture_of(frame);
        let _ = self.jobs.try_send(Job::Show);
        self.bell.ring();
        Some(picture)
    }

    fn audio(&self) -> Option<Audio> {
        Some(self.shared.taps.audio())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        // If the queue is full the thread does not sleep, and sees the flag.
        let _ = self.jobs.try_send(Job::Stop);
        self.bell.ring();
        let Some(thread) = self.thread.take() else { return };
        let mut ended = self.ended.recv_timeout(FAREWELL);
        if ended == Err(RecvTimeoutError::Timeout) && self.shared.finishing.load(Relaxed) {
            // A slow disk is given more time than a script that does not end.
            ended = self.ended.recv_timeout(DISK);
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
