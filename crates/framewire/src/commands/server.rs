//! The arguments that say which server a command uses.

use std::path::{Path, PathBuf};

use framewire_http::Token;
use ureq::http::{HeaderValue, Uri};

use super::Failure;
use super::client::{Address, Client};
#[cfg(feature = "embedded")]
use super::game::{Game, GameArgs};
#[cfg(feature = "embedded")]
use crate::hint;
use crate::output;

/// The environment variable for the token, for machines where a file is inconvenient.
const TOKEN: &str = "FRAMEWIRE_TOKEN";

/// The options that say how to use a server, which have no effect with `--rom`.
#[cfg(feature = "embedded")]
const OF_SERVER: [&str; 4] = ["--url", "--emulator", "--token-file", "--cacert"];

/// The arguments that all one-shot commands have.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server and output")]
pub struct ServerArgs {
    /// Address of the server
    #[arg(long, value_name = "URL", env = "FRAMEWIRE_URL", default_value = "http://127.0.0.1:5000", value_parser = url)]
    url: String,
    /// The emulator, if the server has several [default: the first]
    #[arg(long, value_name = "NAME")]
    emulator: Option<String>,
    /// Send the token in this file; without it, the one in the variable FRAMEWIRE_TOKEN, if there is one
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Trust the certificate in this PEM file, for an https:// address [default: those that this machine trusts]
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Print JSON, as the HTTP API returns it
    #[arg(long)]
    pub json: bool,
    #[cfg(feature = "embedded")]
    #[command(flatten)]
    game: GameArgs,
}

/// The server that a command uses, and the game in this process if there is one.
pub struct Session {
    /// A client of the server.
    pub client: Client,
    /// The game of `--rom`, which is paused at first.
    #[cfg(feature = "embedded")]
    pub game: Option<Game>,
}

impl Session {
    /// Resumes the game of `--rom`, at the console's speed. Without `--rom`, does nothing: the server's emulator keeps
    /// running or stays paused.
    pub fn run(&self) -> Result<(), Failure> {
        #[cfg(feature = "embedded")]
        if self.game.is_some() {
            self.client.change("POST", "/v1/speed", r#"{"speed": 1}"#)?;
            self.client.change("POST", "/v1/resume", "")?;
        }
        Ok(())
    }
}

impl ServerArgs {
    /// If a ROM is named with `--rom`, starts the game and its server, and loads the state, runs the frames and plays
    /// the keys that the arguments name. Otherwise creates a client of the server at `--url`, but does not connect yet.
    ///
    /// # Errors
    /// If the command line has both `--rom` and an option for a server, or if the game cannot be started. Environment
    /// variables for a server are allowed with `--rom`.
    pub fn open(&self) -> Result<Session, Failure> {
        #[cfg(feature = "embedded")]
        if self.game.rom.is_some()
            && let Some(option) = OF_SERVER.into_iter().find(|option| hint::is_on_command_line(option))
        {
            return Err(Failure::Input(format!(
                "--rom cannot be used with {option}, which is for a server; take one of them out"
            )));
        }
        #[cfg(feature = "embedded")]
        if let Some(game) = self.game.start()? {
            let client = game.client()?;
            self.game.prepare(&client)?;
            return Ok(Session { client, game: Some(game) });
        }
        Ok(Session {
            client: self.client()?,
            #[cfg(feature = "embedded")]
            game: None,
        })
    }

    /// A client of the server at `--url`.
    pub fn client(&self) -> Result<Client, Failure> {
        Client::new(Address {
            url: self.url.clone(),
            emulator: self.emulator.clone(),
            token: token(self.token_file.as_deref())?,
            certificate: self.cacert.clone(),
        })
    }
}

/// The token for a server: the one in `file`, or else the one in the variable `FRAMEWIRE_TOKEN`. `None` if there is
/// neither.
///
/// # Errors
/// If the file does not contain a token, or the variable contains something that cannot be a token.
pub fn token(file: Option<&Path>) -> Result<Option<String>, Failure> {
    if let Some(file) = file {
        let token = Token::from_file(file)
            .map_err(|error| Failure::Input(format!("--token-file: {}", output::causes_in_a_line(&error))))?;
        return Ok(Some(token.reveal().to_owned()));
    }
    let Ok(token) = std::env::var(TOKEN) else { return Ok(None) };
    let token = token.trim();
    if token.is_empty() {
        return Ok(None);
    }
    if HeaderValue::from_str(token).is_err() {
        return Err(Failure::Input(format!(
            "{TOKEN} has characters that a token cannot have; `framewire token` creates a token"
        )));
    }
    Ok(Some(token.to_owned()))
}

/// Parses the address of a server, in which `http://` may be left out. Returns it without a slash at its end.
pub fn url(text: &str) -> Result<String, String> {
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let full = full.trim_end_matches('/');
    let advice = "write it like http://127.0.0.1:5000";
    let uri: Uri = full.parse().map_err(|error| format!("{error}; {advice}"))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        scheme => {
            return Err(format!("{}:// is not supported; {advice}", scheme.unwrap_or_default()));
        }
    }
    let fits = uri.authority().is_some_and(|authority| {
        let host = authority.host();
        let port = authority.as_str().strip_prefix(host).unwrap_or_default();
        !host.is_empty() && (port.is_empty() || authority.port_u16().is_some())
    });
    if !fits || uri.query().is_some() {
        return Err(format!("not the address of a server; {advice}"));
    }
    Ok(full.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, expected) in [
            ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
            ("127.0.0.1:5001", "http://127.0.0.1:5001"),
            ("localhost:5000/", "http://localhost:5000"),
            ("https://desk:5000/game/", "https://desk:5000/game"),
            ("http://[::1]:5000", "http://[::1]:5000"),
        ] {
            assert_eq!(url(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", "ftp://desk", "http://", "http://desk:port", "http://desk/?emulator=a", "a b"] {
            assert!(url(text).is_err(), "{text}");
        }
    }
}
