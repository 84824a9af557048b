//! `framewire serve`: serves emulators over HTTP.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use framewire_http::{App, Emulators, Served};
use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::choose::Started;
use crate::requested::{check_names, values_for};
use crate::settings::Settings;
use crate::sources::{GAMES, RawSettings};
use crate::traces::Traces;
use crate::{choose, logging, mcp, output, process, safety, symbols, traces};

/// Arguments of `framewire serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Settings come from the command line, then from the environment variables named above, then from a TOML file \
(--config FILE, or framewire.toml in the working folder) with the same names: listen = \"127.0.0.1:5000\", speed = 2, \
clock = \"frames\", lua = [\"a.lua\"]. If one source chooses emulators, the choices of later sources do not count. RUST_LOG (such as debug, or framewire::link=debug) chooses what is logged.

Without --rom, --attach or an option for embedded cores (such as --speed, --save or --lua), it attaches to 127.0.0.1:8888 if \
a script of Framewire or mGBA-http answers there. In all other cases without --attach, it runs an embedded core: \
with the ROM of --rom, or else with a built-in demo game.

With several of --rom and --attach, the first is the default, and requests under /v1 choose another with ?emulator=NAME. \
An emulator without a name is named after its file or address. --speed, --clock and --lua are for all embedded cores, --channel \
for the first.")]
pub struct Args {
    #[command(flatten)]
    given: RawSettings,
    /// Read settings from this TOML file
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_CONFIG")]
    config: Option<PathBuf>,
}

/// The arguments of a subcommand that also accepts ROMs without `--rom`.
#[derive(Debug, clap::Args)]
pub struct ArgsWithGames {
    /// All arguments except the ROMs without `--rom`.
    #[command(flatten)]
    pub args: Args,
    // `RawSettings`, inside `args`, also reads these values, because their position among the values of --rom and
    // --attach matters. `args` must come first, because reading a field removes the field's values from the matches.
    /// Run this ROM in an embedded core, as --rom does
    #[arg(id = GAMES, value_name = "[NAME=]ROM")]
    games: Vec<PathBuf>,
}

impl Args {
    /// The settings, from all sources.
    ///
    /// # Errors
    /// If a source contradicts itself or cannot be read.
    pub fn settings(self) -> anyhow::Result<Settings> {
        self.given.with_file(self.config.as_deref())
    }
}

/// Serves until a signal arrives.
///
/// # Errors
/// If a setting is wrong, the address is taken, or the emulator cannot be started.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    // Dropped at the end of this function; this sends the remaining traces.
    let _traces = start_log(&settings)?;
    // The limit on open files also limits the HTTP connections. It is lower if scripts can open sockets.
    let connections = process::set_limit(!settings.lua.is_empty() || settings.allow_script == Some(true));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings, connections))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the log, and the traces if `--otlp` is set.
fn start_log(settings: &Settings) -> anyhow::Result<Option<Traces>> {
    let traces = settings.otlp.as_deref().map(traces::start).transpose()?;
    let spans = traces.as_ref().map(Traces::layer);
    logging::start(settings.log_format.unwrap_or_default(), settings.quiet == Some(true), spans);
    Ok(traces)
}

/// Serves at most `connections` HTTP connections at once.
async fn serve(settings: Settings, connections: usize) -> anyhow::Result<()> {
    let mut stop = std::pin::pin!(process::stop_signal()?);
    let address = settings.listen()?;
    let (access, tls) = (settings.access()?, settings.tls()?);
    safety::check(address, &access)?;
    check_data(&settings)?;
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen at {address}; choose another port with --listen, or run `framewire doctor` to see which program has it")
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
            "without TLS, everyone on the network path to {address} can read the tokens; give --tls-cert and --tls-key, \
             or use an encrypted tunnel"
        );
    }
    let emulators = served(&settings, &started)?;
    // Programs that start the server wait for this line, so all settings are checked before it is printed.
    let scheme = if tls.is_some() { "https" } else { "http" };
    output::line(format_args!("listening on {scheme}://{address}")).context("cannot print the address")?;
    let mut app = App { access, tls, data: settings.data(), ..App::new(emulators, settings.deadline()) };
    #[cfg(feature = "embedded")]
    {
        app.release_memory = Some(framewire_libmgba::release_memory);
    }
    app.front_end = Some(mcp::front_end(&settings, &started));
    app.limits.max_connections = app.limits.max_connections.min(connections);
    let stop = async {
        let signal = stop.await;
        // Listens before the line is logged, so that a Ctrl+C right after the line is not lost.
        let interrupt = process::interrupt();
        info!("{signal}: finishing open requests; Ctrl+C ends the program at once");
        tokio::spawn(end_at_once(interrupt));
    };
    framewire_http::serve(listener, app, Box::pin(stop)).await;
    for started in started {
        started.chosen.close().await;
    }
    info!("stopped");
    Ok(())
}

/// Checks that snapshots and recordings can be kept. If they cannot, this is an error only for a folder that was set
/// with `--data`: the default folder may be missing because a system service has no home folder.
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

/// The emulators for the server, with their symbols.
pub fn served(settings: &Settings, started: &[Started]) -> anyhow::Result<Emulators> {
    let names: Vec<&str> = started.iter().map(|started| started.name.as_str()).collect();
    check_names("--symbols", &settings.symbols, &names)?;
    let mut all: Option<Emulators> = None;
    for Started { name, chosen, demo } in started {
        let symbols = symbols::load(&values_for(&settings.symbols, name), *demo)?;
        let served = Served::new(name.clone(), chosen.emulator()).with_symbols(symbols);
        match &mut all {
            None => all = Some(Emulators::new(served)?),
            Some(all) => all.add(served)?,
        }
    }
    all.context("no emulator was started")
}

/// Waits for another Ctrl+C and then ends the process at once. Other signals are ignored, because they can be repeated
/// unintentionally: a closed terminal can send SIGHUP twice, and a service manager can send more than one signal.
async fn end_at_once(interrupt: impl Future<Output = ()>) {
    interrupt.await;
    warn!("Ctrl+C: ended at once");
    std::process::exit(process::INTERRUPTED.into());
}
