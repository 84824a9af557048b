//! `framewire mcp`: serves the MCP front end over stdin and stdout. `framewire serve` has the same front end at `/mcp`.
//!
//! With `--url`, the tools use another server (`remote.rs`) instead of an emulator that this process starts.

mod remote;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use framewire_http::{App, FrontEnd, LocalCalls, LocalServer};
use framewire_mcp::{
    Backend, CallFuture, Connect, EndFuture, HttpHost, Object, Options, Problem, Session, Toolset,
};
use tokio::sync::Mutex;
use tracing::info;

use crate::choose::Started;
use crate::commands::client::{Address, Client};
use crate::commands::server;
use crate::settings::Settings;
use crate::{choose, logging, output, process, serve};
use remote::Remote;

/// The arguments for an emulator of this process. They conflict with `url`, and if one of them is given, clap does not
/// enforce that an option for a server requires `url`. So these options conflict with them, too.
const LOCAL: [&str; 3] = ["game", "rom", "attach"];

/// Arguments of `framewire mcp`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A program that runs a language model starts this command and talks to it over stdin and stdout. docs/agents.md has the settings \
for the usual programs.

Without --rom, --attach and --url it attaches to 127.0.0.1:8888 if a script of Framewire or mGBA-http answers there, or else runs the \
built-in demo game. A game in this process is paused between calls. `framewire serve` has the same tools at /mcp.")]
pub struct Args {
    /// Run this ROM
    #[arg(value_name = "ROM", conflicts_with_all = ["rom", "attach", "url"])]
    game: Option<PathBuf>,
    /// Run this ROM
    #[arg(long, value_name = "FILE", conflicts_with_all = ["attach", "url"])]
    rom: Option<PathBuf>,
    /// Attach to the mGBA whose script listens at this address
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "url")]
    attach: Option<String>,
    /// Use the emulator of this server
    #[arg(long, value_name = "URL", value_parser = server::url)]
    url: Option<String>,
    /// The emulator, if the server of --url has several [default: the first]
    #[arg(long, value_name = "NAME", requires = "url", conflicts_with_all = LOCAL)]
    emulator: Option<String>,
    /// Send the token in this file to the server of --url; without it, the one in the variable FRAMEWIRE_TOKEN
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with_all = LOCAL)]
    token_file: Option<PathBuf>,
    /// Trust the certificate in this PEM file, for an https:// address
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with_all = LOCAL)]
    cacert: Option<PathBuf>,
    /// Read names of addresses from this .sym, .map or .toml file, or a character table from this .tbl file; can
    /// be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    symbols: Vec<PathBuf>,
    /// Keep snapshots, recordings and notes in this folder; with --url, only notes [default: the user's data folder]
    #[arg(long, value_name = "DIR", env = "FRAMEWIRE_DATA")]
    data: Option<PathBuf>,
    /// Offer only these groups of tools, with commas between them [default: play,debug,files]
    #[arg(long, value_name = "LIST")]
    toolsets: Option<String>,
    /// Offer only tools that change nothing
    #[arg(long)]
    read_only: bool,
    /// Also offer the tool `script`, which runs Lua code in the emulator, with all rights of the emulator's process. An
    /// mGBA window needs `allow_script` in its script too. With --url, start the server with --allow-script, and give
    /// `--toolsets play,debug,files,script` here instead of this option
    #[arg(long, conflicts_with_all = ["url", "read_only"])]
    allow_script: bool,
}

/// Serves one client until it closes stdin, or a signal arrives.
///
/// # Errors
/// If an argument cannot be used, or the emulator cannot be started.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Stdout belongs to the protocol; the log goes to stderr.
    logging::start(logging::Format::default(), true, None);
    // With one thread, calls begin in the order in which the client sent them. Several threads would begin calls that
    // arrive together in any order.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(serve_stdio(args));
    // A pending read of stdin cannot be cancelled, so this does not wait for it.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve_stdio(args: Args) -> anyhow::Result<()> {
    let settings = Settings {
        rom: args.rom.or(args.game).into_iter().collect(),
        attach: args.attach.into_iter().collect(),
        symbols: args.symbols,
        data: args.data,
        paused: true,
        allow_script: Some(args.allow_script),
        ..Settings::default()
    };
    let mut options = Options { read_only: args.read_only, ..Options::default() };
    options.notes = settings.data().map(|data| data.join("notes"));
    if let Some(list) = &args.toolsets {
        options.toolsets = Toolset::list(list).context("--toolsets")?;
    }
    if args.allow_script {
        if !options.toolsets.contains(&Toolset::Script) {
            options.toolsets.push(Toolset::Script);
        }
    } else if args.url.is_none() && options.toolsets.contains(&Toolset::Script) {
        return Err(anyhow!(
            "--toolsets: script needs --allow-script as well; it runs Lua code with the rights of the emulator"
        ));
    }
    if let Some(url) = args.url {
        let token = server::token(args.token_file.as_deref())?;
        let address = Address { url, emulator: args.emulator, token, certificate: args.cacert };
        let client = Client::new(address)?;
        let remote = tokio::task::spawn_blocking(move || Remote::new(client)).await??;
        return serve_client(Arc::new(remote), options).await;
    }
    let started = choose::emulators(&settings).await?;
    let mut app =
        App { data: settings.data(), ..App::new(serve::served(&settings, &started)?, settings.deadline()) };
    app.access.scripts = args.allow_script;
    let server = LocalServer::new(&app);
    let ended = serve_client(Arc::new(Local(server.calls())), options).await;
    server.close().await;
    drop(app);
    for started in started {
        started.chosen.close().await;
    }
    ended
}

/// Serves one client over stdin and stdout, until it closes stdin or a signal arrives.
async fn serve_client(backend: Arc<dyn Backend>, options: Options) -> anyhow::Result<()> {
    let session = Session::new(backend, options, Arc::new(Mutex::new(())));
    tokio::select! {
        ended = framewire_mcp::serve_stdio(session) => ended.map_err(|error| anyhow!("the client cannot be served: {error}")),
        signal = process::stop_signal()? => {
            info!("{signal}: stopped");
            Ok(())
        }
    }
}

/// The front end at `/mcp`, for `framewire serve` with these emulators.
pub fn front_end(settings: &Settings, started: &[Started]) -> FrontEnd {
    let notes = settings.data().map(|data| data.join("notes"));
    let locks = Locks::new(started.iter().map(|started| started.name.clone()));
    let routes = move |calls: LocalCalls| {
        let (notes, locks) = (notes.clone(), locks.clone());
        let host = host(&calls);
        let connect: Connect = Arc::new(move |parts| {
            let mut options = Options { notes: notes.clone(), ..Options::default() };
            options.read_query(parts.uri.query().unwrap_or_default())?;
            let backend = Arc::new(Local(calls.for_sender(&parts.extensions)));
            let playing = locks.of(options.emulator.as_deref());
            Ok(Session::new(backend, options, playing))
        });
        framewire_mcp::router(host, connect)
    };
    FrontEnd { path: framewire_mcp::PATH, routes: Arc::new(routes) }
}

/// A lock for each emulator, by its name. The sessions of an emulator share its lock, so that only one tool at a time
/// runs the emulator's frames. The first emulator is the default.
#[derive(Clone)]
struct Locks(Vec<(String, Arc<Mutex<()>>)>);

impl Locks {
    fn new(names: impl Iterator<Item = String>) -> Locks {
        Locks(names.map(|name| (name, Arc::default())).collect())
    }

    /// The lock for a session with the emulator of this name, or with the default one.
    fn of(&self, name: Option<&str>) -> Arc<Mutex<()>> {
        let found = match name {
            None => self.0.first(),
            Some(name) => self.0.iter().find(|(known, _)| known == name),
        };
        // If there is no such emulator, all calls of the session fail, so it does not have to share a lock.
        found.map(|(_, lock)| lock.clone()).unwrap_or_default()
    }
}

/// What the front end's routes need from the server of `calls`: who sent a request, and when the server stops.
fn host(calls: &LocalCalls) -> HttpHost {
    let (senders, server) = (calls.clone(), calls.clone());
    HttpHost {
        sender: Arc::new(move |extensions| senders.for_sender(extensions).name()),
        stopped: Box::pin(async move { server.stopped().await }),
    }
}

/// `framewire skill`: prints instructions for coding agents that use the command line and the HTTP API.
pub fn print_skill() -> anyhow::Result<ExitCode> {
    output::line(format_args!("{}", framewire_mcp::SKILL.trim_end())).context("cannot print the text")?;
    Ok(ExitCode::SUCCESS)
}

/// A backend that calls a server in this process.
struct Local(LocalCalls);

impl Backend for Local {
    fn call<'a>(&'a self, method: &'a str, params: Object) -> CallFuture<'a> {
        Box::pin(async move {
            let called = self.0.call(method, params).await;
            called.map_err(|problem| Problem::from_json(&problem))
        })
    }

    fn only_reads(&self) -> bool {
        self.0.only_reads()
    }

    fn stopped(&self) -> EndFuture<'_> {
        Box::pin(self.0.stopped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_of_the_same_emulator_wait_for_each_other() {
        let locks = Locks::new(["red", "blue"].into_iter().map(str::to_owned));
        let shared = |one, other| Arc::ptr_eq(&locks.of(one), &locks.of(other));
        assert!(shared(None, Some("red")) && shared(Some("blue"), Some("blue")));
        assert!(!shared(None, Some("blue")) && !shared(Some("red"), Some("green")));
    }
}
