//! A stock mGBA with one of the scripts, kept over many steps.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use framewire_stock::{StockMgba, StockOptions, ports};

use super::clients::{TextClient, first_answer};
use super::counter::Counter;
use super::results::Idle;
use super::steps::Script;
use crate::assets;

/// Longest that a script in good health takes to answer a newcomer.
const HEALTHY: Duration = Duration::from_secs(3);
/// Longest wait for the reply on the idle connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests that follow the first one after the idle time.
const FURTHER: usize = 5;

/// The window.
#[derive(Debug)]
pub struct StudyWindow {
    script: Script,
    mgba: StockMgba,
    counter: Counter,
    witness: Witness,
}

/// A connection that is opened at the window's start and then left alone.
#[derive(Debug)]
struct Witness {
    client: TextClient,
    before: Duration,
    since: Instant,
}

impl StudyWindow {
    /// Opens it; `files` is a folder for what mGBA loads.
    ///
    /// # Errors
    /// If mGBA does not start, or the script does not answer.
    pub fn open(script: Script, files: &Path) -> anyhow::Result<StudyWindow> {
        let (rom, path) = lay_out(script, files)?;
        let options = StockOptions::new(&rom)
            .opengl()
            .lua(include_str!("frames.lua"))
            .script(&path)
            .port(ports::free());
        let mgba = StockMgba::start(&options)?;
        let counter = Counter::start(mgba.dir().join("frames.json"))?;
        let mut client = TextClient::connect(mgba.address(), script, PATIENCE)?;
        let before = client.echo().context("the script does not answer its first request")?;
        let witness = Witness { client, before, since: Instant::now() };
        Ok(StudyWindow { script, mgba, counter, witness })
    }

    /// What it runs.
    pub fn script(&self) -> Script {
        self.script
    }

    /// Where the script listens.
    pub fn address(&self) -> SocketAddr {
        self.mgba.address()
    }

    /// Where the frame number is read.
    pub fn counter(&self) -> String {
        self.counter.url()
    }

    /// Whether the script still serves newcomers.
    pub fn is_healthy(&self) -> bool {
        first_answer(self.address(), self.script, HEALTHY).is_some()
    }

    /// Lines of the script's console so far.
    pub fn console(&self) -> Vec<String> {
        self.mgba.console().lines().map(str::to_owned).collect()
    }

    /// Has the study's script speak of connections, or not.
    ///
    /// # Errors
    /// If the window does not take it.
    pub fn set_talking(&mut self, talking: bool) -> anyhow::Result<()> {
        self.mgba.lua(&format!("study_talks = {talking}"))?;
        Ok(())
    }

    /// Has the study's script keep the sockets that it closes, or leave them to the garbage collector.
    ///
    /// # Errors
    /// If the window does not take it.
    pub fn set_keeping(&mut self, keeping: bool) -> anyhow::Result<()> {
        // Those that it closed before are collected now, while nobody is connected whom it could hit.
        self.mgba.lua(&format!("collectgarbage() collectgarbage() study_keeps = {keeping}"))?;
        Ok(())
    }

    /// Connections that the script holds, the idle one left out.
    ///
    /// # Errors
    /// Without `/proc`.
    pub fn connections(&self) -> io::Result<usize> {
        let table = fs::read_to_string("/proc/net/tcp")?;
        let local = format!("0100007F:{:04X}", self.address().port());
        // A line: its number, the local address, the remote one, the state: 01 is established, 08 was closed by the
        // other end only.
        let held = table.lines().filter(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            fields.next() == Some(&local) && matches!(fields.nth(1), Some("01" | "08"))
        });
        Ok(held.count().saturating_sub(1))
    }

    /// How long the idle connection has been left alone.
    pub fn idle(&self) -> Duration {
        self.witness.since.elapsed()
    }

    /// Uses the idle connection.
    pub fn use_idle(&mut self) -> Idle {
        let seconds = self.idle().as_secs_f64();
        let after = self.witness.client.echo();
        let then = match &after {
            Ok(_) => (0..FURTHER).map_while(|_| self.witness.client.echo().ok()).collect(),
            Err(_) => Vec::new(),
        };
        Idle {
            seconds,
            before: millis(self.witness.before),
            error: after.as_ref().err().map(ToString::to_string),
            after: after.ok().map(millis),
            then: then.into_iter().map(millis).collect(),
        }
    }
}

/// Milliseconds as they are kept: to the microsecond.
pub fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Writes the demo game and a script where mGBA finds them.
fn lay_out(script: Script, files: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let rom = files.join("framewire-demo.gba");
    let (name, text) = match script {
        Script::Study => ("study.lua", include_str!("study.lua")),
        Script::Ours => ("framewire.lua", assets::SCRIPT),
    };
    let path = files.join(name);
    fs::write(&rom, assets::DEMO_ROM)
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("cannot write to {}", files.display()))?;
    Ok((rom, path))
}
