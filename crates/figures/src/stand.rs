//! What is measured: an emulator with one of the scripts, and what stands before it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_e2e::{Framewire, StockMgba, StockOptions, paths, ports};
use tempfile::TempDir;

use crate::frames::{self, Watch};
use crate::text::Client;

/// A script of the kind people write first: the one that `framewire study` measures.
const STUDY: &str = include_str!("../../framewire/src/study/study.lua");
/// For which an emulator that was just started is left alone: its first seconds are its own effort, not what a desk shows.
const SETTLING: Duration = Duration::from_secs(3);
/// How often it is tried: mGBA's window has been seen to crash while it opens, with either script and with none.
const TRIES: u32 = 3;
/// Longest wait for a first reply.
const START: Duration = Duration::from_secs(20);

/// Which script an emulator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// The study's kind.
    Study,
    /// Framewire's.
    Ours,
}

impl Script {
    /// Both, in the order they are measured.
    pub const BOTH: [Script; 2] = [Script::Study, Script::Ours];
}

/// Where a script runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A stock mGBA in its window under Xvfb.
    Window,
    /// libmgba without a window, at the console's own speed.
    Headless,
}

/// An emulator that runs a script. Dropping it ends it.
#[derive(Debug)]
pub struct Stand {
    emulator: Emulator,
    script: Script,
    address: SocketAddr,
    frames: PathBuf,
    _files: TempDir,
}

#[derive(Debug)]
enum Emulator {
    Window(Box<StockMgba>),
    Headless(Framewire),
}

impl Stand {
    /// Starts it, waits until the script has answered, and leaves it alone for some seconds.
    ///
    /// # Errors
    /// If it does not start, or does not answer.
    pub fn start(place: Place, script: Script) -> anyhow::Result<Stand> {
        let mut tries = 1;
        loop {
            match Stand::start_once(place, script) {
                Err(error) if tries < TRIES => eprintln!("  once more: {error:#}"),
                result => return result,
            }
            tries += 1;
        }
    }

    fn start_once(place: Place, script: Script) -> anyhow::Result<Stand> {
        let files = TempDir::with_prefix("framewire-figures-").context("no folder for temporary files")?;
        let port = ports::free();
        let path = match script {
            Script::Ours => paths::script(),
            Script::Study => write(files.path(), "study.lua", STUDY)?,
        };
        let rom = files.path().join("demo.gba");
        fs::copy(paths::rom(), &rom).context("cannot copy the demo game")?;
        let (counter, frames) = frames::counter(files.path());
        let emulator = match place {
            Place::Window => {
                let options = StockOptions::new(&rom).opengl().lua(&counter).script(&path).port(port);
                Emulator::Window(Box::new(StockMgba::start(&options)?))
            }
            Place::Headless => {
                let settings = format!("framewire = {{port = {port}}}\n{counter}");
                let settings = write(files.path(), "settings.lua", &settings)?;
                let files = [&rom, &settings, &path].map(|path| path.to_string_lossy().into_owned());
                let [rom, settings, path] = &files;
                Emulator::Headless(Framewire::serve(&[
                    "--quiet", "--rom", rom, "--lua", settings, "--lua", path,
                ])?)
            }
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stand = Stand { emulator, script, address, frames, _files: files };
        stand.wait()?;
        std::thread::sleep(SETTLING);
        Ok(stand)
    }

    fn wait(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            match Client::connect(self.address, self.script, START).and_then(|mut client| client.echo()) {
                Ok(_) => return Ok(()),
                Err(error) if start.elapsed() > START => bail!("the script does not answer: {error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// What it runs.
    pub fn script(&self) -> Script {
        self.script
    }

    /// Where the script listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The emulator's process.
    pub fn pid(&self) -> u32 {
        match &self.emulator {
            Emulator::Window(mgba) => mgba.pid(),
            Emulator::Headless(host) => host.pid(),
        }
    }

    /// Begins to watch its frame rate.
    pub fn watch(&self) -> Watch {
        Watch::start(&self.frames)
    }

    /// Starts the bridge in front of it. It connects by itself; nothing is asked of it.
    ///
    /// # Errors
    /// If it does not start.
    pub fn bridge(&self) -> anyhow::Result<Framewire> {
        Ok(Framewire::serve(&["--quiet", "--attach", &self.address.to_string()])?)
    }
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
