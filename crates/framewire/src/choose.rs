//! Which emulators to serve.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
#[cfg(feature = "embedded")]
use framewire_emulator::Embedded;
#[cfg(feature = "embedded")]
use framewire_emulator::embedded::Config;
use framewire_emulator::{Attached, Emulator};
use framewire_link::{Found, Script, probe};
use framewire_protocol::DEFAULT_PORT;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::info;

use crate::settings::Settings;
use crate::wanted::{Source, Wanted};

/// How long an emulator that nobody named has to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The emulator that is served, with the handle that its kind needs to be stopped.
pub enum Chosen {
    /// A stock mGBA.
    Attached(Arc<Attached>),
    /// A core in this process.
    #[cfg(feature = "embedded")]
    Embedded(Arc<Embedded>),
}

impl Chosen {
    /// The emulator as front ends know it.
    pub fn emulator(&self) -> Arc<dyn Emulator> {
        match self {
            Chosen::Attached(attached) => attached.clone(),
            #[cfg(feature = "embedded")]
            Chosen::Embedded(embedded) => embedded.clone(),
        }
    }

    /// Ends it in good order.
    pub async fn close(self) {
        match self {
            Chosen::Attached(attached) => attached.close().await,
            // Its thread is joined when the last handle to it is dropped, here.
            #[cfg(feature = "embedded")]
            Chosen::Embedded(_) => {}
        }
    }
}

/// An emulator that was started.
pub struct Started {
    /// What `?emulator=` calls it.
    pub name: String,
    /// The emulator.
    pub chosen: Chosen,
    /// Whether it runs the built-in game.
    pub demo: bool,
}

/// Starts the emulators that the settings ask for: those that they name, or else the mGBA on this machine whose script
/// answers, or else the demo game. The first is the usual one.
///
/// # Errors
/// If one of them cannot be started.
pub async fn emulators(settings: &Settings) -> anyhow::Result<Vec<Started>> {
    let mut wanted = settings.wanted()?;
    if wanted.is_empty() {
        let address = format!("127.0.0.1:{DEFAULT_PORT}");
        let (name, source) = match answers_at(&address).await {
            true => ("mgba", Source::Attach(address)),
            false => ("demo", Source::Demo),
        };
        wanted.push(Wanted { name: name.to_owned(), source });
    }
    let mut started = Vec::with_capacity(wanted.len());
    // One program at a time has a channel.
    let mut channel = settings.channel.clone();
    for Wanted { name, source } in wanted {
        let demo = source == Source::Demo;
        let chosen = match source {
            Source::Attach(address) => attach(address)?,
            Source::Rom(_) | Source::Demo => {
                let rom = if let Source::Rom(path) = source { Some(path) } else { None };
                let settings = Settings { channel: channel.take(), ..settings.clone() };
                aside(move || embed(rom.as_deref(), &settings))
                    .await
                    .with_context(|| format!("emulator {name}"))?
            }
        };
        started.push(Started { name, chosen, demo });
    }
    Ok(started)
}

/// Whether a script answers there that nobody named.
async fn answers_at(address: &str) -> bool {
    match probe(address, PATIENCE).await {
        Found::Script(Script::Framewire(version)) => {
            info!("found Framewire's script {version} at {address}");
            true
        }
        Found::Script(Script::MgbaHttp) => {
            info!("found mGBA-http's script at {address}");
            true
        }
        Found::Silent => {
            info!(
                "something at {address} accepts connections and stays silent (a paused mGBA?); \
                 --attach {address} attaches to it all the same"
            );
            false
        }
        Found::Nothing(_) | Found::Other(_) => false,
    }
}

/// Does what takes as long as a script wants, on a thread that nobody waits for when the program is to end.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (done, result) = oneshot::channel();
    std::thread::Builder::new().name("start".to_owned()).spawn(move || done.send(work()))?;
    result.await.context("starting the emulator failed")?
}

/// An address whose port may be left out.
pub fn with_port(address: &str) -> String {
    let address = address.strip_prefix("tcp://").unwrap_or(address);
    match address.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => address.to_owned(),
        _ => format!("{address}:{DEFAULT_PORT}"),
    }
}

fn attach(address: String) -> anyhow::Result<Chosen> {
    let config = framewire_link::Config { address, ..Default::default() };
    Ok(Chosen::Attached(Arc::new(Attached::start(config, &Handle::current()))))
}

#[cfg(feature = "embedded")]
fn embed(rom: Option<&Path>, settings: &Settings) -> anyhow::Result<Chosen> {
    use framewire_emulator::embedded::{Rom, Speed};

    use crate::settings::SpeedSetting;

    let rom = match rom {
        Some(path) => Rom::File(path.to_owned()),
        None => Rom::Bytes(crate::assets::DEMO_ROM),
    };
    let speed = match settings.speed {
        None => Speed::Times(1.0),
        Some(SpeedSetting::Times(times)) => Speed::Times(times),
        Some(SpeedSetting::Unlimited) => Speed::Unlimited,
    };
    let clock = settings.clock.unwrap_or_default();
    let scripts = settings.lua.clone();
    let config = Config { rom, speed, paused: false, clock, scripts, console: console::new };
    let embedded = match &settings.channel {
        None => Embedded::start(config).map_err(anyhow::Error::from),
        Some(name) => on_channel(config, name),
    };
    let embedded = embedded.context("cannot start the embedded core")?;
    let state = embedded.state();
    info!(
        "running {} in an embedded core (libmgba {})",
        state.title.unwrap_or_default(),
        state.library_version.unwrap_or_default()
    );
    Ok(Chosen::Embedded(Arc::new(embedded)))
}

#[cfg(all(feature = "embedded", target_os = "linux"))]
fn on_channel(config: Config, name: &str) -> anyhow::Result<Embedded> {
    Ok(Embedded::start_on_channel(config, name)?)
}

#[cfg(all(feature = "embedded", not(target_os = "linux")))]
fn on_channel(_config: Config, _name: &str) -> anyhow::Result<Embedded> {
    anyhow::bail!("channels need Linux; take --channel out")
}

#[cfg(not(feature = "embedded"))]
fn embed(_rom: Option<&Path>, _settings: &Settings) -> anyhow::Result<Chosen> {
    anyhow::bail!(
        "this build has no embedded core, and no script answers at 127.0.0.1:{DEFAULT_PORT} or was named; start mGBA with \
         a ROM and load the script (`framewire script`), or name its address with --attach HOST:PORT"
    )
}

#[cfg(feature = "embedded")]
mod console {
    use framewire_emulator::embedded::Console;
    use framewire_libmgba::Level;
    use tracing::{debug, error, info, warn};

    /// The script console of an embedded core: our log.
    pub fn new() -> Console {
        Box::new(|level, line| match level {
            Level::Debug | Level::Stub | Level::GameError => debug!(target: "framewire::console", "{line}"),
            Level::Info => info!(target: "framewire::console", "{line}"),
            Level::Warn => warn!(target: "framewire::console", "{line}"),
            Level::Error | Level::Fatal => error!(target: "framewire::console", "{line}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_left_out() {
        assert_eq!(with_port("desk"), "desk:8888");
        assert_eq!(with_port("desk:9000"), "desk:9000");
        assert_eq!(with_port("tcp://[::1]:9000"), "[::1]:9000");
    }
}
