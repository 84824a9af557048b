//! `framewire serve`: emulators over HTTP.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use framewire_http::{App, Emulators, Served};
use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::choose::Started;
use crate::settings::Settings;
use crate::sources::{GAMES, Given};
use crate::traces::Traces;
use crate::{choose, logging, open_files, safety, say, signals, symbols, traces};

/// Arguments of `framewire serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Settings come from the command line, then from the environment variables named above, then from a TOML file \
(--config FILE, or framewire.toml in the working folder) with the same names: listen = \"127.0.0.1:5000\", speed = 2, \
clock = \"frames\", lua = [\"a.lua\"]. A choice of emulator hides those of later sources. RUST_LOG (such as debug, or framewire::link=debug) chooses what is logged.

With none of --rom, --attach, --speed, --clock, --lua and --channel it attaches to 127.0.0.1:8888 if a script of Framewire or \
mGBA-http answers there. Without --attach it otherwise runs an embedded core, with a built-in demo game if there is no \
--rom.

With several of --rom and --attach the first is the usual one, and requests under /v1 choose another with ?emulator=NAME. \
A name that is not given is that of the file or address. --speed, --clock and --lua are for all embedded cores, --channel for the \
first.")]
pub struct Args {
    #[command(flatten)]
    given: Given,
    /// Read settings from this TOML file
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_CONFIG")]
    config: Option<PathBuf>,
}

/// The same for a subcommand, where a ROM needs no `--rom`.
#[derive(Debug, clap::Args)]
pub struct ArgsWithGames {
    #[command(flatten)]
    args: Args,
    // `Given` takes them, in order with --rom and --attach; it comes first, since a field takes its values away.
    /// Run this ROM in an embedded core, as --rom does
    #[arg(id = GAMES, value_name = "[NAME=]ROM")]
    games: Vec<PathBuf>,
}

impl From<ArgsWithGames> for Args {
    fn from(with_games: ArgsWithGames) -> Args {
        with_games.args
    }
}

impl Args {
    /// The settings, from all sources.
    ///
    /// # Errors
    /// If a source is wrong in itself or cannot be read.
    pub fn settings(self) -> anyhow::Result<Settings> {
        self.given.with_file(self.config.as_deref())
    }
}

/// Serves until a signal asks for the end.
///
/// # Errors
/// If a setting is wrong, the address is taken, or the emulator cannot be started.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    // Held to the end, when what is left of the traces is sent.
    let _traces = start_log(&settings)?;
    let connections = match settings.lua.is_empty() {
        true => open_files::raise_limit(),
        false => open_files::limit_for_select(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings, connections))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the log, and traces if they are asked for.
fn start_log(settings: &Settings) -> anyhow::Result<Option<Traces>> {
    let (format, quiet) = (settings.log_format.unwrap_or_default(), settings.quiet);
    let traces = settings.otlp.as_deref().map(traces::start).transpose()?;
    match &traces {
        None => logging::start(format, quiet),
        #[cfg(feature = "otlp")]
        Some(traces) => logging::start_traced(format, quiet, traces),
        #[cfg(not(feature = "otlp"))]
        Some(none) => match *none {},
    }
    Ok(traces)
}

/// Serves at most so many HTTP `connections` at once.
async fn serve(settings: Settings, connections: usize) -> anyhow::Result<()> {
    let mut stop = std::pin::pin!(signals::stop()?);
    let address = settings.listen()?;
    let (access, tls) = (settings.access()?, settings.tls()?);
    safety::check(address, &access)?;
    check_data(&settings)?;
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen at {address}; choose another port with --listen, or see `framewire doctor` for who has it")
    })?;
    let started = tokio::select! {
        started = choose::emulators(&settings) => started?,
        signal = &mut stop => {
            info!("{signal}: stopped before the emulator had started");
            return Ok(());
        }
    };
    let address = listener.local_addr()?;
    if !address.ip().to_canonical().is_loopback() && tls.is_none() {
        warn!(
            "without TLS, whoever can listen on the way to {address} can read the tokens; give --tls-cert and --tls-key, \
             or come through an encrypted tunnel"
        );
    }
    let emulators = served(&settings, &started)?;
    // Scripts wait for this line, so all settings are checked before it.
    let scheme = if tls.is_some() { "https" } else { "http" };
    say::line(format_args!("listening on {scheme}://{address}")).context("cannot print the address")?;
    let mut app = App { access, tls, data: settings.data(), ..App::new(emulators, settings.deadline()) };
    #[cfg(feature = "embedded")]
    {
        app.release_memory = Some(framewire_libmgba::release_memory);
    }
    app.limits.max_connections = app.limits.max_connections.min(connections);
    let stop = async {
        let signal = stop.await;
        info!("{signal}: finishing what is under way; Ctrl+C ends it at once");
        tokio::spawn(end_at_once());
    };
    framewire_http::serve(listener, app, stop).await;
    for started in started {
        started.chosen.close().await;
    }
    info!("stopped");
    Ok(())
}

/// Whether snapshots and recordings can be kept. The usual folder may be missing its rights, for a service without a home;
/// one that was asked for may not.
fn check_data(settings: &Settings) -> anyhow::Result<()> {
    let Some(data) = settings.data() else { return Ok(()) };
    let Err(error) = framewire_http::check_data(&data) else { return Ok(()) };
    if settings.data.is_some() {
        let data = data.display();
        return Err(error).with_context(|| {
            format!("snapshots and recordings cannot be kept in {data}; choose another folder with --data")
        });
    }
    warn!("snapshots and recordings cannot be kept: {error}; choose a folder with --data");
    Ok(())
}

/// The emulators as the server knows them, with names for their addresses.
fn served(settings: &Settings, started: &[Started]) -> anyhow::Result<Emulators> {
    let names: Vec<&str> = started.iter().map(|started| started.name.as_str()).collect();
    symbols::check(settings, &names)?;
    let mut all: Option<Emulators> = None;
    for Started { name, chosen, demo } in started {
        let symbols = symbols::of(settings, name, *demo)?;
        let served = Served::new(name.clone(), chosen.emulator()).with_symbols(symbols);
        match &mut all {
            None => all = Some(Emulators::new(served)?),
            Some(all) => all.add(served)?,
        }
    }
    all.context("no emulator was started")
}

/// Ends the process with the next Ctrl+C, whatever it is busy with. Only with that: a closed terminal may well send
/// SIGHUP twice, and who stops services more than one signal.
async fn end_at_once() {
    signals::interrupt().await;
    warn!("Ctrl+C: ended at once");
    std::process::exit(signals::INTERRUPTED);
}
