//! The arguments that say which server a command talks to.

use std::path::{Path, PathBuf};

use framewire_http::Token;
use ureq::http::{HeaderValue, Uri};

use super::Failure;
use super::client::{Address, Client};
#[cfg(feature = "embedded")]
use super::game::{Game, GameArgs};
use crate::output;

/// A variable with a token, for machines where a file is inconvenient.
const TOKEN: &str = "FRAMEWIRE_TOKEN";

/// The arguments of every command.
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

/// A server to talk to, and the emulator in this process if there is one.
pub struct Session {
    /// The client.
    pub client: Client,
    /// The emulator of `--rom`, paused.
    #[cfg(feature = "embedded")]
    pub game: Option<Game>,
}

impl Session {
    /// Lets the game of `--rom` run, at the console's speed. On a server, the emulator keeps running or stays paused.
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
    /// The server, or the one in this process if a ROM is named. A server on the network is not asked for anything yet.
    ///
    /// # Errors
    /// If a file cannot be used, or the ROM cannot be started.
    pub fn open(&self) -> Result<Session, Failure> {
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

    /// A client for the server on the network.
    ///
    /// # Errors
    /// If a file cannot be used.
    pub fn client(&self) -> Result<Client, Failure> {
        Client::new(Address {
            url: self.url.clone(),
            emulator: self.emulator.clone(),
            token: token(self.token_file.as_deref())?,
            certificate: self.cacert.clone(),
        })
    }
}

/// The token for a server: the one in `file`, or else in the variable.
///
/// # Errors
/// If there is none in the file, or it cannot be a token.
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

/// The address of a server, without a slash at its end. `http://` may be left out.
///
/// # Errors
/// If it is not an address of a server.
pub fn url(text: &str) -> Result<String, String> {
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let full = full.trim_end_matches('/');
    let advice = "write it like http://127.0.0.1:5000";
    let uri: Uri = full.parse().map_err(|error| format!("{error}; {advice}"))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        scheme => {
            return Err(format!("{}:// is not a kind of server; {advice}", scheme.unwrap_or_default()));
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
