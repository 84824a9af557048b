//! The access settings, and the check that other machines are not served without a token.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, bail};
use framewire_http::{Access, Files, Pages, Tls, Token, Tokens};

use crate::requested::Source;
use crate::settings::Settings;

impl Settings {
    /// The access rules: which callers may send which requests.
    ///
    /// # Errors
    /// If an origin, a host name, a token file or the folder of `--files` cannot be used, or if both token files
    /// contain the same token.
    pub fn access(&self) -> anyhow::Result<Access> {
        let mut pages = Pages::default();
        for origin in &self.allow_origin {
            pages.allow_origin(origin).context("--allow-origin")?;
        }
        for name in &self.allow_host {
            pages.allow_host(name).context("--allow-host")?;
        }
        let full = self.token_file.as_deref().map(Token::from_file).transpose().context("--token-file")?;
        let read =
            self.read_token_file.as_deref().map(Token::from_file).transpose().context("--read-token-file")?;
        let tokens = Tokens::new(full, read)?;
        let files = self.files.as_deref().map(Files::within).transpose().context("--files")?;
        if files.is_some() {
            self.check_attached()?;
        }
        Ok(Access { pages, tokens, files, scripts: self.allow_script == Some(true) })
    }

    /// Checks that `--files` can be enforced: all emulators must run on this machine, where they see the same folders
    /// as this program.
    fn check_attached(&self) -> anyhow::Result<()> {
        for requested in self.requested()? {
            if let Source::Attach(address) = requested.source
                && !is_local(&address)
            {
                bail!(
                    "--files cannot be used with --attach {address}: paths on that machine cannot be \
                     checked from here. Remove --files; without it, clients on other machines cannot name files"
                );
            }
        }
        Ok(())
    }

    /// The certificate and its key for HTTPS, if they are set.
    ///
    /// # Errors
    /// If only one of the two files is set, or the files cannot be used.
    pub fn tls(&self) -> anyhow::Result<Option<Tls>> {
        match (&self.tls_cert, &self.tls_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Tls::from_files(certificate, key)?)),
            (Some(_), None) => bail!("--tls-cert needs --tls-key FILE, the certificate's private key"),
            (None, Some(_)) => bail!("--tls-key needs --tls-cert FILE, the certificate of that key"),
        }
    }
}

/// Whether an address of the form `HOST:PORT` is on this machine.
fn is_local(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Refuses to serve other machines without a token.
///
/// # Errors
/// If `access` has no token and other machines can reach `address`. The error says which command to type.
pub fn check(address: SocketAddr, access: &Access) -> anyhow::Result<()> {
    if address.ip().to_canonical().is_loopback() || access.tokens.is_some() {
        return Ok(());
    }
    bail!(
        "--listen {address} lets other machines connect, and they could control the emulator and its files; \
         type: framewire token framewire.token, then add --token-file framewire.token (see docs/remote.md)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_not_served_without_a_token() {
        let check = |address: &str, access: &Access| check(address.parse().unwrap(), access).is_ok();
        let none = Access::default();
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(check(address, &none), "{address}");
        }
        let token = Token::random().unwrap();
        let with_token = Access { tokens: Tokens::new(Some(token), None).unwrap(), ..Access::default() };
        for address in ["0.0.0.0:1", "[::]:1", "192.168.1.7:1", "[::ffff:10.0.0.1]:1"] {
            assert!(!check(address, &none), "{address}");
            assert!(check(address, &with_token), "{address}");
        }
    }

    #[test]
    fn a_certificate_needs_a_key_and_a_key_needs_a_certificate() {
        let certificate = Settings { tls_cert: Some("a".into()), ..Default::default() };
        let key = Settings { tls_key: Some("a".into()), ..Default::default() };
        for (settings, says) in [(certificate, "--tls-key FILE"), (key, "--tls-cert FILE")] {
            let error = settings.tls().err().expect("refused").to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(Settings::default().tls().unwrap().is_none());
    }

    #[test]
    fn the_files_folder_needs_emulators_on_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let access = |address: &str| {
            let settings = Settings {
                attach: vec![address.to_owned()],
                files: Some(folder.path().to_owned()),
                ..Default::default()
            };
            settings.access()
        };
        for address in ["127.0.0.1:8888", "localhost", "red=LOCALHOST:1", "[::1]:8888"] {
            assert!(access(address).is_ok(), "{address}");
        }
        for address in ["192.0.2.1:8888", "desk", "localhost.evil.example:8888", "red=desk:1"] {
            let error = access(address).unwrap_err().to_string();
            assert!(error.contains("--files cannot be used"), "{address}: {error}");
        }
        assert!(Settings { files: Some("no such folder".into()), ..Default::default() }.access().is_err());
    }
}
