//! How the server sends the console page and its files. tests/browser tests the page itself in a browser.

use std::io::Read;

use flate2::read::GzDecoder;

use super::support::Server;

#[test]
fn the_content_security_policy_of_the_page_allows_only_this_server() {
    let server = Server::start();
    let page = server.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("/console/app-"), "{}", page.text());
    let policy = page.header("content-security-policy").unwrap();
    for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn the_files_of_the_page_have_content_types_and_etags() {
    let server = Server::start();
    let page = server.get("/").text().to_owned();
    let named = |begin: &str| {
        let rest = page.split(&format!("\"/console/{begin}-")).nth(1).unwrap();
        format!("/console/{begin}-{}", rest.split('"').next().unwrap())
    };
    for (path, kind, caching) in [
        (&*named("app"), "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
        (&*named("style"), "text/css; charset=utf-8", "public, max-age=31536000, immutable"),
        ("/console/icon.svg", "image/svg+xml", "no-cache"),
        ("/", "text/html; charset=utf-8", "no-cache"),
    ] {
        let file = server.get(path);
        assert_eq!(file.header("cache-control"), Some(caching), "{path}");
        let small = server.request_with("GET", path, "accept-encoding: br, gzip\r\n", b"");
        assert_eq!(
            (small.header("content-encoding"), small.header("vary")),
            (Some("gzip"), Some("Accept-Encoding"))
        );
        let mut plain = Vec::new();
        GzDecoder::new(&small.body[..]).read_to_end(&mut plain).unwrap();
        assert!(plain == file.body, "{path} differs after compression");
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
        assert!(!file.body.is_empty(), "{path}");
        let tag = file.header("etag").unwrap().to_owned();
        for tags in [tag.clone(), format!("\"other\", W/{tag}")] {
            let again = server.request_with("GET", path, &format!("if-none-match: {tags}\r\n"), b"");
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            let head = server.request_with("HEAD", path, &format!("if-none-match: {tags}\r\n"), b"");
            assert_eq!((head.status, head.header("content-length")), (304, None), "{path}");
        }
        let lines = format!("if-none-match: \"other\"\r\nif-none-match: {tag}\r\n");
        for headers in [lines.as_str(), "if-none-match: *\r\n"] {
            assert_eq!(server.request_with("GET", path, headers, b"").status, 304, "{path} {headers}");
        }
        let changed = server.request_with("GET", path, "if-none-match: \"other\"\r\n", b"");
        assert_eq!(changed.status, 200, "{path}");
    }
}

#[test]
fn the_openapi_document_and_the_docs_page_are_compressed_for_clients_that_accept_it() {
    let server = Server::start();
    let whole = server.get("/openapi.json");
    assert_eq!(whole.header("content-encoding"), None);
    let small = server.request_with("GET", "/openapi.json", "accept-encoding: gzip\r\n", b"");
    assert_eq!(small.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    GzDecoder::new(&small.body[..]).read_to_end(&mut plain).unwrap();
    assert!(plain == whole.body);
    assert!(small.body.len() < 50_000, "{} of {} bytes", small.body.len(), whole.body.len());
    let (whole, small) =
        (server.get("/docs"), server.request_with("GET", "/docs", "accept-encoding: gzip\r\n", b""));
    assert_eq!(small.header("content-encoding"), Some("gzip"));
    assert!(small.body.len() < 120_000, "{} of {} bytes", small.body.len(), whole.body.len());
}

#[test]
fn unknown_files_get_a_404() {
    let server = Server::start();
    for path in ["/console/none.js", "/console/", "/console/main.js", "/console/..%2ficon.svg", "/index.html"]
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
            assert_eq!(server.request(method, path, b"").status, 404, "{method} {path}");
        }
    }
    let reply = server.post("/console/icon.svg");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")));
}
