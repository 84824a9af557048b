//! Which requests the server accepts from foreign web pages, from its own pages and from programs.

use std::io::Write;

use super::support::{Reply, Server};

/// Sends a request with only these headers and `content-length`. `line` is the method and the target.
pub fn ask(server: &Server, line: &str, headers: &str) -> Reply {
    let mut stream = server.connect();
    write!(stream, "{line} HTTP/1.1\r\n{headers}content-length: 0\r\n\r\n").unwrap();
    Reply::read(&mut stream)
}

#[test]
fn a_request_from_a_foreign_page_is_refused_and_changes_nothing() {
    let server = Server::start();
    let path = server.file("picture.png");
    for origin in ["http://evil.example", "https://localhost:3000", "null"] {
        let headers = format!("host: {}\r\norigin: {origin}\r\n", server.address);
        let reply = ask(&server, &format!("POST /core/screenshot?path={path}"), &headers);
        assert_eq!(reply.status, 403, "{origin}");
        assert!(reply.text().contains(&format!("--allow-origin {origin}")), "{}", reply.text());
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn a_browser_request_with_a_foreign_host_name_is_refused() {
    let server = Server::start();
    for line in ["GET /core/getgametitle", "POST /core/step", "GET /healthz", "GET /nothing"] {
        // `accept-language` shows that the request comes from a browser.
        let reply = ask(&server, line, "host: evil.example:5000\r\naccept-language: en\r\n");
        assert_eq!((reply.status, reply.header("connection")), (403, Some("close")), "{line}");
        assert!(reply.text().contains("--allow-host evil.example"), "{}", reply.text());
    }
}

#[test]
fn programs_and_the_servers_own_pages_are_served() {
    let server = Server::start();
    let port = server.address.port();
    let own = format!("host: localhost:{port}\r\norigin: http://localhost:{port}\r\n");
    for headers in [
        format!("host: 127.0.0.1:{port}\r\n"),
        format!("host: [::1]:{port}\r\n"),
        format!("host: localhost:{port}\r\n"),
        "host: localhost\r\n".to_owned(),
        "host: emulator.example:5000\r\n".to_owned(),
        "host:\r\n".to_owned(),
        own,
    ] {
        assert_eq!(ask(&server, "POST /core/step", &headers).status, 200, "{headers}");
    }
    for path in ["/healthz", "/screen.png", "/mgbaendpoint", "/core/CurrentFrame/"] {
        let line = format!("{} {path}", if path == "/mgbaendpoint" { "POST" } else { "GET" });
        let reply = ask(&server, &line, "host: emulator.example:5000\r\n");
        assert_ne!(reply.status, 403, "{line}: {}", reply.text());
    }
    let mut stream = server.connect();
    stream.write_all(b"GET /core/getgametitle HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200, "without any headers");
}

#[test]
fn an_allowed_host_name_is_accepted_on_every_route() {
    let server = Server::with(|app| app.access.pages.allow_host("desk").unwrap());
    for line in ["GET /v1/emulators", "GET http://DESK:1/v1/emulators", "GET /", "GET /metrics"] {
        assert_eq!(ask(&server, line, "host: desk:5000\r\n").status, 200, "{line}");
    }
    assert_eq!(ask(&server, "GET http://other/v1/emulators", "host: desk\r\n").status, 403);
}

#[test]
fn an_allowed_page_is_served_and_may_read_the_reply() {
    let server = Server::with(|app| {
        app.access.pages.allow_origin("http://tool.example").unwrap();
        app.access.pages.allow_host("desk").unwrap();
    });
    let page = "host: desk:5000\r\norigin: http://tool.example\r\n";
    let reply = ask(&server, "POST /core/step", page);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://tool.example"));
    assert_eq!(reply.header("vary"), Some("origin"));
    let compressed = ask(&server, "GET /docs", &format!("{page}accept-encoding: gzip\r\n"));
    let vary = compressed.headers.iter().filter(|(name, _)| name == "vary");
    let vary: Vec<&str> = vary.map(|(_, value)| value.as_str()).collect();
    assert_eq!(vary, ["Accept-Encoding", "origin"], "a cache must keep one reply for each encoding and page");
    let preflight = format!("{page}access-control-request-method: POST\r\n");
    let reply = ask(&server, "OPTIONS /core/step", &preflight);
    assert_eq!(
        (reply.status, reply.header("access-control-allow-methods")),
        (204, Some("GET, HEAD, POST, PUT, PATCH, DELETE"))
    );
    let allowed = reply.header("access-control-allow-headers").unwrap_or_default();
    let exposed = reply.header("access-control-expose-headers").unwrap_or_default();
    for name in ["mcp-protocol-version", "mcp-session-id", "mcp-method"] {
        assert!(allowed.split(", ").any(|allowed| allowed == name), "{allowed}");
    }
    assert!(exposed.split(", ").any(|exposed| exposed == "mcp-session-id"), "{exposed}");
    let other = ask(&server, "POST /core/step", "host: desk\r\norigin: http://other.example\r\n");
    assert_eq!(other.status, 403);
}

#[test]
fn an_allowed_page_can_read_the_reply_to_a_wrong_method() {
    let server = Server::with(|app| app.access.pages.allow_origin("file://").unwrap());
    for target in ["/v1/pause", "/v1/emulator", "/healthz", "/core/step"] {
        let reply = server.request_with("DELETE", target, "origin: file://\r\n", b"");
        assert_eq!(reply.status, 405, "{target}");
        assert_eq!(reply.header("access-control-allow-origin"), Some("file://"), "{target}");
        assert!(reply.header("content-security-policy").is_some(), "{target}");
    }
}

#[test]
fn an_allowed_page_can_read_the_headers_of_every_reply() {
    let server = Server::with(|app| app.access.pages.allow_origin("file://").unwrap());
    let own = ["framewire-frame", "framewire-width", "framewire-height", "x-request-id"];
    for target in ["/v1/screen", "/v1/state", "/v1/memory/0x02000000?length=4&format=raw"] {
        let reply = server.request_with("GET", target, "origin: file://\r\n", b"");
        let exposed = reply.header("access-control-expose-headers").unwrap_or_default().to_owned();
        for name in own {
            assert!(exposed.split(", ").any(|exposed| exposed == name), "{target}: {exposed}");
        }
        // The page can read each of Framewire's own headers that the reply has.
        for (name, _) in reply.headers.iter().filter(|(name, _)| name.starts_with("framewire-")) {
            assert!(exposed.contains(name.as_str()), "{target}: {name}");
        }
    }
}
