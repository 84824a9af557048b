//! Access from other machines: the program's checks at its start, and its responses. Another machine is simulated by an
//! address in the test's own network namespace.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use framewire_e2e::{Framewire, Http, paths};
use tempfile::TempDir;

use super::served::{PATIENCE, demo_copy, ready, wait_until};

/// The address that simulates another machine. It is from the range for documentation (RFC 5737).
const ELSEWHERE: &str = "192.0.2.1";

/// A folder with a token and a read-only token that the program has created, and the paths of the two files.
fn tokens() -> (TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        let (status, _, said) = Framewire::run(&["token", &path], PATIENCE).unwrap();
        assert!(status.success() && said.contains("--token-file"), "{said}");
        path
    };
    let (full, read) = (make("full"), make("read"));
    (folder, full, read)
}

/// The `Authorization` header for the token in a file.
fn bearer(file: &str) -> String {
    format!("Bearer {}", fs::read_to_string(file).unwrap().trim())
}

#[test]
fn other_machines_need_a_token() {
    let (status, _, said) = Framewire::run(&["serve", "--listen", "0.0.0.0:0"], PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("framewire token") && said.contains("--token-file"), "{said}");

    let (_folder, full, read) = tokens();
    let (status, _, said) = Framewire::run(&["token", &full], PATIENCE).unwrap();
    assert!(!status.success() && said.contains("already exists"), "{said}");
    let server = Framewire::serve(&["--token-file", &full, "--read-token-file", &read]).unwrap();
    let ask = |method: &str, path: &str, file: Option<&str>| {
        let token = file.map(bearer).unwrap_or_default();
        let header = [("authorization", token.as_str())];
        let headers = if token.is_empty() { &[][..] } else { &header[..] };
        server.http().exchange(method, path, headers, Vec::new()).unwrap().status
    };
    assert_eq!(ask("GET", "/healthz", None), 401);
    assert_eq!(ask("GET", "/healthz", Some(&read)), 200);
    assert_eq!(ask("POST", "/core/step", Some(&read)), 403);
    assert_eq!(ask("POST", "/core/step", Some(&full)), 200);
    assert!(!server.log().contains(&bearer(&full)["Bearer ".len()..]), "the log holds the token");
}

#[test]
fn insecure_or_invalid_settings_are_rejected() {
    let (folder, full, _) = tokens();
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let open = file("open", &"x".repeat(64), 0o644);
    let cert = file("cert", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 0o644);
    let symbols = file("nothing.sym", "no symbols", 0o644);
    let short = file("short", "secret", 0o600);
    let empty = file("empty", "", 0o600);
    for (args, says) in [
        (&["--token-file", &open][..], "chmod 600"),
        (&["--token-file", &short], "6 characters"),
        (&["--token-file", &empty], "framewire token"),
        (&["--token-file", "/no/such/file"], "cannot read the token file"),
        (&["--token-file", &full, "--read-token-file", &full], "are the same"),
        (&["--tls-cert", &full], "--tls-key FILE"),
        (&["--tls-cert", &full, "--tls-key", &full], "holds no certificate"),
        (&["--tls-cert", &cert, "--tls-key", &open], "chmod 600"),
        (&["--symbols", "/no/such.sym"], "cannot read the symbol file"),
        (&["--symbols", &symbols], "no symbols found"),
        (&["--symbols", "other=/no/such.sym"], "there is no emulator other"),
        (&["--files", "/no/such/folder"], "--files"),
        (&["--files", "/tmp", "--attach", "192.0.2.1:8888"], "--files cannot be used"),
    ] {
        let all = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        let (status, said, errors) = Framewire::run(&all, PATIENCE).unwrap();
        assert!(!status.success() && said.is_empty(), "{args:?}: {said}");
        assert!(errors.contains(says), "{args:?}: {errors}");
    }
}

#[test]
fn the_scripts_log_uses_the_senders_request_id() {
    let folder = tempfile::tempdir().unwrap();
    let rom = demo_copy(&folder);
    let (args, debug) = (["--rom", rom.to_str().unwrap()], "framewire.log_level = 'debug'");
    let (host, script) = Framewire::host_script(folder.path(), &paths::script(), debug, &args).unwrap();
    let server = Framewire::serve(&["--attach", &script.to_string()]).unwrap();
    let http = server.http();
    ready(&http);
    let id = [("x-request-id", "tool-7")];
    let path = "/core/read8?address=0x02000000";
    assert_eq!(http.exchange("GET", path, &id, Vec::new()).unwrap().status, 200);
    let ops = br#"{"ops":[{"op":"read16","address":"0x02000000"},{"op":"write8","address":"0x02000100","value":1}]}"#;
    let trace = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")];
    assert_eq!(http.exchange("POST", "/v1/batch", &trace, ops.to_vec()).unwrap().status, 200);
    for line in [
        "request tool-7: read8 done",
        "request 4bf92f3577b34da6a3ce929d0e0e4736: read16 done",
        "request 4bf92f3577b34da6a3ce929d0e0e4736: write8 done",
    ] {
        wait_until(line, || Ok(host.log().contains(line)));
    }
    wait_until("the server logged it too", || Ok(server.log().contains("tool-7")));
}

/// Runs [`inside_a_network_of_its_own`] in a network namespace that has an address other than loopback.
#[test]
fn another_machine_without_a_token_gets_only_401() {
    const PREPARE: &str = "ip address add 192.0.2.1/32 dev lo && ip link set lo up";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--net", "--map-root-user", "--", "sh", "-c", script]);
        command
    };
    if !unshare(PREPARE).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may not make a network namespace (unshare --net)");
        return;
    }
    let program = Framewire::command(&[]).unwrap().get_program().to_owned();
    let test = ["--ignored", "--exact", "remote::inside_a_network_of_its_own", "--nocapture"];
    let output = unshare(&format!("{PREPARE} && exec \"$0\" \"$@\""))
        .arg(std::env::current_exe().unwrap())
        .args(test)
        .env("FRAMEWIRE_BIN", program)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by another test, in a network where 192.0.2.1 is an address of this machine"]
fn inside_a_network_of_its_own() {
    let (folder, full, read) = tokens();
    let args = ["--token-file", &full, "--read-token-file", &read];
    let server = Framewire::serve_at("0.0.0.0:0", &args).unwrap();
    let port = server.url().rsplit_once(':').unwrap().1.to_owned();
    let http = Http::new(format!("http://{ELSEWHERE}:{port}"));
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/healthz"),
        ("GET", "/metrics"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/screen.png"),
        ("GET", "/core/read8?address=0x02000000"),
        ("POST", "/core/step"),
        ("POST", "/mgbaendpoint?message=x"),
        ("GET", "/v1/emulators"),
        ("POST", "/v1/batch"),
        ("GET", "/v1/events"),
        ("GET", "/v1/ws"),
        ("GET", "/v1/video"),
        ("GET", "/v1/video.mjpeg"),
        ("PUT", "/v1/state"),
        ("DELETE", "/v1/input"),
        ("GET", "/console/icon.svg"),
        ("GET", "/no/such/path"),
    ] {
        let reply = http.send(method, path, "", Vec::new()).unwrap();
        assert_eq!(reply.status, 401, "{method} {path}: {}", reply.text());
    }
    let token = bearer(&full);
    let headers = [("authorization", token.as_str())];
    assert_eq!(http.exchange("GET", "/healthz", &headers, Vec::new()).unwrap().status, 200);
    let picture = folder.path().join("p.png");
    let path = format!("/core/screenshot?path={}", picture.display());
    let reply = http.exchange("POST", &path, &headers, Vec::new()).unwrap();
    assert_eq!(reply.status, 403, "{}", reply.text());
    assert!(reply.text().contains("--files DIR") && !picture.exists(), "{}", reply.text());
    the_connections_of_one_address_are_limited(&format!("{ELSEWHERE}:{port}"));
}

/// Checks that connections above the limit for one address are rejected, and that another address can still connect.
fn the_connections_of_one_address_are_limited(address: &str) {
    let mut open: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut last = open.pop().unwrap();
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = String::new();
    last.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
    let port = address.rsplit_once(':').unwrap().1;
    let mut local = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    local.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    local.read_to_string(&mut said).unwrap();
    assert!(said.contains("HTTP/1.1 401 "), "{said}");
}
