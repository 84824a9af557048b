//! `framewire doctor`: what is found here, what is wrong, and what to do about it.

use std::process::ExitCode;
use std::time::Duration;

use framewire_link::{Found, Script, probe};
use framewire_protocol::DEFAULT_PORT;

use crate::settings::USUAL_LISTEN;
use crate::{causes, say};

/// How long each thing that is looked for has to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Arguments of `framewire doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the script should listen
    #[arg(long, value_name = "HOST:PORT", env = "FRAMEWIRE_ATTACH", default_value_t = format!("127.0.0.1:{DEFAULT_PORT}"))]
    attach: String,
    /// Where HTTP should be served
    #[arg(long, value_name = "ADDR:PORT", env = "FRAMEWIRE_LISTEN", default_value = USUAL_LISTEN)]
    listen: String,
}

/// One finding: whether it is well, what it is, and what to do.
struct Finding {
    well: bool,
    text: String,
    advice: Option<String>,
}

fn well(text: impl Into<String>) -> Finding {
    Finding { well: true, text: text.into(), advice: None }
}

fn wrong(text: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { well: false, text: text.into(), advice: Some(advice.into()) }
}

/// Prints the findings; the exit code is 1 if one of them stands in the way.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let findings = runtime
        .block_on(async { vec![program(), library(), script(&args.attach).await, port(&args.listen).await] });
    for finding in &findings {
        say::line(format_args!("{} {}", if finding.well { "ok  " } else { "look" }, finding.text))?;
        if let Some(advice) = &finding.advice {
            say::line(format_args!("     {advice}"))?;
        }
    }
    Ok(if findings.iter().all(|finding| finding.well) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn program() -> Finding {
    well(format!(
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
    match Core::from_bytes(crate::assets::DEMO_ROM) {
        Ok(core) => well(format!("libmgba {version} runs the demo game ({})", core.title())),
        Err(error) => wrong(
            format!("libmgba {version} does not run the demo game: {}", causes::in_a_line(&error)),
            "install the distribution's libmgba again (`make setup` in the checkout), or use --attach with a stock mGBA",
        ),
    }
}

#[cfg(not(feature = "embedded"))]
fn library() -> Finding {
    well("built without libmgba: --attach works, --rom does not")
}

async fn script(address: &str) -> Finding {
    let mine = env!("CARGO_PKG_VERSION");
    match probe(address, PATIENCE).await {
        Found::Script(Script::Framewire(version)) if version == mine => {
            well(format!("script {version} answers at {address}"))
        }
        Found::Script(Script::Framewire(version)) => wrong(
            format!("script {version} answers at {address}, this program is {mine}"),
            "write the script that belongs to this program (`framewire script -o framewire.lua`) and load it again",
        ),
        Found::Script(Script::MgbaHttp) => wrong(
            format!("mGBA-http's script answers at {address}; it works, one request a frame"),
            "load Framewire's script instead for more: `framewire script -o framewire.lua`",
        ),
        Found::Silent => wrong(
            format!("something at {address} accepts connections and does not answer"),
            "if that is mGBA, it is paused or has no ROM loaded: load one, continue it (Ctrl+P) and close open menus",
        ),
        Found::Other(answer) => wrong(
            format!("something else listens at {address}{}: it answered {answer:?}", owner(address)),
            "give the script another port (`framewire = {port = 8889}` before it is loaded) and use --attach 127.0.0.1:8889",
        ),
        Found::Nothing(problem) => wrong(
            format!("no script at {address}: {problem}"),
            "for an mGBA window: start mGBA, load a ROM, then Tools > Scripting... > File > Load script with the file that \
             `framewire script -o framewire.lua` writes. Without a window: `framewire serve --rom FILE`",
        ),
    }
}

async fn port(address: &str) -> Finding {
    match tokio::net::TcpListener::bind(address).await {
        Ok(_) => well(format!("{address} is free for HTTP")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => wrong(
            format!("{address} is taken{}", owner(address)),
            "stop that program, or serve elsewhere: `framewire serve --listen 127.0.0.1:5001`",
        ),
        Err(error) => wrong(
            format!("{address} cannot be listened at: {error}"),
            "choose another address: `framewire serve --listen 127.0.0.1:5001`",
        ),
    }
}

/// The process that listens at an address of this machine, as a phrase; empty where it cannot be seen.
#[cfg(target_os = "linux")]
fn owner(address: &str) -> String {
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    port.and_then(listener::of_port).map_or_else(String::new, |name| format!(" by {name}"))
}

#[cfg(not(target_os = "linux"))]
fn owner(_address: &str) -> String {
    String::new()
}

/// Finds the listener of a port in Linux' `/proc` (see proc(5), "/proc/net/tcp").
#[cfg(target_os = "linux")]
mod listener {
    use std::fs;

    /// State of a listening socket in `/proc/net/tcp`.
    const LISTEN: &str = "0A";

    pub fn of_port(port: u16) -> Option<String> {
        let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
            .into_iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .find_map(|table| inode(&table, port))?;
        let socket = format!("socket:[{inode}]");
        fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
            let holds = fs::read_dir(process.path().join("fd")).ok()?.flatten().any(|file| {
                fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == socket.as_str())
            });
            let name = fs::read_to_string(process.path().join("comm")).ok()?;
            holds.then(|| format!("{} (process {})", name.trim(), process.file_name().to_string_lossy()))
        })
    }

    /// The inode of the socket that listens at `port`, from the text of a table.
    fn inode(table: &str, port: u16) -> Option<u64> {
        table.lines().skip(1).find_map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let (_, hex) = fields.get(1)?.rsplit_once(':')?;
            let matches = u16::from_str_radix(hex, 16).ok()? == port && *fields.get(3)? == LISTEN;
            matches.then(|| fields.get(9)?.parse().ok()).flatten()
        })
    }
}
