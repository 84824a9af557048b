//! A stock mGBA with one of the scripts, kept over many steps.

use std::time::{Duration, Instant};

use anyhow::Context;
use framewire_lab::TextClient;
use procfs::net::{TcpState, tcp};

use super::counter::Counter;
use super::results::Idle;
use crate::setup::{Place, Script, Setup};

/// Longest that a script in good health takes to answer a new client.
const HEALTHY: Duration = Duration::from_secs(3);
/// Longest wait for the reply on the idle connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests that follow the first one after the idle time.
const FURTHER: usize = 5;

/// The window.
#[derive(Debug)]
pub struct StudyWindow {
    /// The emulator in it.
    pub setup: Setup,
    counter: Counter,
    idle: IdleConnection,
}

/// A connection that is opened at the window's start and then left alone.
#[derive(Debug)]
struct IdleConnection {
    client: TextClient,
    before: Duration,
    since: Instant,
}

impl StudyWindow {
    /// Opens it.
    ///
    /// # Errors
    /// If mGBA does not start, or the script does not answer.
    pub fn open(script: Script) -> anyhow::Result<StudyWindow> {
        let setup = Setup::start(Place::Window, script)?;
        let counter = Counter::start(setup.frames().to_owned())?;
        // The script's first connection: no socket that it closed can have had the same descriptor.
        let mut client = setup.client(PATIENCE)?;
        let before =
            client.echo(script.echo_prefix()).context("the script does not answer its first request")?;
        let idle = IdleConnection { client, before, since: Instant::now() };
        Ok(StudyWindow { setup, counter, idle })
    }

    /// What it runs.
    pub fn script(&self) -> Script {
        self.setup.script()
    }

    /// Where the frame number is read.
    pub fn counter(&self) -> String {
        self.counter.url()
    }

    /// Whether the script still answers new clients.
    pub fn is_healthy(&self) -> bool {
        self.setup.first_answer(HEALTHY).is_some()
    }

    /// How mGBA itself ended, if it did.
    pub fn end(&mut self) -> Option<String> {
        let mgba = self.setup.window().ok()?;
        mgba.expect_running().err().map(|error| error.to_string())
    }

    /// Lines of the script's console so far.
    ///
    /// # Errors
    /// Without a window.
    pub fn console(&mut self) -> anyhow::Result<Vec<String>> {
        Ok(self.setup.window()?.console().lines().map(str::to_owned).collect())
    }

    /// Makes the study's script write about its connections, or not.
    ///
    /// # Errors
    /// If the window does not take it.
    pub fn set_talking(&mut self, talking: bool) -> anyhow::Result<()> {
        self.setup.window()?.lua(&format!("study_talks = {talking}"))?;
        Ok(())
    }

    /// Makes the study's script keep the sockets that it closes, or leave them to the garbage collector.
    ///
    /// # Errors
    /// If the window does not take it.
    pub fn set_keeping(&mut self, keeping: bool) -> anyhow::Result<()> {
        // The sockets that it closed before are collected now, while no client is connected.
        self.setup.window()?.lua(&format!("collectgarbage() collectgarbage() study_keeps = {keeping}"))?;
        Ok(())
    }

    /// Makes the study's script send back each piece as it comes, or wait for the mark at a message's end.
    ///
    /// # Errors
    /// If the window does not take it.
    pub fn set_unframed(&mut self, unframed: bool) -> anyhow::Result<()> {
        self.setup.window()?.lua(&format!("study_unframed = {unframed}"))?;
        Ok(())
    }

    /// Stops Lua's garbage collector, or starts it again.
    ///
    /// # Errors
    /// If the window does not take it.
    pub fn set_collecting(&mut self, collecting: bool) -> anyhow::Result<()> {
        let word = if collecting { "restart" } else { "stop" };
        self.setup.window()?.lua(&format!("collectgarbage() collectgarbage('{word}')"))?;
        Ok(())
    }

    /// Bytes that Lua has in use.
    ///
    /// # Errors
    /// If the window does not say it.
    pub fn lua_bytes(&mut self) -> anyhow::Result<f64> {
        let text = self.setup.window()?.lua("return collectgarbage('count')")?;
        let kilobytes: f64 = text.trim().parse().with_context(|| format!("Lua's memory is {text:?}"))?;
        Ok(kilobytes * 1024.0)
    }

    /// Connections to the script that the system keeps for a while after they were closed.
    ///
    /// # Errors
    /// Without `/proc`.
    pub fn waiting(&self) -> anyhow::Result<usize> {
        let sockets = tcp().context("cannot read /proc/net/tcp")?;
        let address = self.setup.address();
        let waiting = sockets.iter().filter(|socket| {
            socket.state == TcpState::TimeWait
                && (socket.local_address == address || socket.remote_address == address)
        });
        Ok(waiting.count())
    }

    /// Connections that the script holds, without the idle one.
    ///
    /// # Errors
    /// Without `/proc`.
    pub fn connections(&self) -> anyhow::Result<usize> {
        let sockets = tcp().context("cannot read /proc/net/tcp")?;
        let held = sockets.iter().filter(|socket| {
            socket.local_address == self.setup.address()
                && matches!(socket.state, TcpState::Established | TcpState::CloseWait)
        });
        Ok(held.count().saturating_sub(1))
    }

    /// How long the idle connection has been left alone.
    pub fn idle(&self) -> Duration {
        self.idle.since.elapsed()
    }

    /// Uses the idle connection.
    pub fn use_idle(&mut self) -> Idle {
        let seconds = self.idle().as_secs_f64();
        let prefix = self.script().echo_prefix();
        let client = &mut self.idle.client;
        let after = client.echo(prefix);
        let mut then = Vec::new();
        if after.is_ok() {
            then.extend((0..FURTHER).map_while(|_| client.echo(prefix).ok()).map(millis));
        }
        Idle {
            seconds,
            before: millis(self.idle.before),
            error: after.as_ref().err().map(ToString::to_string),
            after: after.ok().map(millis),
            then,
        }
    }
}

/// Milliseconds, to the microsecond.
pub fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
