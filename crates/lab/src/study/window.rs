//! A stock mGBA with one of the scripts. The study uses one window for many measurements.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use axum::routing::get;
use framewire_lab::TextClient;
use procfs::net::{TcpState, tcp};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use super::results::Idle;
use crate::setup::{Place, Script, Setup};

/// If a script takes longer than this to answer a new client, it counts as broken.
const HEALTHY: Duration = Duration::from_secs(3);
/// The longest wait for a reply on the idle connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// After the idle time, one request is sent first, and then this many more.
const FURTHER: usize = 5;

/// A window of mGBA, with a connection that stays idle.
#[derive(Debug)]
pub struct StudyWindow {
    /// The emulator and its script.
    pub setup: Setup,
    /// The URL of the window's frame number.
    pub counter: String,
    /// The runtime of the server at that URL. Dropping it stops the server.
    _runtime: Runtime,
    idle: IdleConnection,
}

/// A connection that is opened and used once when the window opens, and then not used for a long time.
#[derive(Debug)]
struct IdleConnection {
    client: TextClient,
    before: Duration,
    since: Instant,
}

impl StudyWindow {
    /// Opens the window.
    pub fn open(script: Script) -> anyhow::Result<StudyWindow> {
        let setup = Setup::start(Place::Window, script)?;
        let (counter, runtime) = serve_frame_number(setup.frames.clone())?;
        // When Lua collects a closed socket, its descriptor is closed a second time. This would cut off a newer
        // connection with the same descriptor. This one is the script's first, so no closed socket had its descriptor.
        let mut client = setup.client(PATIENCE)?;
        let before =
            client.echo(script.echo_prefix()).context("the script does not answer its first request")?;
        let idle = IdleConnection { client, before, since: Instant::now() };
        Ok(StudyWindow { setup, counter, _runtime: runtime, idle })
    }

    /// Whether the script still answers new clients.
    pub fn is_healthy(&self) -> bool {
        self.setup.first_answer(HEALTHY).is_some()
    }

    /// If mGBA has ended, how it ended.
    pub fn end(&mut self) -> Option<String> {
        let mgba = self.setup.window().ok()?;
        mgba.expect_running().err().map(|error| error.to_string())
    }

    /// The lines that scripts have written to the console so far.
    pub fn console(&mut self) -> anyhow::Result<Vec<String>> {
        Ok(self.setup.window()?.console().lines().map(str::to_owned).collect())
    }

    /// Turns on or off the messages that the study's script writes about its connections.
    pub fn set_talking(&mut self, talking: bool) -> anyhow::Result<()> {
        self.lua(&format!("study_talks = {talking}")).map(drop)
    }

    /// Makes the study's script keep references to the sockets that it closes, or stop doing so. Without references,
    /// Lua collects them as garbage.
    pub fn set_keeping(&mut self, keeping: bool) -> anyhow::Result<()> {
        // Sockets that are already closed are collected now, which closes their descriptors a second time. This does
        // no harm, because only the idle connection is open at this moment.
        self.lua(&format!("collectgarbage() collectgarbage() study_keeps = {keeping}")).map(drop)
    }

    /// Makes the study's script send back each piece of data as it arrives, or wait for the mark at the end of a
    /// message.
    pub fn set_unframed(&mut self, unframed: bool) -> anyhow::Result<()> {
        self.lua(&format!("study_unframed = {unframed}")).map(drop)
    }

    /// Stops Lua's garbage collector, or starts it again.
    pub fn set_collecting(&mut self, collecting: bool) -> anyhow::Result<()> {
        let word = if collecting { "restart" } else { "stop" };
        self.lua(&format!("collectgarbage() collectgarbage('{word}')")).map(drop)
    }

    /// How many bytes of memory Lua uses.
    pub fn lua_bytes(&mut self) -> anyhow::Result<f64> {
        let text = self.lua("return collectgarbage('count')")?;
        let kilobytes: f64 = text.trim().parse().with_context(|| format!("Lua's memory is {text:?}"))?;
        Ok(kilobytes * 1024.0)
    }

    fn lua(&mut self, code: &str) -> anyhow::Result<String> {
        Ok(self.setup.window()?.lua(code)?)
    }

    /// How many closed connections to the script the system still keeps, in the state `TIME_WAIT`.
    pub fn waiting(&self) -> anyhow::Result<usize> {
        let sockets = tcp().context("cannot read /proc/net/tcp")?;
        let address = self.setup.address;
        let waiting = sockets.iter().filter(|socket| {
            socket.state == TcpState::TimeWait
                && (socket.local_address == address || socket.remote_address == address)
        });
        Ok(waiting.count())
    }

    /// How many connections the script holds, not counting the idle connection.
    pub fn connections(&self) -> anyhow::Result<usize> {
        let sockets = tcp().context("cannot read /proc/net/tcp")?;
        let held = sockets.iter().filter(|socket| {
            socket.local_address == self.setup.address
                && matches!(socket.state, TcpState::Established | TcpState::CloseWait)
        });
        Ok(held.count().saturating_sub(1))
    }

    /// How long the idle connection has been unused.
    pub fn idle(&self) -> Duration {
        self.idle.since.elapsed()
    }

    /// Sends requests on the idle connection and measures their latencies.
    pub fn use_idle(&mut self) -> Idle {
        let seconds = self.idle().as_secs_f64();
        let prefix = self.setup.script.echo_prefix();
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

/// Serves a window's frame number as JSON over HTTP, in the format that `framewire bench --emulator` reads. Returns the
/// number's URL, and the runtime of the server.
///
/// Each response is the content of `file`, which `src/frames.lua` of this crate writes. So the number is measured in
/// the same way for Framewire's script and the study's script, and neither script has to answer extra requests.
fn serve_frame_number(file: PathBuf) -> std::io::Result<(String, Runtime)> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let url = format!("http://{}/", listener.local_addr()?);
    let answer = move || async move { std::fs::read_to_string(file).unwrap_or_default() };
    let server = axum::serve(listener, Router::new().route("/", get(answer)));
    runtime.spawn(server.into_future());
    Ok((url, runtime))
}

/// A time in milliseconds, rounded to microseconds.
pub fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
