//! `framewire doctor`: checks the setup, and says what is wrong and what to do.

mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[cfg(feature = "embedded")]
use anyhow::Context;
use framewire_link::{Found, Script, probe};
use framewire_protocol::DEFAULT_PORT;
use framewire_symbols::SymbolFiles;

use crate::requested::{Requested, Source, check_names, named_path};
use crate::settings::Settings;
use crate::{choose, hint, output, safety, serve, traces};

/// How long a check waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The result of one check: whether all is well, what was found, and advice on what to do.
struct Finding {
    is_ok: bool,
    text: String,
    advice: Option<String>,
}

fn ok(text: impl Into<String>) -> Finding {
    Finding { is_ok: true, text: text.into(), advice: None }
}

fn with_advice(finding: Finding, advice: impl Into<String>) -> Finding {
    Finding { advice: Some(advice.into()), ..finding }
}

/// The finding for an error whose text already says what to do.
fn refused(error: &(dyn std::error::Error + 'static)) -> Finding {
    let text = hint::naming_source(output::causes_in_a_line(error));
    Finding { is_ok: false, text, advice: None }
}

fn wrong(text: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { is_ok: false, text: text.into(), advice: Some(advice.into()) }
}

/// Checks what `framewire serve` would use with the same arguments, and prints the findings. The exit code is 1 if
/// there is a problem.
///
/// # Errors
/// If the settings cannot be read or contradict each other, or the findings cannot be printed.
pub fn run(args: serve::Args) -> anyhow::Result<ExitCode> {
    let settings = args.settings()?;
    // The client for the collector cannot be created within a runtime.
    let traces = settings.otlp.as_deref().and_then(|collector| traces::start(collector).err());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut findings = runtime.block_on(findings(&settings))?;
    findings.extend(traces.map(|error| refused(error.as_ref())));
    for finding in &findings {
        output::line(format_args!("{} {}", if finding.is_ok { "ok  " } else { "look" }, finding.text))?;
        if let Some(advice) = &finding.advice {
            output::line(format_args!("     {advice}"))?;
        }
    }
    Ok(if findings.iter().all(|finding| finding.is_ok) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn findings(settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    let requested = settings.requested()?;
    let address = settings.listen()?;
    let mut findings = vec![program(), library()];
    let served = server::findings(settings, address).await;
    // If a server is running and no emulator was requested, only the server's emulators count. `served` is about
    // them.
    if served.is_none() || !requested.is_empty() {
        findings.extend(emulators(settings, &requested).await);
        findings.extend(settings.lua.iter().map(|path| lua(path)));
    }
    // A running server may be the one that serves the channel.
    if served.is_none() {
        findings.extend(settings.channel.as_deref().map(channel));
    }
    findings.extend(symbols(settings, &requested));
    findings.push(data(settings));
    findings.extend(access(settings, address));
    match served {
        Some(served) => findings.extend(served),
        None => findings.push(port(address).await),
    }
    Ok(findings)
}

fn program() -> Finding {
    ok(format!(
        "framewire {} for {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    ))
}

#[cfg(feature = "embedded")]
fn library() -> Finding {
    use framewire_libmgba::Core;
    let version = framewire_libmgba::version();
    match Core::from_bytes(choose::DEMO_ROM) {
        Ok(core) => ok(format!(
            "libmgba {version} ({}) runs the demo game ({})",
            framewire_libmgba::BUILD,
            core.title()
        )),
        Err(error) => wrong(
            format!("libmgba {version} does not run the demo game: {}", output::causes_in_a_line(&error)),
            "build framewire again, or use --attach with a stock mGBA",
        ),
    }
}

/// Checks the emulators that `framewire serve` would serve, except the demo game, which [`library`] checks.
async fn emulators(settings: &Settings, requested: &[Requested]) -> Vec<Finding> {
    if requested.is_empty() {
        return vec![script(&format!("127.0.0.1:{DEFAULT_PORT}")).await];
    }
    let names: Vec<&str> = requested.iter().map(|requested| requested.name.as_str()).collect();
    let mut findings = Vec::new();
    findings.extend(choose::check_owners(settings, &names).err().map(|error| refused(error.as_ref())));
    for Requested { name, source } in requested {
        let game = match source {
            Source::Attach(address) => {
                findings.push(script(address).await);
                continue;
            }
            Source::Rom(path) => Some(path.as_path()),
            Source::Demo => None,
        };
        findings.extend(game.map(rom));
        findings.extend(mods(settings, name, game).err().map(|error| refused(error.as_ref())));
    }
    findings
}

fn channel(name: &str) -> Finding {
    choose::check_channel(name)
        .map_or_else(|error| refused(error.as_ref()), |()| ok(format!("the channel {name} can be created")))
}

/// Checks the files of `--symbols`.
fn symbols(settings: &Settings, requested: &[Requested]) -> Vec<Finding> {
    if settings.symbols.is_empty() {
        return Vec::new();
    }
    // If no emulator was requested, `framewire serve` looks for one. Its name is not known here.
    let names: Vec<&str> = requested.iter().map(|requested| requested.name.as_str()).collect();
    if !names.is_empty()
        && let Err(error) = check_names("--symbols", &settings.symbols, &names)
    {
        return vec![refused(error.as_ref())];
    }
    let read = |setting: &PathBuf| {
        let (_, path) = named_path(setting);
        match SymbolFiles::default().load(path) {
            Ok(()) => ok(format!("{} contains symbols", path.display())),
            Err(error) => wrong(output::causes_in_a_line(&error), "name another file with --symbols"),
        }
    };
    settings.symbols.iter().map(read).collect()
}

/// Checks that files can be created in the folder of snapshots and recordings or, if it does not exist yet, in the
/// nearest folder above it. Leaves no file there.
fn data(settings: &Settings) -> Finding {
    let Some(folder) = settings.data() else {
        let advice = "choose a folder with --data; without one, snapshots and recordings are refused";
        return wrong("there is no folder for snapshots and recordings", advice);
    };
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    match tempfile::tempfile_in(there) {
        Ok(_) => ok(format!("snapshots and recordings are kept in {}", folder.display())),
        Err(error) => wrong(
            format!("snapshots and recordings cannot be kept in {}: {error}", folder.display()),
            "choose a writable folder with --data",
        ),
    }
}

/// Checks tokens, TLS and the other access settings.
fn access(settings: &Settings, address: SocketAddr) -> Vec<Finding> {
    let problem = settings.access().and_then(|access| safety::check(address, &access)).err();
    let problems = [problem, settings.tls().err()];
    problems.into_iter().flatten().map(|error| refused(error.as_ref())).collect()
}

#[cfg(feature = "embedded")]
fn rom(path: &Path) -> Finding {
    match framewire_libmgba::Core::open(path) {
        Ok(mut core) => {
            let text = format!("{} is a ROM ({})", path.display(), core.title());
            match core.rom_problems().join("; ") {
                problems if problems.is_empty() => ok(text),
                problems => wrong(format!("{text}: {problems}"), "if the game fails, get the file again"),
            }
        }
        Err(error) => wrong(output::causes_in_a_line(&error), "name another file with --rom"),
    }
}

/// Checks the settings that modify the game of the emulator `name`: `rom`, or else the demo game.
#[cfg(feature = "embedded")]
fn mods(settings: &Settings, name: &str, rom: Option<&Path>) -> anyhow::Result<()> {
    use framewire_emulator::embedded::{Cheats, check_save};
    use framewire_libmgba::Core;
    let mods = choose::mods(settings, name)?;
    let mut core = match rom {
        // The function `rom` reports this.
        Some(path) if Core::open(path).is_err() => return Ok(()),
        Some(path) => Core::open_with(path, &mods.options)?,
        None => Core::from_bytes_with(choose::DEMO_ROM, &mods.options)?,
    };
    let mut cheats = Cheats::default();
    for file in &mods.cheats {
        cheats.load(&mut core, file)?;
    }
    mods.save.map_or(Ok(()), |save| check_save(&save, core.path()).map_err(anyhow::Error::msg))
}

#[cfg(feature = "embedded")]
fn lua(path: &Path) -> Finding {
    match check_lua(path) {
        Ok(()) => ok(format!("{} is a Lua script", path.display())),
        Err(error) => wrong(
            output::causes_in_a_line(error.as_ref()),
            "correct the script, or name another file with --lua",
        ),
    }
}

/// Checks that a file is valid Lua. Does not run its code.
#[cfg(feature = "embedded")]
fn check_lua(path: &Path) -> anyhow::Result<()> {
    let source = framewire_files::read(path, framewire_libmgba::MAX_SCRIPT)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut core = framewire_libmgba::Core::from_bytes(choose::DEMO_ROM)?;
    core.attach_scripts(|_, _| {})?;
    // Lua compiles all of this, and then runs only the `return`.
    let source = format!("do return end {}", String::from_utf8_lossy(&source));
    Ok(core.run_script_source(&path.display().to_string(), &source)?)
}

#[cfg(not(feature = "embedded"))]
fn lua(path: &Path) -> Finding {
    wrong(
        format!("{} needs an embedded core, which this build does not have", path.display()),
        "remove --lua, and load the script in the window of mGBA",
    )
}

#[cfg(not(feature = "embedded"))]
fn mods(_settings: &Settings, _name: &str, _rom: Option<&Path>) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(not(feature = "embedded"))]
fn rom(path: &Path) -> Finding {
    wrong(
        format!("{} needs an embedded core, which this build does not have", path.display()),
        "remove --rom and use --attach with a stock mGBA, or build with libmgba (the feature `embedded`)",
    )
}

#[cfg(not(feature = "embedded"))]
fn library() -> Finding {
    ok("built without libmgba: --attach works, --rom does not")
}

async fn script(address: &str) -> Finding {
    let mine = env!("CARGO_PKG_VERSION");
    match probe(address, TIMEOUT).await {
        Found::Script(Script::Framewire(version)) if version == mine => {
            ok(format!("script {version} answers at {address}"))
        }
        Found::Script(Script::Framewire(version)) => wrong(
            format!("script {version} answers at {address}; this program is {mine}"),
            "write this program's script (`framewire script -o framewire.lua`) and load it again",
        ),
        Found::Script(Script::MgbaHttp) => wrong(
            format!("mGBA-http's script answers at {address}; it works, with one request per frame"),
            "for more, load Framewire's script instead: `framewire script -o framewire.lua`",
        ),
        Found::Silent => wrong(
            format!("something at {address} accepts connections and does not answer"),
            "if that is mGBA, it is paused or has no ROM: load a ROM, continue (Ctrl+P) and close open menus",
        ),
        Found::Other(answer) => wrong(
            format!("another program listens at {address}{}: it answered {answer:?}", owner(address)),
            "give the script another port (`framewire = {port = 8889}` before it is loaded) and use --attach 127.0.0.1:8889",
        ),
        Found::Nothing(problem) => wrong(
            format!("no script at {address}: {problem}"),
            "for an mGBA window: start mGBA, load a ROM, then Tools > Scripting... > File > Load script with the file that \
             `framewire script -o framewire.lua` writes. Without a window: `framewire serve --rom FILE`",
        ),
    }
}

async fn port(address: SocketAddr) -> Finding {
    match tokio::net::TcpListener::bind(address).await {
        Ok(_) => ok(format!("{address} is free for HTTP")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => wrong(
            format!("{address} is taken{}", owner(&address.to_string())),
            "stop that program, or use another address: `framewire serve --listen 127.0.0.1:5001`",
        ),
        Err(error) => wrong(
            format!("cannot listen at {address}: {}", output::causes_in_a_line(&error)),
            "choose another address: `framewire serve --listen 127.0.0.1:5001`",
        ),
    }
}

/// Returns `" by NAME (process ID)"` for the process that listens at an address of this machine, or an empty text if
/// that process cannot be found or the address belongs to another machine.
#[cfg(target_os = "linux")]
fn owner(address: &str) -> String {
    use std::net::{ToSocketAddrs, UdpSocket};
    // Only addresses of this machine can be bound.
    let here = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
    let found = address.to_socket_addrs().ok().and_then(|mut all| all.find(here));
    found.and_then(|address| listener(address.port())).map_or_else(String::new, |name| format!(" by {name}"))
}

#[cfg(not(target_os = "linux"))]
fn owner(_address: &str) -> String {
    String::new()
}

/// The name and id of the process that listens on a port, if it belongs to this user.
#[cfg(target_os = "linux")]
fn listener(port: u16) -> Option<String> {
    use std::fs;
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inode = tables.iter().find_map(|table| listening_socket(&fs::read_to_string(table).ok()?, port))?;
    let link = PathBuf::from(format!("socket:[{inode}]"));
    for process in fs::read_dir("/proc").ok()?.flatten() {
        // The folder of each process is named after its id. `self` is another name for one of these folders.
        if !process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { continue };
        if files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == link)) {
            let name = fs::read_to_string(process.path().join("comm")).ok()?;
            return Some(format!("{} (process {})", name.trim_end(), process.file_name().display()));
        }
    }
    None
}

/// The inode of the socket that listens on a port, from a table in the format of `/proc/net/tcp`.
#[cfg(target_os = "linux")]
fn listening_socket(table: &str, port: u16) -> Option<String> {
    const LISTENING: &str = "0A";
    let port = format!(":{port:04X}");
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, _, _, _, _, _, inode, ..] = fields[..] else { return None };
        if state == LISTENING && local.ends_with(&port) { Some(inode.to_owned()) } else { None }
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::owner;

    #[test]
    fn a_process_is_named_only_for_addresses_of_this_machine() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost"] {
            let owner = owner(&format!("{host}:{port}"));
            assert!(owner.contains(&format!("(process {})", std::process::id())), "{host}: {owner:?}");
        }
        // An address for documentation (RFC 5737), which no machine has.
        assert_eq!(owner(&format!("192.0.2.1:{port}")), "");
    }
}
