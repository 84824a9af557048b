//! Tests requests of every kind, to servers over TCP, Unix sockets and TLS, with HTTP/1.1 and HTTP/2.

use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use framewire_loadtest::http::request::{self, Request};
use framewire_loadtest::http::{HttpOptions, HttpTarget, Reuse, Trust};
use framewire_loadtest::probe::{JsonProbe, Probe};
use framewire_loadtest::row::{Phase, Row};
use framewire_loadtest::{Check, Load, Plan, Stop};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio_rustls::TlsAcceptor;

use crate::until_good::until_good;

const SECOND: Duration = Duration::from_secs(1);

/// A server that replies with the request's body or, if there is none, with the message in the query. To `/json`, it
/// replies with a JSON document.
struct Server {
    port: u16,
    /// The heads of all requests.
    heads: Arc<Mutex<Vec<String>>>,
    /// Its certificate, in PEM form.
    certificate: String,
    /// Ends the server when it is dropped.
    _stop: tokio::sync::oneshot::Sender<()>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Tls,
    Http2,
    Http2Tls,
}

impl Server {
    fn start(kind: Kind) -> Server {
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = key.cert.pem();
        let secret = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![key.cert.der().clone()], secret)
                .unwrap();
        config.alpn_protocols =
            vec![if kind == Kind::Http2Tls { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (port_sender, port) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let shared = Arc::clone(&heads);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                port_sender.send(listener.local_addr().unwrap().port()).unwrap();
                let accept = async {
                    loop {
                        let (stream, _) = listener.accept().await.unwrap();
                        stream.set_nodelay(true).unwrap();
                        let (heads, acceptor) = (Arc::clone(&shared), acceptor.clone());
                        tokio::spawn(async move {
                            match kind {
                                Kind::Plain => http1(stream, heads).await,
                                Kind::Tls => http1(acceptor.accept(stream).await.ok()?, heads).await,
                                Kind::Http2 => http2(stream, heads).await,
                                Kind::Http2Tls => http2(acceptor.accept(stream).await.ok()?, heads).await,
                            }
                        });
                    }
                };
                tokio::select! {
                    () = accept => {}
                    _ = stopped => {}
                }
            });
        });
        Server { port: port.recv().unwrap(), heads, certificate, _stop: stop }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    fn run(&self, scheme: &str, requests: &[Request], options: &HttpOptions) -> Row {
        let url = format!("{scheme}://localhost:{}/", self.port).parse().unwrap();
        run(&HttpTarget::new(&url, requests, options).unwrap())
    }
}

fn run(target: &HttpTarget) -> Row {
    let plan = crate::plan(50.0, SECOND);
    let outcome =
        framewire_loadtest::run(&Arc::new(target.clone()), &plan, &mut None, &Stop::default(), &mut |_| {});
    Row::new(&plan, &outcome.unwrap(), Phase::Measure)
}

fn reply(path: &str, body: Vec<u8>) -> Vec<u8> {
    if path == "/json" {
        return br#"{"deep": {"frame": 42}}"#.to_vec();
    }
    let message = path.split_once('=').map_or("", |(_, message)| message);
    if body.is_empty() { message.as_bytes().to_vec() } else { body }
}

async fn http1(stream: impl AsyncRead + AsyncWrite + Unpin, heads: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let start = head.len();
            if stream.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
            if let Some(text) = head[start..].strip_prefix("Content-Length: ") {
                length = text.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let path = head.split(' ').nth(1)?.to_owned();
        heads.lock().unwrap().push(head);
        let body = reply(&path, body);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), &body].concat()).await.ok()?;
        stream.flush().await.ok()?;
    }
}

async fn http2(stream: impl AsyncRead + AsyncWrite + Unpin, heads: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut connection = h2::server::handshake(stream).await.ok()?;
    while let Some(request) = connection.accept().await {
        let (request, mut respond) = request.ok()?;
        heads.lock().unwrap().push(format!("{} {} {:?}", request.method(), request.uri(), request.headers()));
        let path = request.uri().path_and_query()?.to_string();
        let mut incoming = request.into_body();
        tokio::spawn(async move {
            let mut body = Vec::new();
            while let Some(data) = incoming.data().await {
                body.extend_from_slice(&data.ok()?);
            }
            let mut stream = respond.send_response(http::Response::new(()), false).ok()?;
            stream.send_data(reply(&path, body).into(), true).ok()
        });
    }
    None
}

/// A request with the payload in its path, and one with it in its body.
fn echoes() -> Vec<Request> {
    let get = Request { check: Check::Echo, ..Request::get("/?m={}") };
    let body = Some(request::body("{}", Path::new("")).unwrap());
    let headers = vec![request::header("Authorization: Bearer secret").unwrap()];
    let post = Request { method: request::method("POST").unwrap(), body, headers, ..get.clone() };
    vec![get, Request { path: "/".to_owned(), weight: 3.0, ..post }]
}

fn assert_all_correct(row: &Row) {
    assert_eq!((row.requests, row.correct), (50, 50), "{row:?}");
    assert_eq!(row.statuses.get(&200), Some(&50));
    assert_eq!((row.first_byte.count, row.connect.count), (50, row.connections));
    assert!(row.first_byte.p50 <= row.sent.p50 && row.bytes.unwrap().received >= 50 * 36, "{row:?}");
}

#[test]
fn bodies_headers_and_weights_reach_the_server() {
    let server = Server::start(Kind::Plain);
    assert_all_correct(&server.run("http", &echoes(), &HttpOptions::default()));
    let heads = server.heads();
    let posts: Vec<_> = heads.iter().filter(|head| head.starts_with("POST / ")).collect();
    assert!((25..=48).contains(&posts.len()), "three quarters of 50: {}", posts.len());
    assert!(posts.iter().all(|head| head.contains("authorization: Bearer secret")), "{posts:?}");
    assert!(heads.iter().all(|head| head.contains(&format!("Host: localhost:{}\r\n", server.port))));
    assert_eq!(heads.len(), 50);
}

#[test]
fn a_host_header_replaces_the_address_in_the_url() {
    let headers = vec![request::header("Host: other.example:81").unwrap()];
    let request = Request { headers, ..Request::get("/json") };
    for (kind, wanted) in
        [(Kind::Plain, "Host: other.example:81\r\n"), (Kind::Http2, "GET http://other.example:81/json ")]
    {
        let server = Server::start(kind);
        let options = HttpOptions { http2: kind == Kind::Http2, ..HttpOptions::default() };
        server.run("http", std::slice::from_ref(&request), &options);
        assert!(server.heads().iter().all(|head| head.contains(wanted)), "{:?}", server.heads().first());
        assert_eq!(server.heads().len(), 50);
    }
}

#[test]
fn a_check_by_text_or_status_decides_whether_a_reply_is_correct() {
    let server = Server::start(Kind::Plain);
    let run = |check: &str| {
        let request = Request { check: check.parse().unwrap(), ..Request::get("/json") };
        server.run("http", &[request], &HttpOptions::default())
    };
    assert_eq!(run("contains=frame").success, 100.0);
    let wrong = run("contains=nowhere");
    assert_eq!((wrong.success, wrong.failures["wrong reply"]), (0.0, 50));
    assert_eq!(run("status=404").failures["status"], 50);
}

#[test]
fn over_tls_the_certificate_is_checked_unless_switched_off() {
    let server = Server::start(Kind::Tls);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, &server.certificate).unwrap();
    for trust in [Trust::File(file), Trust::AnyCertificate] {
        let row = server.run("https", &echoes(), &HttpOptions { trust, ..HttpOptions::default() });
        assert_all_correct(&row);
        assert!(row.connections < 50, "connections are kept: {}", row.connections);
    }
    let stranger = Server::start(Kind::Tls);
    std::fs::write(folder.path().join("other.pem"), &stranger.certificate).unwrap();
    let trust = Trust::File(folder.path().join("other.pem"));
    let options = HttpOptions { trust, ..HttpOptions::default() };
    let row = server.run("https", &echoes(), &options);
    assert_eq!(row.correct, 0);
    assert!(row.failure_texts.keys().any(|text| text.contains("certificate")), "{:?}", row.failure_texts);
    let url = format!("https://localhost:{}/", server.port).parse().unwrap();
    let error = HttpTarget::new(&url, &echoes(), &options).unwrap().reach(SECOND).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn http2_sends_all_requests_over_one_connection() {
    for (kind, scheme) in [(Kind::Http2, "http"), (Kind::Http2Tls, "https")] {
        let server = Server::start(kind);
        let options = HttpOptions { http2: true, trust: Trust::AnyCertificate, ..HttpOptions::default() };
        let row = server.run(scheme, &echoes(), &options);
        assert_all_correct(&row);
        assert_eq!(row.connections, 1);
        assert!(server.heads().iter().any(|head| head.contains("Bearer secret")));
        let reuse = Reuse { keep_alive: false, ..Reuse::default() };
        let row = server.run(scheme, &echoes(), &HttpOptions { reuse, ..options });
        assert_eq!((row.correct, row.connections), (50, 50));
    }
}

/// Starts an HTTP/2 server that replies to each request after `pause`. A connection has at most `streams` requests at a
/// time. After `most` requests, it takes no more, but answers the ones that it has.
fn slow_http2(pause: Duration, streams: u32, most: usize) -> HttpTarget {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let serve = move |stream| async move {
        let mut builder = h2::server::Builder::new();
        let handshake = builder.max_concurrent_streams(streams).handshake::<_, bytes::Bytes>(stream);
        let mut connection = handshake.await.ok()?;
        let mut count = 0;
        while let Some(request) = connection.accept().await {
            let (_, mut respond) = request.ok()?;
            count += 1;
            if count == most {
                connection.graceful_shutdown();
            }
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                respond.send_response(http::Response::new(()), true).ok()
            });
        }
        Some(())
    };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                tokio::spawn(serve(listener.accept().await.unwrap().0));
            }
        });
    });
    let options = HttpOptions { http2: true, ..HttpOptions::default() };
    HttpTarget::new(&url, &[Request::get("/")], &options).unwrap()
}

#[test]
fn the_wait_for_an_http2_stream_comes_before_the_actual_send() {
    // 50 requests/s for a server that answers about 33.
    let row = run(&slow_http2(Duration::from_millis(30), 1, usize::MAX));
    assert_eq!((row.correct, row.connections), (50, 1), "{:?}", row.failures);
    assert!(row.intended.p50 > 3.0 * row.sent.p50, "{} and {} ms", row.intended.p50, row.sent.p50);
}

#[test]
fn http2_opens_another_connection_while_the_last_one_ends() {
    let row = run(&slow_http2(Duration::from_millis(100), 100, 10));
    assert_eq!((row.requests, row.correct), (50, 50), "{:?}", row.failures);
    assert!(row.connections >= 5, "{}", row.connections);
}

#[test]
fn a_server_without_http2_is_not_reported_as_a_reset() {
    let server = Server::start(Kind::Plain);
    let row =
        server.run("http", &[Request::get("/")], &HttpOptions { http2: true, ..HttpOptions::default() });
    assert_eq!(row.failures.keys().collect::<Vec<_>>(), ["other"]);
    let text = row.failure_texts.keys().next().unwrap();
    assert!(text.starts_with("the response is not HTTP/2: "), "{text}");
}

#[test]
fn a_probe_does_not_wait_for_the_connection_to_close() {
    // This server keeps every connection open, which is the default of HTTP/1.1.
    let server = Server::start(Kind::Plain);
    let url = format!("http://localhost:{}/json", server.port).parse().unwrap();
    let target = HttpTarget::new(&url, &[Request::get("/json")], &HttpOptions::default()).unwrap();
    let mut probe = JsonProbe::new(&target, "deep.frame").unwrap();
    let measure = || {
        let start = std::time::Instant::now();
        let values = [probe.read(), probe.read()];
        let time = start.elapsed();
        // A read fails only at its time limit, which is longer than a second.
        assert!(values == [Some(42.0); 2] || time > SECOND, "{values:?} after {time:?}");
        (values, time)
    };
    until_good(measure, |(values, time)| *values == [Some(42.0); 2] && *time < SECOND);
}

/// Connecting to a socket that does not exist fails without waiting.
#[cfg(unix)]
#[test]
fn requests_that_fail_at_once_do_not_delay_the_end_of_a_run() {
    let options = HttpOptions { unix_socket: Some("/no/such/socket".into()), ..HttpOptions::default() };
    let target = HttpTarget::new(&"http://localhost/".parse().unwrap(), &echoes(), &options).unwrap();
    let load = Load::Closed { concurrency: 2 };
    let plan = Plan { load, duration: 60 * SECOND, ..crate::plan(1.0, SECOND) };
    let stop = crate::stop_soon();
    let outcome = framewire_loadtest::run(&Arc::new(target), &plan, &mut None, &stop, &mut |_| {}).unwrap();
    let row = Row::new(&plan, &outcome, Phase::Measure);
    assert!(row.cut_short && row.seconds < 30.0 && row.correct == 0, "{} s", row.seconds);
}

/// Measures a server with a Unix socket. The system keeps at most `queue` new connections for the server, which accepts
/// the first one after `pause`.
#[cfg(unix)]
fn run_over_unix_socket(queue: u32, pause: Duration) -> Row {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let (ready, listening) = mpsc::channel();
    let bound = path.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let socket = tokio::net::UnixSocket::new_stream().unwrap();
            socket.bind(bound).unwrap();
            let listener = socket.listen(queue).unwrap();
            ready.send(()).unwrap();
            tokio::time::sleep(pause).await;
            loop {
                tokio::spawn(http1(listener.accept().await.unwrap().0, Arc::default()));
            }
        });
    });
    listening.recv().unwrap();
    let options = HttpOptions { unix_socket: Some(path), ..HttpOptions::default() };
    let url = "http://localhost/".parse().unwrap();
    run(&HttpTarget::new(&url, &echoes(), &options).unwrap())
}

#[cfg(unix)]
#[test]
fn a_unix_socket_is_measured_like_a_port() {
    assert_all_correct(&run_over_unix_socket(1024, Duration::ZERO));
}

#[cfg(unix)]
#[test]
fn a_full_queue_of_a_unix_socket_delays_a_connection_and_does_not_fail_it() {
    assert_all_correct(&run_over_unix_socket(1, Duration::from_millis(300)));
}
