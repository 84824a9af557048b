//! The built-in target for HTTP: HTTP/1.1, with only the features that a load tester needs, and HTTP/2; both with or
//! without TLS.
//!
//! - [`HttpTarget`]: a server, the requests for it, and how connections to it are used;
//! - [`request`]: the requests; [`template`]: text with placeholders for the payload;
//! - `connector`: opens connections; [`Trust`]: which servers are trusted;
//! - `connection`: a connection with one request at a time; `response`: finds the body of a response and its end;
//! - `http2`: a connection with many requests at a time.

mod connection;
mod connector;
mod http2;
pub mod request;
mod response;
pub mod template;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Uri, header};

use crate::check::Check;
use crate::retries::Retries;
use crate::target::{Call, Client, Failure, Session, Target};
use crate::url::Url;
use connection::Connection;
use connector::Connector;
pub use connector::{ConnectorError, Trust};
use request::Request;
use template::Template;

/// How connections are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reuse {
    /// Whether a connection serves one request after the other. If not, each request opens and closes its own
    /// connection.
    pub keep_alive: bool,
    /// The retries of failed requests.
    pub retries: Retries,
    /// The longest time for one attempt of a request, so that an attempt without a reply can be retried. If it is
    /// `None`, only the time-out of the plan ends an attempt.
    pub attempt_timeout: Option<Duration>,
}

impl Default for Reuse {
    fn default() -> Self {
        Reuse { keep_alive: true, retries: Retries::default(), attempt_timeout: None }
    }
}

/// How to connect to a server.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// How connections are used.
    pub reuse: Reuse,
    /// Which servers are trusted over TLS.
    pub trust: Trust,
    /// The server's Unix socket. If it is given, it is used instead of the host and port in the URL.
    pub unix_socket: Option<PathBuf>,
    /// Whether to use HTTP/2 instead of HTTP/1.1. There is no upgrade from HTTP/1.1, so the server must accept HTTP/2
    /// from the start of a connection.
    pub http2: bool,
    /// Whether the system may hold back small packets (Nagle's algorithm).
    pub nagle: bool,
}

/// An HTTP server and the requests for it, as a target.
#[derive(Debug, Clone)]
pub struct HttpTarget {
    config: Arc<Config>,
}

#[derive(Debug)]
struct Config {
    connector: Connector,
    requests: Vec<Prepared>,
    reuse: Reuse,
    http2: bool,
}

/// A request that is ready to be sent, except for the payload.
#[derive(Debug)]
struct Prepared {
    method: Method,
    /// The whole address, for HTTP/2. A `Host` header replaces the host and the port.
    uri: Template,
    headers: Vec<(HeaderName, Template)>,
    /// For HTTP/1.1: everything before the body, except for the header `Content-Length` and the empty line.
    head: Template,
    body: Option<Template>,
    check: Check,
    /// The sum of the weights of all requests up to and including this one.
    until: f64,
}

impl Prepared {
    fn new(request: &Request, url: &Url, keep_alive: bool, before: f64) -> Prepared {
        let Request { method, path, headers, body, check, weight } = request;
        let authority = url.authority();
        let mut head = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
        let mut line = |name: &str, value: &[u8]| {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        };
        let host = headers.iter().find(|(name, _)| name == header::HOST);
        let host = host.map_or(authority.as_bytes(), |(_, value)| value.as_bytes());
        line("Host", host);
        if !keep_alive {
            line("Connection", b"close");
        }
        let others = || headers.iter().filter(|(name, _)| name != header::HOST);
        for (name, value) in others() {
            line(name.as_str(), value.as_bytes());
        }
        Prepared {
            method: method.clone(),
            uri: Template::new(&[format!("{}://", url.scheme).as_bytes(), host, path.as_bytes()].concat()),
            headers: others().map(|(name, value)| (name.clone(), Template::new(value.as_bytes()))).collect(),
            head: Template::new(&head),
            body: body.clone(),
            check: check.clone(),
            until: before + weight,
        }
    }

    /// Appends the request, in the format of HTTP/1.1, to `out`.
    fn fill(&self, payload: &[u8], out: &mut Vec<u8>) {
        self.head.fill(payload, out);
        let length = match &self.body {
            Some(body) => Some(body.len(payload.len())),
            // With a method that usually has a body, the length must be sent even if there is no body.
            None if self.method == Method::POST || self.method == Method::PUT => Some(0),
            None => None,
        };
        if let Some(length) = length {
            // Writing to memory does not fail.
            let _ = write!(out, "Content-Length: {length}\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if let Some(body) = &self.body {
            body.fill(payload, out);
        }
    }

    /// The request for HTTP/2.
    fn http2(&self, payload: &[u8]) -> Result<(http::Request<()>, Bytes), Failure> {
        fn filled(template: &Template, payload: &[u8]) -> Vec<u8> {
            let mut out = Vec::with_capacity(template.len(payload.len()));
            template.fill(payload, &mut out);
            out
        }
        let unfit = |error: http::Error| Failure::Other(format!("not a request: {error}"));
        let uri = Uri::from_maybe_shared(filled(&self.uri, payload)).map_err(|error| unfit(error.into()))?;
        let mut request = http::Request::builder().method(&self.method).uri(uri);
        for (name, value) in &self.headers {
            let value = HeaderValue::from_maybe_shared(filled(value, payload));
            request = request.header(name, value.map_err(|error| unfit(error.into()))?);
        }
        let body = self.body.as_ref().map(|body| Bytes::from(filled(body, payload)));
        Ok((request.body(()).map_err(unfit)?, body.unwrap_or_default()))
    }
}

impl HttpTarget {
    /// A target for the server at `url`. Does not connect yet. A client chooses each request at random from
    /// `requests`, according to their weights.
    ///
    /// # Errors
    /// If the address, the certificates or the socket cannot be used.
    ///
    /// # Panics
    /// If `requests` is empty.
    pub fn new(url: &Url, requests: &[Request], options: &HttpOptions) -> Result<HttpTarget, ConnectorError> {
        assert!(!requests.is_empty(), "a target needs a request");
        let HttpOptions { reuse, http2, .. } = options;
        let connector = Connector::new(url, options)?;
        let mut sum = 0.0;
        let prepare = |request: &Request| {
            let prepared = Prepared::new(request, url, reuse.keep_alive, sum);
            sum = prepared.until;
            prepared
        };
        let requests = requests.iter().map(prepare).collect();
        let config = Config { connector, requests, reuse: reuse.clone(), http2: *http2 };
        Ok(HttpTarget { config: Arc::new(config) })
    }

    /// Connects once, to check that the server can be reached and is trusted.
    ///
    /// # Errors
    /// If it cannot be reached within `timeout`, or is not trusted.
    pub fn reach(&self, timeout: Duration) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match tokio::time::timeout(timeout, self.config.connector.connect()).await {
                Ok(connected) => connected.map(drop),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        })
    }
}

impl Target for HttpTarget {
    type Session = HttpSession;

    fn session(&self) -> HttpSession {
        HttpSession { config: Arc::clone(&self.config), shared: http2::SharedConnection::default() }
    }
}

/// What the clients of one worker share.
#[derive(Debug)]
pub struct HttpSession {
    config: Arc<Config>,
    shared: http2::SharedConnection,
}

impl Session for HttpSession {
    type Client = HttpClient;

    fn client(&self) -> HttpClient {
        HttpClient {
            config: Arc::clone(&self.config),
            connection: None,
            shared: self.shared.clone(),
            request: Vec::new(),
            random: fastrand::Rng::new(),
        }
    }
}

/// One client of an HTTP server. With HTTP/1.1, it has its own connection.
#[derive(Debug)]
pub struct HttpClient {
    config: Arc<Config>,
    /// The connection of HTTP/1.1, which is kept for the next request. It is taken out during a request. So if the
    /// request is dropped, the connection is dropped too.
    connection: Option<Connection>,
    /// The connection of HTTP/2, which the clients of a worker share.
    shared: http2::SharedConnection,
    request: Vec<u8>,
    random: fastrand::Rng,
}

impl Client for HttpClient {
    async fn exchange(&mut self, call: &mut Call<'_>) -> Result<(), Failure> {
        let config = Arc::clone(&self.config);
        let prepared = self.choose(&config);
        self.request.clear();
        if !config.http2 {
            prepared.fill(call.payload, &mut self.request);
        }
        let mut waits = config.reuse.retries.waits().iter();
        loop {
            let attempt = self.attempt(prepared, call);
            let result = match config.reuse.attempt_timeout {
                Some(limit) => tokio::time::timeout(limit, attempt).await.unwrap_or(Err(Failure::TimedOut)),
                None => attempt.await,
            };
            let wait = waits.next().filter(|_| result.is_err());
            let Some(wait) = wait else { return result };
            tokio::time::sleep(*wait).await;
            call.mark_retry();
        }
    }
}

impl HttpClient {
    fn choose<'a>(&mut self, config: &'a Config) -> &'a Prepared {
        let requests = &config.requests;
        let last = &requests[requests.len() - 1];
        if requests.len() == 1 {
            return last;
        }
        let place = self.random.f64() * last.until;
        requests.iter().find(|request| place < request.until).unwrap_or(last)
    }

    async fn attempt(&mut self, prepared: &Prepared, call: &mut Call<'_>) -> Result<(), Failure> {
        let status = if self.config.http2 {
            let (request, body) = prepared.http2(call.payload)?;
            let kept = self.config.reuse.keep_alive;
            let connection = if kept { self.shared.clone() } else { http2::SharedConnection::default() };
            connection.exchange(&self.config.connector, request, body, call).await?
        } else {
            self.http1(prepared.method == Method::HEAD, call).await?
        };
        call.mark_status(status);
        prepared.check.status(status)?;
        prepared.check.reply(call.payload, call.reply)
    }

    async fn http1(&mut self, bodiless: bool, call: &mut Call<'_>) -> Result<u16, Failure> {
        let kept = self.connection.take().and_then(Connection::if_open);
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let start = Instant::now();
                let connection = Connection::open(&self.config.connector).await?;
                call.mark_connected(Some(start.elapsed()));
                connection
            }
        };
        call.mark_sent(self.request.len());
        let answer = connection.exchange(&self.request, call, bodiless).await?;
        if answer.keep_alive && self.config.reuse.keep_alive {
            self.connection = Some(connection);
        }
        Ok(answer.status)
    }
}
