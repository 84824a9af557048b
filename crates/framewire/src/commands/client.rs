//! A blocking client of the HTTP API.

use std::io::{ErrorKind, Read};
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use framewire_http::STOPPING;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::CertificateError;
use serde_json::Value;
use ureq::Agent;
use ureq::http::{HeaderMap, Method, Request, Response, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Body, Error, Timeout};

use super::Failure;
use crate::output;

/// The usual timeout of a request: longer than the default of `--deadline`, the time that a request may wait for the
/// emulator.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// The largest reply in bytes: more than the largest savestate or picture.
const LARGEST: u64 = 64 << 20;
/// The largest file of `--cacert` that is accepted, in bytes.
const MAX_CERTIFICATES: u64 = 16 << 20;
/// The pause before each retry of a request. Together, the pauses give a server enough time to restart.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1000),
    Duration::from_millis(2000),
];
/// The characters that must be escaped in a part of a path or a query.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How to reach an emulator: the address of its server, and what the server requires.
pub struct Address {
    /// The server's URL, without a slash at its end.
    pub url: String,
    /// The name of the emulator, or `None` for the server's first one.
    pub emulator: Option<String>,
    /// The secret to send, if the server requires one.
    pub token: Option<String>,
    /// A PEM file with the certificates to trust; `None` means those that this machine trusts.
    pub certificate: Option<PathBuf>,
}

/// A client of one server.
pub struct Client {
    agent: Agent,
    address: Address,
}

/// A reply with a status that means success.
pub struct Reply {
    headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// A header as text; empty if there is no such header.
    pub fn text(&self, header: &str) -> &str {
        self.headers.get(header).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// A number in a header; `None` if there is no such header, or if it is not a number.
    pub fn number(&self, header: &str) -> Option<u64> {
        self.headers.get(header)?.to_str().ok()?.parse().ok()
    }

    /// The body, parsed as JSON.
    pub fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::Connection(format!(
                "the server's reply is not JSON ({error}); is it a Framewire server? `framewire doctor` says what is there"
            ))
        })
    }
}

/// A request, before it is sent.
struct Draft<'a> {
    method: Method,
    /// Path and query.
    target: &'a str,
    body: &'a [u8],
    content_type: &'static str,
    /// The longest time until the reply is complete; `None` for a stream, and for a wait without a limit.
    limit: Option<Duration>,
    /// The idempotency key, if there is one.
    key: Option<String>,
}

impl Client {
    /// Creates a client. It does not connect yet.
    pub fn new(address: Address) -> Result<Client, Failure> {
        let roots = match &address.certificate {
            Some(file) => RootCerts::new_with_certs(&certificates(file)?),
            None => RootCerts::PlatformVerifier,
        };
        let tls = TlsConfig::builder()
            .root_certs(roots)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .max_redirects(0)
            // Proxies from the environment are ignored, because a proxy cannot reach a server on this machine.
            .proxy(None)
            .timeout_connect(Some(CONNECT));
        Ok(Client { agent: config.build().into(), address })
    }

    /// The server's address.
    pub fn url(&self) -> &str {
        &self.address.url
    }

    /// Sends a `GET`, and sends it again if the connection breaks.
    pub fn get(&self, target: &str) -> Result<Reply, Failure> {
        self.get_within(target, TIMEOUT)
    }

    /// Like [`Client::get`], with another timeout.
    pub fn get_within(&self, target: &str, limit: Duration) -> Result<Reply, Failure> {
        let draft = self.draft(Method::GET, target, b"", Some(limit));
        self.complete(self.send(&draft)?)
    }

    /// Opens a stream that lasts until either side ends it.
    pub fn stream(&self, target: &str) -> Result<impl Read + use<>, Failure> {
        let response = self.send(&self.draft(Method::GET, target, b"", None))?;
        if !response.status().is_success() {
            self.complete(response)?;
            return Err(Failure::Connection(format!("{} did not open the stream {target}", self.url())));
        }
        Ok(response.into_body().into_reader())
    }

    /// Sends a `POST` that changes nothing, and sends it again if the connection breaks.
    pub fn read_within(&self, target: &str, json: &str, limit: Duration) -> Result<Reply, Failure> {
        let draft = self.draft(Method::POST, target, json.as_bytes(), Some(limit));
        self.complete(self.send(&draft)?)
    }

    /// Sends a request that changes something, and sends it again if the connection breaks. The server performs it at
    /// most once.
    pub fn change(&self, method: &str, target: &str, json: &str) -> Result<Reply, Failure> {
        self.change_within(method, target, json, TIMEOUT, None)
    }

    /// Like [`Client::change`], with another timeout. `key` is the idempotency key; with `None`, a new one is created.
    pub fn change_within(
        &self,
        method: &str,
        target: &str,
        json: &str,
        limit: Duration,
        key: Option<String>,
    ) -> Result<Reply, Failure> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
        let draft = self.draft(method, target, json.as_bytes(), Some(limit));
        self.change_by(Draft { key, ..draft })
    }

    /// Sends a `PUT` like [`Client::change`], but the body is bytes instead of JSON.
    pub fn upload(&self, target: &str, bytes: &[u8]) -> Result<Reply, Failure> {
        let draft = self.draft(Method::PUT, target, bytes, Some(TIMEOUT));
        self.change_by(Draft { content_type: "application/octet-stream", ..draft })
    }

    /// Sends a `POST` that changes nothing. It is not sent again. Returns `None` if no reply comes within `limit`; if
    /// `limit` is `None`, waits without a limit. Returns an error if the server cannot be reached. `reached` says
    /// whether an earlier request has reached the server. If so, and if `limit` is too short for connecting, returns
    /// `None`.
    pub fn ask(
        &self,
        target: &str,
        json: &str,
        limit: Option<Duration>,
        reached: bool,
    ) -> Result<Option<Reply>, Failure> {
        let draft = self.draft(Method::POST, target, json.as_bytes(), limit);
        let is_short = limit.is_some_and(|limit| limit < CONNECT);
        match self.send_once(&draft) {
            Ok(response) => self.complete(response).map(Some),
            Err(Error::Timeout(Timeout::Global)) => Ok(None),
            Err(Error::Timeout(Timeout::Connect)) if reached && is_short => Ok(None),
            Err(error) => Err(self.broken(&draft, &error)),
        }
    }

    fn draft<'a>(
        &self,
        method: Method,
        target: &'a str,
        body: &'a [u8],
        limit: Option<Duration>,
    ) -> Draft<'a> {
        Draft { method, target, body, content_type: "application/json", limit, key: None }
    }

    /// Sends a request with its idempotency key, or with a new one, so that it can be sent again if the connection
    /// breaks.
    fn change_by(&self, mut draft: Draft<'_>) -> Result<Reply, Failure> {
        draft.key.get_or_insert_with(|| format!("{:032x}", fastrand::u128(..)));
        let response = self.send(&draft)?;
        if response.status() == 501 {
            // mGBA-http's script cannot remember keys. The request was not performed, so it may be sent without a key.
            let draft = Draft { key: None, ..draft };
            let response = self.send_once(&draft).map_err(|error| self.broken(&draft, &error))?;
            return self.complete(response);
        }
        self.complete(response)
    }

    /// Sends a request, and sends it again if the connection breaks before the reply begins. Use this only for a
    /// request that may be sent twice.
    fn send(&self, draft: &Draft<'_>) -> Result<Response<Body>, Failure> {
        let mut result = self.send_once(draft);
        // If there is no server at the first attempt, the error is returned at once. A server that disappears later may
        // be restarting.
        if let Err(error) = &result
            && self.never_sent(error)
        {
            return Err(self.broken(draft, error));
        }
        for pause in PAUSES {
            match &result {
                Err(Error::Timeout(_)) | Ok(_) => break,
                Err(_) => {
                    sleep(pause);
                    result = self.send_once(draft);
                }
            }
        }
        result.map_err(|error| self.broken(draft, &error))
    }

    fn send_once(&self, draft: &Draft<'_>) -> Result<Response<Body>, Error> {
        let mut target = format!("{}{}", self.address.url, draft.target);
        if let Some(name) = &self.address.emulator {
            target.push(if draft.target.contains('?') { '&' } else { '?' });
            target += &format!("emulator={}", encode(name));
        }
        let mut request = Request::builder().method(&draft.method).uri(target);
        if let Some(token) = &self.address.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(key) = &draft.key {
            request = request.header("idempotency-key", key);
        }
        // The timeout for connecting must be shorter than the limit of the request. Otherwise, a timeout while
        // connecting would look like the end of a wait.
        let connect = Some(draft.limit.map_or(CONNECT, |limit| CONNECT.min(limit * 9 / 10)));
        if draft.method == Method::GET || draft.method == Method::DELETE {
            let request = self.agent.configure_request(request.body(())?);
            return self.agent.run(request.timeout_global(draft.limit).timeout_connect(connect).build());
        }
        let request = request.header("content-type", draft.content_type).body(draft.body)?;
        let request = self.agent.configure_request(request).timeout_global(draft.limit);
        self.agent.run(request.timeout_connect(connect).build())
    }

    /// Reads the whole reply. Returns the server's error if the request failed.
    fn complete(&self, response: Response<Body>) -> Result<Reply, Failure> {
        let (parts, mut body) = response.into_parts();
        let body = body.with_config().limit(LARGEST).read_to_vec().map_err(|error| {
            let url = self.url();
            Failure::Connection(format!("the connection to {url} broke in the middle of a reply: {error}"))
        })?;
        if parts.status.is_success() {
            return Ok(Reply { headers: parts.headers, body });
        }
        Err(self.failed(parts.status.as_u16(), &body))
    }

    /// The error for a reply with this status.
    fn failed(&self, status: u16, body: &[u8]) -> Failure {
        let problem: Value = serde_json::from_slice(body).unwrap_or_default();
        let Some(detail) = problem["detail"].as_str() else {
            let text = String::from_utf8_lossy(body);
            let text: String = text.trim().chars().take(300).collect();
            return Failure::Connection(format!(
                "the server at {} replied with status {status}, unlike a Framewire server: {text}\n  `framewire doctor` \
                 says what is there",
                self.url()
            ));
        };
        refused(status, detail)
    }

    /// Whether the error shows that no part of the request has reached a server.
    fn never_sent(&self, error: &Error) -> bool {
        match error {
            error if is_about_tls(error) => true,
            Error::Io(error) => {
                let refused = matches!(
                    error.kind(),
                    ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable
                );
                refused || !self.has_address()
            }
            Error::Timeout(which) => matches!(which, Timeout::Connect | Timeout::Resolve),
            Error::HostNotFound | Error::ConnectionFailed => true,
            _ => false,
        }
    }

    /// Whether the server's host name can be resolved.
    fn has_address(&self) -> bool {
        let uri = self.address.url.parse::<Uri>().ok();
        let Some(host) = uri.as_ref().and_then(Uri::host) else { return false };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (host, 0).to_socket_addrs().is_ok_and(|mut addresses| addresses.next().is_some())
    }

    /// What to do about an error of TLS. `None` if only the text of the error helps.
    fn tls_advice(&self, error: &Error) -> Option<&'static str> {
        use CertificateError::{
            BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
            NotValidYetContext, UnknownIssuer,
        };
        use rustls::Error::InvalidCertificate;
        match tls_error(error) {
            Some(InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Some("use a name or an address that is in the server's certificate")
            }
            Some(InvalidCertificate(
                Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
            )) => Some("make a new certificate for the server, or check the clock of this machine"),
            _ if self.address.certificate.is_none() => {
                Some("name the server's certificate with --cacert FILE")
            }
            Some(InvalidCertificate(UnknownIssuer | BadSignature)) => Some(
                "--cacert must name the server's certificate (its --tls-cert), or that of the authority that signed it",
            ),
            _ => None,
        }
    }

    /// The error for a connection that broke or could not be opened.
    fn broken(&self, draft: &Draft<'_>, error: &Error) -> Failure {
        let url = self.url();
        let why = match error {
            // The text of `Error::Io` begins with `io: `, which means nothing to a user.
            Error::Io(error) => output::causes_in_a_line(error),
            error => output::causes_in_a_line(error),
        };
        Failure::Connection(match error {
            Error::Timeout(_) if !self.never_sent(error) => format!(
                "no reply from {url} to {} {} within {} s",
                draft.method,
                draft.target,
                draft.limit.unwrap_or(TIMEOUT).as_secs()
            ),
            error if is_about_tls(error) => match self.tls_advice(error) {
                Some(advice) => format!("no secure connection to {url}: {why}\n  {advice}"),
                None => format!("no secure connection to {url}: {why}"),
            },
            _ if self.never_sent(error) => format!(
                "no server at {url}: {why}\n  start one with `framewire serve`, or name its address with --url or \
                 FRAMEWIRE_URL"
            ),
            _ => format!("the connection to {url} broke: {why}"),
        })
    }
}

/// The error for a request that a server refused with this status, for the reason `detail`.
pub fn refused(status: u16, detail: &str) -> Failure {
    match status {
        400 | 404 | 413 | 422 => Failure::Input(detail.to_owned()),
        // A server that is stopping sends 503, or 408 if the request has not arrived completely.
        408 | 503 if detail.starts_with(STOPPING) => Failure::Connection(detail.to_owned()),
        401 => Failure::Refused(format!(
            "{detail}\n  name the file of the server's token with --token-file, or put the token into FRAMEWIRE_TOKEN"
        )),
        _ => Failure::Refused(detail.to_owned()),
    }
}

/// Whether the error is about TLS, such as a certificate that is not trusted.
fn is_about_tls(error: &Error) -> bool {
    matches!(error, Error::Tls(_)) || tls_error(error).is_some()
}

/// The error of the TLS library, if that is the cause.
fn tls_error(error: &Error) -> Option<&rustls::Error> {
    match error {
        Error::Rustls(error) => Some(error),
        Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Escapes a text for a part of a path or a query.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, &ESCAPED).to_string()
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let shown = file.display();
    let pem = framewire_files::read(file, MAX_CERTIFICATES)
        .map_err(|error| Failure::Input(format!("--cacert: cannot read {shown}: {error}")))?;
    let found: Vec<_> = parse_pem(&pem)
        .filter_map(|item| if let Ok(PemItem::Certificate(found)) = item { Some(found) } else { None })
        .collect();
    if found.is_empty() {
        return Err(Failure::Input(format!(
            "--cacert: {shown} has no certificate; use the PEM file that the server has as --tls-cert"
        )));
    }
    Ok(found)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::thread;
    use std::time::Instant;

    use socket2::{Domain, Socket, Type};

    use super::*;

    fn client(address: SocketAddr) -> Client {
        let url = format!("http://{address}");
        Client::new(Address { url, emulator: None, token: None, certificate: None }).unwrap()
    }

    /// An address whose queue for new connections is full, and the sockets that keep it full.
    fn full_queue() -> (SocketAddr, Socket, Vec<TcpStream>) {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        // If the queue for new connections is full, the system drops the packets of further clients.
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200));
        let queue = std::iter::from_fn(|| connect().ok()).collect();
        (address, listener, queue)
    }

    #[test]
    fn a_timeout_while_connecting_is_not_the_end_of_a_wait() {
        let (address, _listener, queue) = full_queue();
        let client = client(address);
        for limit in [CONNECT * 2, CONNECT / 5] {
            let started = Instant::now();
            let Err(Failure::Connection(message)) = client.ask("/v1/wait", "{}", Some(limit), false) else {
                panic!(
                    "no error after {:?}, with {} connections in the queue",
                    started.elapsed(),
                    queue.len()
                );
            };
            assert!(message.starts_with("no server at"), "{message}");
        }
    }

    #[test]
    fn a_wait_whose_time_is_up_while_it_connects_again_does_not_report_a_missing_server() {
        let (address, _listener, _queue) = full_queue();
        let expired = client(address).ask("/v1/wait", "{}", Some(Duration::from_millis(100)), true);
        assert!(matches!(expired, Ok(None)));
    }

    #[test]
    fn a_wait_ends_if_the_server_does_not_reply() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = client(listener.local_addr().unwrap());
        let expired = client.ask("/v1/wait", "{}", Some(Duration::from_millis(100)), false);
        assert!(matches!(expired, Ok(None)));
    }

    #[test]
    fn a_post_that_changes_nothing_is_sent_again_if_the_connection_breaks() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = client(listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            drop(listener.accept().unwrap());
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut part) = (Vec::<u8>::new(), [0; 1024]);
            while !request.ends_with(b"{}") {
                let count = stream.read(&mut part).unwrap();
                assert!(count > 0, "the request is cut off");
                request.extend_from_slice(&part[..count]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue").unwrap();
        });
        let reply = client.read_within("/v1/find", "{}", Duration::from_secs(20)).unwrap();
        assert_eq!(reply.body, b"true");
        server.join().unwrap();
    }
}
