//! Starts an emulator that runs a script, for measurements.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_lab::{Framewire, StockMgba, StockOptions, TextClient, paths, ports};
use tempfile::TempDir;

use crate::frames;

/// A simple script of the kind that the load-test study of 2025 used (docs/study-origins.md).
const STUDY: &str = include_str!("study.lua");
/// The pause after the start. In its first seconds, an emulator does extra work that would disturb the measurement.
const SETTLING: Duration = Duration::from_secs(3);
/// How many times a start is tried. mGBA sometimes crashes while its window opens, with either script or without one.
const TRIES: u32 = 3;
/// The longest wait for a first reply.
const START: Duration = Duration::from_secs(20);
/// The time between two attempts to get an answer.
const RETRY: Duration = Duration::from_millis(5);

/// Which script an emulator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// A script of the kind that the study of 2025 used.
    Study,
    /// Framewire's script.
    Ours,
}

impl Script {
    /// Both scripts, in the order in which they are measured.
    pub const BOTH: [Script; 2] = [Script::Study, Script::Ours];

    /// Its name, which is a part of the names of a study's steps.
    pub fn name(self) -> &'static str {
        match self {
            Script::Study => "study",
            Script::Ours => "framewire",
        }
    }

    /// The prefix of an echo request. The script answers with the rest of the message.
    pub fn echo_prefix(self) -> &'static str {
        match self {
            Script::Study => "",
            Script::Ours => "framewire.echo,",
        }
    }
}

/// Where a script runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A stock mGBA in its window under Xvfb.
    Window,
    /// libmgba without a window, at the speed of the real console.
    Headless,
}

/// An emulator that runs a script. Dropping this value ends the emulator.
#[derive(Debug)]
pub struct Setup {
    emulator: Emulator,
    /// The script that the emulator runs.
    pub script: Script,
    /// The address on which the script listens.
    pub address: SocketAddr,
    /// The file that holds the emulator's frame number.
    pub frames: PathBuf,
    _files: TempDir,
}

#[derive(Debug)]
enum Emulator {
    Window(Box<StockMgba>),
    Headless(Framewire),
}

impl Setup {
    /// Starts the emulator and loads the script. Nothing connects to the script yet.
    pub fn start(place: Place, script: Script) -> anyhow::Result<Setup> {
        let files = TempDir::with_prefix("framewire-lab-").context("no folder for temporary files")?;
        let path = match script {
            Script::Ours => paths::script(),
            Script::Study => {
                let path = files.path().join("study.lua");
                fs::write(&path, STUDY).with_context(|| format!("cannot write {}", path.display()))?;
                path
            }
        };
        let rom = files.path().join("demo.gba");
        fs::copy(paths::rom(), &rom).context("cannot copy the demo game")?;
        let (counter, frames) = frames::counter(files.path());
        let (emulator, address) = match place {
            Place::Window => {
                let options =
                    StockOptions::new(&rom).opengl().lua(&counter).script(&path).port(ports::free());
                let mgba = StockMgba::start(&options)?;
                let address = mgba.address();
                (Emulator::Window(Box::new(mgba)), address)
            }
            Place::Headless => {
                let args = ["--quiet", "--rom", &rom.to_string_lossy()];
                let (host, address) = Framewire::host_script(files.path(), &path, &counter, &args)?;
                (Emulator::Headless(host), address)
            }
        };
        Ok(Setup { emulator, script, address, frames, _files: files })
    }

    /// Starts the emulator, if necessary in several attempts. Waits for the script's first answer, and then for a few
    /// more seconds.
    pub fn settled(place: Place, script: Script) -> anyhow::Result<Setup> {
        let mut tries = 1;
        loop {
            match Setup::start(place, script).and_then(Setup::settle) {
                Err(error) if tries < TRIES => eprintln!("  trying again: {error:#}"),
                result => return result,
            }
            tries += 1;
        }
    }

    fn settle(self) -> anyhow::Result<Setup> {
        if self.first_answer(START).is_none() {
            bail!("the script does not answer within {START:?}");
        }
        std::thread::sleep(SETTLING);
        Ok(self)
    }

    /// Connects new clients, one after another, until one gets a correct answer. Returns how long this took, or `None`
    /// if there was no correct answer within `limit`.
    pub fn first_answer(&self, limit: Duration) -> Option<Duration> {
        let start = Instant::now();
        while start.elapsed() < limit {
            let left = limit.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
            if self.client(left).and_then(|mut client| client.echo(self.script.echo_prefix())).is_ok() {
                return Some(start.elapsed());
            }
            std::thread::sleep(RETRY);
        }
        None
    }

    /// Connects to the script within `limit`, which is also the longest wait for a reply.
    pub fn client(&self, limit: Duration) -> framewire_lab::Result<TextClient> {
        TextClient::connect(self.address, limit)
    }

    /// The id of the emulator's process.
    pub fn pid(&self) -> u32 {
        match &self.emulator {
            Emulator::Window(mgba) => mgba.pid(),
            Emulator::Headless(host) => host.pid(),
        }
    }

    /// The emulator's window.
    ///
    /// # Errors
    /// If the emulator has no window.
    pub fn window(&mut self) -> anyhow::Result<&mut StockMgba> {
        match &mut self.emulator {
            Emulator::Window(mgba) => Ok(mgba),
            Emulator::Headless(_) => bail!("this emulator has no window"),
        }
    }
}

/// Starts `framewire serve --attach` for the script at this address. The server connects to the script without waiting
/// for a request.
pub fn bridge(script: SocketAddr) -> anyhow::Result<Framewire> {
    Ok(Framewire::serve(&["--quiet", "--attach", &script.to_string()])?)
}
