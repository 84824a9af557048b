//! The one-shot commands: each does one thing in an emulator and ends. They are clients of the HTTP API: of a server
//! that is already running or, with `--rom`, of a server in this process.

pub mod client;
pub mod complete;
#[cfg(feature = "embedded")]
mod game;
pub mod press;
pub mod read;
pub mod screenshot;
pub mod server;
mod sse;
pub mod state;
pub mod wait;
pub mod watch;
pub mod write;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use crate::{hint, output};

/// Why a command could not do its work. The text says what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server or the emulator refused the request, a condition did not become true, or the result could not be
    /// written.
    #[error("{0}")]
    Refused(String),
    /// Something on the command line cannot be used.
    #[error("{0}")]
    Input(String),
    /// There is no server, the connection to it broke, or what answers is not a Framewire server of this version.
    #[error("{0}")]
    Connection(String),
    /// The program that reads the output has ended, as in `framewire watch score | head`. This counts as a success.
    #[error("standard output is closed")]
    Closed,
}

impl Failure {
    /// The failure of a request that sent this file. If the failure can be about the file, its text begins with the
    /// name of the file.
    fn with_file(self, file: &Path) -> Failure {
        let named = |text: String| format!("{}: {text}", file.display());
        match self {
            Failure::Refused(text) => Failure::Refused(named(text)),
            Failure::Input(text) => Failure::Input(named(text)),
            other => other,
        }
    }
}

/// The exit codes, for the help of each command.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 not possible or the condition is not true, 2 wrong input, 3 no server or no connection.";

/// The exit code of a command. If the command failed, prints why.
pub fn end(result: Result<(), Failure>) -> anyhow::Result<ExitCode> {
    let Err(failure) = result else { return Ok(ExitCode::SUCCESS) };
    let code: u8 = match failure {
        Failure::Refused(_) => 1,
        Failure::Input(_) => 2,
        Failure::Connection(_) => 3,
        Failure::Closed => return Ok(ExitCode::SUCCESS),
    };
    output::notice(format_args!("framewire: {}", hint::naming_source(failure.to_string())));
    Ok(ExitCode::from(code))
}

/// A parser of an argument that is a whole number. Its error says which numbers are accepted.
pub fn whole(least: u32, most: u32) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("use a whole number from {least} to {most}"))
    }
}

/// Prints a line of the result.
fn print(line: impl Display) -> Result<(), Failure> {
    print_bytes(format!("{line}\n").as_bytes())
}

/// Writes bytes to standard output.
fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Closed),
        Err(error) => Err(Failure::Refused(format!("cannot write to standard output: {error}"))),
    }
}

/// A field that the reply must have.
fn field<'a>(reply: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    reply.get(name).ok_or_else(|| {
        Failure::Connection(format!(
            "the server's reply has no field {name}: {reply}; is it a Framewire server of this version ({})?",
            env!("CARGO_PKG_VERSION")
        ))
    })
}
