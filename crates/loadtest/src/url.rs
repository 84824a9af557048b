//! Addresses of targets: `scheme://host:port/path?query`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use http::Uri;

/// An address, split into its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The part before `://`.
    pub scheme: String,
    /// The name or IP address of the host; an IPv6 address is without its brackets.
    pub host: String,
    /// The port. If the address has none, it is 443 for https and 80 for all others.
    pub port: u16,
    /// The path and the query, at least `/`. A fragment (`#...`) is left out.
    pub path: String,
}

/// Why a text is not an address, or an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// The text does not have the form of an address.
    #[error("{0:?} is not an address; use for example http://127.0.0.1:8080/path")]
    Malformed(String),
    /// The address contains a space, a control character or a non-ASCII character.
    #[error("{0:?} contains a character that is not allowed in an address; write it as %XX")]
    Character(String),
    /// The address contains a user name.
    #[error(
        "an address cannot have a user name or a password; use --token-file, or --header 'Authorization: ...'"
    )]
    Credentials,
    /// The name of the host cannot be found.
    #[error("the host {host:?} cannot be found; correct the address")]
    Unknown {
        /// The name that was looked up.
        host: String,
        /// The system's error.
        source: std::io::Error,
    },
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let malformed = || UrlError::Malformed(text.to_owned());
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Character(text.to_owned()));
        }
        let uri: Uri = text.parse().map_err(|_| malformed())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(malformed());
        };
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        let host = authority.host();
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() == host && scheme == "https" => 443,
            None if authority.as_str() == host => 80,
            None => return Err(malformed()),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || port == 0 {
            return Err(malformed());
        }
        let path = uri.path_and_query().map_or("/".to_owned(), ToString::to_string);
        Ok(Url { scheme: scheme.to_owned(), host: host.to_owned(), port, path })
    }
}

impl Url {
    /// `host:port`, with brackets where needed.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Looks up the host's name. Returns all of its addresses, at least one.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, UrlError> {
        let unknown = |source| UrlError::Unknown { host: self.host.clone(), source };
        let found: Vec<_> = (self.host.as_str(), self.port).to_socket_addrs().map_err(unknown)?.collect();
        if found.is_empty() {
            return Err(unknown(std::io::ErrorKind::NotFound.into()));
        }
        Ok(found)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_addresses() {
        let url: Url = "http://127.0.0.1:8080/a?b=c".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("127.0.0.1", 8080, "/a?b=c"));
        let url: Url = "http://[::1]?b".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("::1", 80, "/?b"));
        assert_eq!(url.authority(), "[::1]:80");
        assert_eq!("https://localhost/x".parse::<Url>().unwrap().port, 443);
        assert_eq!("link://localhost:8888".parse::<Url>().unwrap().to_string(), "link://localhost:8888/");
    }

    #[test]
    fn refuses_an_invalid_url() {
        for text in [
            "",
            "localhost:1",
            "http://",
            "http://:80",
            "http://a:b",
            "http://a:0",
            "http://a b",
            "http://u:p@a:1/",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text:?}");
        }
    }
}
