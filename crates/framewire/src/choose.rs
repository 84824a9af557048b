//! Chooses and starts the emulators to serve.

use std::net::Ipv6Addr;
use std::path::Path;
#[cfg(feature = "embedded")]
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
#[cfg(feature = "embedded")]
use framewire_emulator::Embedded;
#[cfg(feature = "embedded")]
use framewire_emulator::embedded::{
    Config, Console, Hardware, Mods, Options as CoreOptions, Patching, Rom, SaveType,
};
use framewire_emulator::{Attached, Emulator};
use framewire_link::{Found, Script, probe};
use framewire_protocol::DEFAULT_PORT;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::info;

#[cfg(feature = "embedded")]
use crate::requested::values_for;
use crate::requested::{Requested, Source, check_names, named_path};
use crate::settings::Settings;

/// The demo game, built into the program.
#[cfg(feature = "embedded")]
pub const DEMO_ROM: &[u8] = include_bytes!("../../../rom/framewire-demo.gba");

/// The path that is used as the save file of a game that must not use its own save file. The game finds no battery save
/// there, and what it saves is lost.
#[cfg(feature = "embedded")]
const NO_SAVE: &str = "/dev/null";

/// The settings for the ROM at `path`, or without a path for the demo game. The game's battery save is neither read nor
/// written.
#[cfg(feature = "embedded")]
pub fn config_without_save(path: Option<&Path>, options: CoreOptions) -> Config {
    // A core writes a ROM that it gets as bytes to a temporary folder. A ROM of the user is not passed in this way:
    // nothing would remove that folder when a signal ends this process, slots would be in it instead of next to the
    // ROM, and errors would name it.
    let (rom, save) = match path {
        Some(path) => (Rom::File(path.to_owned()), Some(NO_SAVE.into())),
        None => (Rom::Bytes(DEMO_ROM), None),
    };
    Config { mods: Mods { options, save, ..Mods::default() }, ..Config::new(rom) }
}

/// How long the search for an emulator waits for an answer.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A running emulator. Each kind is stopped in a different way.
pub enum Chosen {
    /// A stock mGBA.
    Attached(Arc<Attached>),
    /// A core in this process.
    #[cfg(feature = "embedded")]
    Embedded(Arc<Embedded>),
}

impl Chosen {
    /// The emulator, as the trait that front ends use.
    pub fn emulator(&self) -> Arc<dyn Emulator> {
        match self {
            Chosen::Attached(attached) => attached.clone(),
            #[cfg(feature = "embedded")]
            Chosen::Embedded(embedded) => embedded.clone(),
        }
    }

    /// Stops the emulator.
    pub async fn close(self) {
        match self {
            Chosen::Attached(attached) => attached.close().await,
            // Others may still have handles to the core, for example a call of a tool that has not ended.
            #[cfg(feature = "embedded")]
            Chosen::Embedded(embedded) => embedded.stop(),
        }
    }
}

/// An emulator that was started.
pub struct Started {
    /// Its name, for `?emulator=`.
    pub name: String,
    /// The emulator.
    pub chosen: Chosen,
    /// Whether it runs the built-in game.
    pub demo: bool,
}

/// Starts the emulators that the settings name, or else attaches to the mGBA on this machine whose script answers, or
/// else starts the demo game. The first emulator is the default.
///
/// # Errors
/// If the settings contradict each other, or an emulator cannot be started.
pub async fn emulators(settings: &Settings) -> anyhow::Result<Vec<Started>> {
    let mut requested = settings.requested()?;
    if requested.is_empty() {
        requested.push(found(format!("127.0.0.1:{DEFAULT_PORT}")).await);
    }
    let names: Vec<&str> = requested.iter().map(|requested| requested.name.as_str()).collect();
    check_owners(settings, &names)?;
    let mut started = Vec::with_capacity(requested.len());
    let several = requested.len() > 1;
    // A channel serves one emulator: the first embedded one.
    let mut channel = settings.channel.clone();
    for Requested { name, source } in requested {
        let demo = source == Source::Demo;
        let chosen = match source {
            Source::Attach(address) => attach(address, settings.history()),
            Source::Rom(_) | Source::Demo => {
                let rom = if let Source::Rom(path) = source { Some(path) } else { None };
                let settings = Settings { channel: channel.take(), ..settings.clone() };
                let emulator = name.clone();
                let core = startup_thread(move || embed(&emulator, rom.as_deref(), &settings)).await;
                if several { core.with_context(|| format!("emulator {name}"))? } else { core? }
            }
        };
        started.push(Started { name, chosen, demo });
    }
    Ok(started)
}

/// Checks that the settings that modify games are for emulators in `names`, and that each value of `--save` is for
/// one emulator.
///
/// # Errors
/// If they are not. The error names the option.
pub fn check_owners(settings: &Settings, names: &[&str]) -> anyhow::Result<()> {
    check_names("--patch", &settings.patch, names)?;
    check_names("--cheats", &settings.cheats, names)?;
    check_names("--save", &settings.save, names)?;
    check_names("--save-type", &settings.save_type, names)?;
    let unnamed = settings.save.iter().find(|save| named_path(save).0.is_none());
    if let (Some(save), [first, _, ..]) = (unnamed, names) {
        let save = save.display();
        bail!("--save {save}: say for which emulator it is, such as --save {first}={save}");
    }
    Ok(())
}

/// The emulator to serve if the settings do not name any: the mGBA on this machine whose script answers, or else the
/// demo game.
async fn found(address: String) -> Requested {
    let problem = match probe(&address, TIMEOUT).await {
        Found::Script(script) => {
            match script {
                Script::Framewire(version) => info!("found Framewire's script {version} at {address}"),
                Script::MgbaHttp => info!("found mGBA-http's script at {address}"),
            }
            return Requested { name: "mgba".to_owned(), source: Source::Attach(address) };
        }
        Found::Silent => {
            info!(
                "something at {address} accepts connections but does not answer (a paused mGBA?); \
                 --attach {address} attaches to it anyway"
            );
            "the program there does not answer".to_owned()
        }
        Found::Nothing(problem) => problem.to_string(),
        Found::Other(_) => "another program is there".to_owned(),
    };
    info!("{}", instead(&address, &problem, cfg!(feature = "embedded")));
    Requested { name: "demo".to_owned(), source: Source::Demo }
}

/// Says why no mGBA window is served. If this build has an embedded core, also says that the demo game is served, and
/// how to serve something else. Otherwise, the start fails, and its error says what to do.
fn instead(address: &str, problem: &str, has_core: bool) -> String {
    let missing = format!("no script in mGBA answers at {address} ({problem})");
    if !has_core {
        return missing;
    }
    format!(
        "{missing}; serving the built-in demo game instead. For an mGBA window: load the script there (`framewire \
         script -o framewire.lua`), then start again, or start with --attach {address}, which waits for it. For a game \
         without a window: framewire serve GAME.gba"
    )
}

/// Runs `work` on its own thread. If a user's script makes `work` run forever, the program can still be stopped.
async fn startup_thread<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (done, result) = oneshot::channel();
    std::thread::Builder::new().name("start".to_owned()).spawn(move || done.send(work()))?;
    result.await.context("starting the emulator failed")?
}

/// Removes `tcp://` from the start of an address, and adds the default port if there is no port. An IPv6 address
/// without brackets has no port; it gets brackets.
///
/// # Errors
/// If the host is missing, if the address is a URL, or if the port is not a number from 1 to 65535.
pub fn with_port(address: &str) -> anyhow::Result<String> {
    let address = address.strip_prefix("tcp://").unwrap_or(address);
    if address.parse::<Ipv6Addr>().is_ok() {
        return Ok(format!("[{address}]:{DEFAULT_PORT}"));
    }
    if address.is_empty() || address.starts_with(':') {
        bail!(
            "--attach {address:?}: the host is missing; write HOST or HOST:PORT, such as 127.0.0.1:{DEFAULT_PORT}"
        );
    }
    if address.bytes().all(|byte| byte.is_ascii_digit()) {
        bail!(
            "--attach {address}: the host is missing; write HOST or HOST:PORT, such as 127.0.0.1:{address}"
        );
    }
    if address.contains('/') {
        bail!(
            "--attach {address}: a URL is not accepted; write HOST or HOST:PORT, such as 127.0.0.1:{DEFAULT_PORT}"
        );
    }
    match address.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => {
            if !port.parse::<u16>().is_ok_and(|port| port > 0) {
                bail!(
                    "--attach {address}: {port:?} is not a port; use a number from 1 to 65535, or leave it out for {DEFAULT_PORT}"
                );
            }
            Ok(address.to_owned())
        }
        _ => Ok(format!("{address}:{DEFAULT_PORT}")),
    }
}

fn attach(address: String, history: usize) -> Chosen {
    let config = framewire_link::Config { address, ..Default::default() };
    Chosen::Attached(Arc::new(Attached::start(config, &Handle::current(), history)))
}

#[cfg(feature = "embedded")]
fn embed(name: &str, rom: Option<&Path>, settings: &Settings) -> anyhow::Result<Chosen> {
    use framewire_emulator::embedded::Speed;

    let rom = match rom {
        Some(path) => Rom::File(path.to_owned()),
        None => Rom::Bytes(DEMO_ROM),
    };
    let speed = settings.speed.unwrap_or(Speed::Times(1.0));
    let clock = settings.clock.unwrap_or_default();
    let scripts = settings.lua.clone();
    let (paused, mods) = (settings.paused, mods(settings, name)?);
    let history = settings.history();
    let config = Config { rom, speed, paused, clock, scripts, history, mods, console };
    let embedded = match &settings.channel {
        None => Embedded::start(config)?,
        Some(name) => on_channel(config, name)?,
    };
    let state = embedded.state();
    info!(
        "running {} in an embedded core (libmgba {}){}",
        state.title.unwrap_or_default(),
        state.library_version.unwrap_or_default(),
        state.patch.map_or(String::new(), |patch| format!(", with the patch {patch}"))
    );
    Ok(Chosen::Embedded(Arc::new(embedded)))
}

/// The settings that modify the game of the emulator `name`, such as a patch or cheats.
///
/// # Errors
/// If the value of an option is not valid.
#[cfg(feature = "embedded")]
pub fn mods(settings: &Settings, name: &str) -> anyhow::Result<Mods> {
    // If there are several values, the last one counts; only `--cheats` uses all of them.
    let patching = match values_for(&settings.patch, name).pop() {
        None => Patching::NextTo,
        Some(path) => patching(path),
    };
    let save_type = values_for(&settings.save_type, name).pop().map(Path::to_string_lossy);
    let hardware = Hardware {
        bios: settings.bios.clone(),
        gb_model: parsed("--gb-model", settings.gb_model.as_deref())?,
        borders: settings.no_sgb_borders != Some(true),
        palette: parsed("--gb-palette", settings.gb_palette.as_deref())?,
        save_type: parsed("--save-type", save_type.as_deref())?.unwrap_or(SaveType::Auto),
    };
    Ok(Mods {
        options: CoreOptions { patching, hardware },
        cheats: values_for(&settings.cheats, name).into_iter().map(Path::to_owned).collect(),
        save: values_for(&settings.save, name).pop().map(Path::to_owned),
    })
}

/// Parses the value of an option, if it is set.
#[cfg(feature = "embedded")]
fn parsed<T: FromStr<Err = String>>(option: &str, text: Option<&str>) -> anyhow::Result<Option<T>> {
    text.map(|text| text.parse().map_err(|problem| anyhow::anyhow!("{option} {text}: {problem}"))).transpose()
}

/// Interprets a value of `--patch`: `none` or a file.
#[cfg(feature = "embedded")]
pub fn patching(path: &Path) -> Patching {
    if path.as_os_str() == "none" { Patching::Off } else { Patching::File(path.to_owned()) }
}

/// Checks whether a channel with this name can be created. Creates nothing.
///
/// # Errors
/// If it cannot.
#[cfg(all(feature = "embedded", target_os = "linux"))]
pub fn check_channel(name: &str) -> anyhow::Result<()> {
    Ok(Embedded::check_channel(name)?)
}

#[cfg(not(all(feature = "embedded", target_os = "linux")))]
pub fn check_channel(_name: &str) -> anyhow::Result<()> {
    anyhow::bail!("{NO_CHANNEL}")
}

/// The error of `--channel` where no channel can be created.
#[cfg(not(all(feature = "embedded", target_os = "linux")))]
const NO_CHANNEL: &str = "channels need Linux and an embedded core; remove --channel";

#[cfg(all(feature = "embedded", target_os = "linux"))]
fn on_channel(config: Config, name: &str) -> anyhow::Result<Embedded> {
    Ok(Embedded::start_on_channel(config, name)?)
}

#[cfg(all(feature = "embedded", not(target_os = "linux")))]
fn on_channel(_config: Config, _name: &str) -> anyhow::Result<Embedded> {
    anyhow::bail!("{NO_CHANNEL}")
}

#[cfg(not(feature = "embedded"))]
fn embed(_name: &str, _rom: Option<&Path>, _settings: &Settings) -> anyhow::Result<Chosen> {
    anyhow::bail!(
        "this build has no embedded core, so it needs a script in mGBA, at 127.0.0.1:{DEFAULT_PORT} or at another address; \
         start mGBA with a ROM and load the script (`framewire script`), or name its address with --attach HOST:PORT"
    )
}

/// A receiver of the log lines of an embedded core, which writes them to this program's log.
#[cfg(feature = "embedded")]
fn console() -> Console {
    use framewire_libmgba::Level;
    use tracing::{debug, error, warn};

    Box::new(|level, line| match level {
        Level::Debug | Level::Stub | Level::GameError => debug!(target: "framewire::console", "{line}"),
        Level::Info => info!(target: "framewire::console", "{line}"),
        Level::Warn => warn!(target: "framewire::console", "{line}"),
        Level::Error | Level::Fatal => error!(target: "framewire::console", "{line}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_left_out() {
        for (text, address) in [
            ("desk", "desk:8888"),
            ("desk:9000", "desk:9000"),
            ("tcp://[::1]:9000", "[::1]:9000"),
            ("[::1]", "[::1]:8888"),
            ("::1", "[::1]:8888"),
        ] {
            assert_eq!(with_port(text).unwrap(), address);
        }
    }

    #[tokio::test]
    async fn the_log_says_why_the_demo_game_is_served() {
        let (_reserved, nobody) = crate::reserved_port::reserved_port();
        let nobody = nobody.to_string();
        assert_eq!(found(nobody.clone()).await.source, Source::Demo);
        let message = instead(&nobody, "Connection refused (os error 111)", true);
        for part in
            [nobody.as_str(), "refused", "demo game", "framewire script", "--attach", "serve GAME.gba"]
        {
            assert!(message.contains(part), "{part}: {message}");
        }
    }

    #[test]
    fn a_build_without_an_embedded_core_does_not_log_that_it_serves_the_demo_game() {
        let message = instead("127.0.0.1:8888", "Connection refused (os error 111)", false);
        assert!(message.contains("127.0.0.1:8888 (Connection refused"), "{message}");
        assert!(!message.contains("demo game"), "{message}");
    }

    #[test]
    fn an_address_without_a_host_is_refused() {
        for text in ["", ":9000", "tcp://"] {
            let error = with_port(text).expect_err(text).to_string();
            assert!(error.contains("the host is missing"), "{error}");
        }
    }

    #[test]
    fn a_port_alone_and_a_url_are_refused_as_addresses() {
        let error = with_port("8889").expect_err("a port alone").to_string();
        assert!(error.contains("the host is missing") && error.contains("127.0.0.1:8889"), "{error}");
        for text in ["http://127.0.0.1:8888", "http://127.0.0.1", "127.0.0.1:8888/"] {
            let error = with_port(text).expect_err(text).to_string();
            assert!(error.contains("a URL is not accepted"), "{error}");
        }
    }

    #[test]
    fn an_invalid_port_is_refused() {
        for (text, port) in [("127.0.0.1:99999", "99999"), ("desk:0", "0"), ("desk:", ""), ("[::1]:x", "x")] {
            let error = with_port(text).expect_err(text).to_string();
            assert!(
                error.contains(&format!("{port:?} is not a port; use a number from 1 to 65535")),
                "{error}"
            );
        }
    }
}
