//! How the server sends the console page and its files. tests/browser tests the page itself in a browser.

use std::io::{Read, Write};

use super::support::Server;

#[test]
fn the_policy_of_the_page_allows_only_this_server() {
    let server = Server::start();
    let page = server.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("/console/main.js"), "{}", page.text());
    let policy = page.header("content-security-policy").unwrap();
    for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn the_files_of_the_page_are_served_with_types_and_tags() {
    let server = Server::start();
    for (path, kind) in [
        ("/console/main.js", "text/javascript; charset=utf-8"),
        ("/console/style/base.css", "text/css; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
    ] {
        let file = server.get(path);
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
        assert!(!file.body.is_empty(), "{path}");
        let tag = file.header("etag").unwrap().to_owned();
        for tags in [tag.clone(), format!("\"other\", W/{tag}")] {
            let again = server.request_with("GET", path, &format!("if-none-match: {tags}\r\n"), b"");
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        }
        let changed = server.request_with("GET", path, "if-none-match: \"other\"\r\n", b"");
        assert_eq!(changed.status, 200, "{path}");
    }
}

#[test]
fn unknown_files_get_a_404() {
    let server = Server::start();
    for path in ["/console/none.js", "/console/", "/console/main.ts", "/console/..%2fmain.js", "/index.html"]
    {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    assert_eq!(server.post("/").status, 405);
}

#[test]
fn unknown_files_get_a_404_for_every_method() {
    let server = Server::start();
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        for path in ["/console/none.js", "/console/a/b", "/console/", "/console"] {
            // The reply to HEAD has no body, so it must be read differently.
            let status = if method == "HEAD" {
                status_of_head(&server, path)
            } else {
                server.request(method, path, b"").status
            };
            assert_eq!(status, 404, "{method} {path}");
        }
    }
    let reply = server.post("/console/main.js");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")));
}

fn status_of_head(server: &Server, path: &str) -> u16 {
    let mut stream = server.connect();
    write!(stream, "HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply.split(' ').nth(1).unwrap().parse().unwrap()
}
