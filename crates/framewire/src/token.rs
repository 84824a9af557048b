//! `framewire token`: creates a token, the secret that clients send to a server.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use framewire_http::Token;

use crate::output;

/// Arguments of `framewire token`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write the token to this new file, which only you can read, instead of printing it
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Creates a token and writes it to a file or prints it.
///
/// # Errors
/// If the system provides no random numbers, or the file already exists or cannot be written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let token = Token::random()?;
    let Some(path) = args.file else {
        output::line(format_args!("{}", token.reveal())).context("cannot print the token")?;
        return Ok(ExitCode::SUCCESS);
    };
    write(&path, token.reveal())?;
    output::notice(format_args!(
        "wrote {0}; to let other machines connect: framewire serve --listen 0.0.0.0:5000 --token-file {0}",
        path.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, token: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} already exists; remove it first if its token is no longer in use", path.display())
        }
        opened => opened.with_context(|| format!("cannot create {}", path.display()))?,
    };
    writeln!(file, "{token}").with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::random().unwrap();
        write(&path, token.reveal()).unwrap();
        assert_eq!(Token::from_file(&path).unwrap().reveal(), token.reveal());
        let error = write(&path, "other").unwrap_err().to_string();
        assert!(error.contains("already exists"), "{error}");
        assert_eq!(Token::from_file(&path).unwrap().reveal(), token.reveal());
    }
}
