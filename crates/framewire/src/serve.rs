//! `framewire serve`: an emulator over HTTP.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use framewire_http::App;
use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::settings::Settings;
use crate::{choose, logging, open_files, signals};

/// Arguments of `framewire serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Settings come from the command line, then from the environment variables named above, then from a TOML file \
(--config FILE, or framewire.toml in the working folder) with the same names: listen = \"127.0.0.1:5000\", speed = 2, \
lua = [\"a.lua\"]. RUST_LOG (such as debug, or framewire::link=debug) chooses what is logged.

With neither --rom nor --attach it attaches to 127.0.0.1:8888 if a script of Framewire or mGBA-http answers there, and \
otherwise runs a built-in demo game.")]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    /// Read settings from this TOML file
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_CONFIG")]
    config: Option<PathBuf>,
}

/// Serves until a signal asks for the end.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let settings = args.settings.with_file(args.config.as_deref())?;
    logging::start(settings.log_format.unwrap_or_default(), settings.quiet);
    if settings.lua.is_empty() {
        // libmgba's script sockets use select(2), which is undefined above file descriptor 1,023.
        open_files::raise_limit();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    let stop = signals::stop()?;
    let address = settings.listen()?;
    let access = settings.access()?;
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen at {address}; choose another port with --listen, or see `framewire doctor` for who has it")
    })?;
    let chosen = choose::emulator(&settings).await?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        warn!(
            "{address} can be reached from other machines, and whoever reaches it controls the emulator and its files"
        );
    }
    println!("listening on http://{address}");
    let app = App { access, ..App::new(chosen.emulator(), settings.deadline()) };
    let stop = async {
        let signal = stop.await;
        info!("{signal}: finishing what is under way");
    };
    framewire_http::serve(listener, app, stop).await;
    chosen.close().await;
    info!("stopped");
    Ok(())
}
