//! HTTPS with a self-signed certificate, and clients that send TLS, something else, or nothing.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use framewire_http::{Tls, Token, Tokens};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use super::support::{Reply, Server, is_closed};

/// Creates a certificate. Returns the folder for its files, the file of the certificate, the file of its key, and the
/// certificate itself.
fn certificate() -> (TempDir, PathBuf, PathBuf, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, cert.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    (folder, certificate, key, cert.der().clone())
}

/// Starts a server with TLS. Also returns its certificate.
fn serve(change: impl FnOnce(&mut framewire_http::App)) -> (Server, CertificateDer<'static>) {
    let (_folder, certificate, key, der) = certificate();
    let tls = Tls::from_files(&certificate, &key).unwrap();
    let server = Server::with(|app| {
        app.tls = Some(tls);
        change(app);
    });
    (server, der)
}

/// Opens a TLS connection that trusts this certificate.
fn connect(server: &Server, trusted: CertificateDer<'static>) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    StreamOwned::new(client, server.connect())
}

#[test]
fn one_tls_connection_serves_many_requests() {
    let (server, trusted) = serve(|_| {});
    let mut stream = connect(&server, trusted);
    for _ in 0..3 {
        stream.write_all(b"GET /core/getgametitle HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let reply = Reply::read(&mut stream);
        assert_eq!((reply.status, reply.text().as_str()), (200, "FRAMEWIRE"));
    }
    stream
        .write_all(b"GET /core/readrange?address=0x08000000&length=300000 HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    // Two hexadecimal digits for each byte, with commas between them.
    assert_eq!(Reply::read(&mut stream).body.len(), 300_000 * 3 - 1);
}

#[test]
fn plain_http_gets_an_error_with_the_https_address() {
    let (server, _) = serve(|_| {});
    let reply = server.get("/core/getgametitle");
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("https://"), "{}", reply.text());
}

#[test]
fn tokens_and_cookies_work_over_tls() {
    let token = Token::random().unwrap();
    let tokens = Tokens::new(Some(token.clone()), None).unwrap();
    let (server, trusted) = serve(|app| app.access.tokens = tokens);
    let host = format!("localhost:{}", server.address.port());
    let exchange = |request: String| {
        let mut stream = connect(&server, trusted.clone());
        stream.write_all(request.as_bytes()).unwrap();
        Reply::read(&mut stream)
    };
    let get =
        |more: String| exchange(format!("GET /core/getgametitle HTTP/1.1\r\nhost: {host}\r\n{more}\r\n"));
    assert_eq!(get(String::new()).status, 401);
    assert_eq!(get(format!("authorization: Bearer {}\r\n", token.reveal())).status, 200);
    let form = format!("token={}", token.reveal());
    let reply = exchange(format!(
        "POST /v1/login HTTP/1.1\r\nhost: {host}\r\norigin: https://{host}\r\ncontent-length: {}\r\n\
         content-type: application/x-www-form-urlencoded\r\n\r\n{form}",
        form.len()
    ));
    let cookie = reply.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.starts_with("__Host-framewire-") && cookie.ends_with("; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(get(format!("cookie: {cookie}\r\n")).status, 200);
    let plain = exchange(format!(
        "POST /core/step HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\ncookie: {cookie}\r\n\r\n"
    ));
    assert_eq!(plain.status, 401, "a page without TLS on the same host");
}

#[test]
fn clients_without_a_tls_handshake_do_not_disturb_others() {
    let (server, trusted) = serve(|app| app.limits.head = Duration::from_secs(3));
    let mut silent = server.connect();
    // The header of a handshake record of 512 bytes, and the first of these bytes.
    let mut half = server.connect();
    half.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    // A complete handshake record with invalid content.
    let mut garbage = server.connect();
    garbage.write_all(&[22, 3, 1, 0, 3, 9, 9, 9]).unwrap();
    let mut stream = connect(&server, trusted);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200);
    assert!(is_closed(&mut silent));
    for (name, mut stream) in [("garbage", garbage), ("half", half)] {
        // An alert may come before the end.
        let end = stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
        assert!(matches!(end, Ok(_) | Err(ErrorKind::ConnectionReset)), "{name}: {end:?}");
    }
}

#[test]
fn errors_say_what_is_wrong_with_the_files() {
    let (folder, certificate, key, _) = certificate();
    let (_other, _, other_key, _) = self::certificate();
    let nothing = folder.path().join("nothing.pem");
    let damaged = folder.path().join("damaged.pem");
    std::fs::write(&damaged, "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n").unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    std::fs::set_permissions(&empty, PermissionsExt::from_mode(0o600)).unwrap();
    let open = folder.path().join("open.pem");
    std::fs::copy(&key, &open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o640)).unwrap();
    let endless = folder.path().join("endless.pem");
    File::create(&endless).unwrap().set_len(1 << 40).unwrap();
    std::fs::set_permissions(&endless, PermissionsExt::from_mode(0o600)).unwrap();
    for (certificate, key, says) in [
        (&nothing, &key, "cannot read"),
        (&certificate, &nothing, "cannot read"),
        (&key, &key, "holds no certificate"),
        (&certificate, &open, "chmod 600"),
        (&empty, &key, "holds no certificate"),
        (&certificate, &empty, "holds no private key"),
        (&PathBuf::from("/dev/zero"), &key, "cannot read /dev/zero"),
        (&certificate, &endless, "cannot read"),
        (&damaged, &key, "damaged.pem"),
        (&certificate, &other_key, "cannot be used together"),
    ] {
        let error = Tls::from_files(certificate, key).err().expect("refused").to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_private_key_that_others_may_read_or_change_is_refused() {
    let (_folder, certificate, key, _) = certificate();
    for mode in [0o644, 0o640, 0o604, 0o620] {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        let error = Tls::from_files(&certificate, &key).err().expect("refused").to_string();
        assert!(error.contains("chmod 600") && error.contains(&format!("{mode:o}")), "{error}");
    }
    for mode in [0o600, 0o400] {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        assert!(Tls::from_files(&certificate, &key).is_ok(), "{mode:o}");
    }
}
