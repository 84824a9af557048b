//! The built-in target: HTTP/1.1 in the clear, as lean as a load tester needs it.
//!
//! - [`HttpTarget`]: what is asked of which server, and how connections are used;
//! - `connection`: one connection, one request at a time;
//! - `response`: where a response ends, and its body.

mod connection;
mod response;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::target::{Call, Client, Failure, Session, Target};
use crate::url::{Url, UrlError};
use connection::Connection;

/// Where the payload goes in a URL.
pub const PLACE: &str = "{}";

/// How connections are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reuse {
    /// Whether a connection serves one request after the other; else each request opens and closes its own.
    pub keep_alive: bool,
    /// How many times a request is tried.
    pub tries: u32,
    /// Wait before the second try; doubled before each further one.
    pub delay: Duration,
}

impl Default for Reuse {
    fn default() -> Self {
        Reuse { keep_alive: true, tries: 1, delay: Duration::from_millis(50) }
    }
}

/// Why a URL cannot be a target.
#[derive(Debug, thiserror::Error)]
pub enum HttpTargetError {
    /// Not an address, or one that leads nowhere.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// TLS or something else.
    #[error("{0}:// is not supported; use an http:// address")]
    Scheme(String),
}

/// A server that is asked `GET` with the payload in the URL and shall answer with the payload as the body.
#[derive(Debug, Clone)]
pub struct HttpTarget {
    config: Arc<Config>,
}

#[derive(Debug)]
struct Config {
    address: SocketAddr,
    /// The request before the payload.
    before: Vec<u8>,
    /// The request after the payload.
    after: Vec<u8>,
    reuse: Reuse,
}

impl HttpTarget {
    /// The payload takes the place of `{}` in the URL; without one, `?message={}` is added.
    pub fn new(url: &Url, reuse: Reuse) -> Result<HttpTarget, HttpTargetError> {
        if url.scheme != "http" {
            return Err(HttpTargetError::Scheme(url.scheme.clone()));
        }
        let (before, after) = match url.path.split_once(PLACE) {
            Some((before, after)) => (before.to_owned(), after),
            None if url.path.contains('?') => (format!("{}&message=", url.path), ""),
            None => (format!("{}?message=", url.path), ""),
        };
        let connection = if reuse.keep_alive { "" } else { "Connection: close\r\n" };
        let host = url.authority();
        let config = Config {
            address: url.resolve()?,
            before: format!("GET {before}").into_bytes(),
            after: format!("{after} HTTP/1.1\r\nHost: {host}\r\n{connection}\r\n").into_bytes(),
            reuse,
        };
        Ok(HttpTarget { config: Arc::new(config) })
    }

    /// Where connections go.
    pub fn address(&self) -> SocketAddr {
        self.config.address
    }
}

impl Target for HttpTarget {
    type Session = HttpTarget;

    fn session(&self) -> HttpTarget {
        self.clone()
    }
}

impl Session for HttpTarget {
    type Client = HttpClient;

    fn client(&self) -> HttpClient {
        HttpClient { config: Arc::clone(&self.config), connection: None, request: Vec::new() }
    }
}

/// One client of an HTTP server, with a connection of its own.
#[derive(Debug)]
pub struct HttpClient {
    config: Arc<Config>,
    /// Kept for the next request. Taken out while a request is under way, so that a dropped request drops it.
    connection: Option<Connection>,
    request: Vec<u8>,
}

impl Client for HttpClient {
    async fn exchange(&mut self, call: &mut Call<'_>) -> Result<(), Failure> {
        self.request.clear();
        self.request.extend_from_slice(&self.config.before);
        self.request.extend_from_slice(call.payload);
        self.request.extend_from_slice(&self.config.after);
        let mut delay = self.config.reuse.delay;
        let mut left = self.config.reuse.tries.max(1);
        loop {
            left -= 1;
            match self.attempt(call).await {
                Err(_) if left > 0 => {
                    tokio::time::sleep(delay).await;
                    delay *= 2;
                    call.reply.clear();
                    call.mark_retry();
                }
                result => return result,
            }
        }
    }
}

impl HttpClient {
    async fn attempt(&mut self, call: &mut Call<'_>) -> Result<(), Failure> {
        let mut connection = match self.connection.take().filter(Connection::is_open) {
            Some(connection) => connection,
            None => {
                let connection = Connection::open(self.config.address).await?;
                call.mark_connected();
                connection
            }
        };
        call.mark_sent();
        connection.send(&self.request).await?;
        let answer = connection.receive(call.reply).await?;
        if answer.keep_alive && self.config.reuse.keep_alive {
            self.connection = Some(connection);
        }
        match answer.status {
            200..=299 => Ok(()),
            status => Err(Failure::Status(status)),
        }
    }
}
