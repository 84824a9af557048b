//! Callers that send a token, and browsers that log in with one.

use framewire_http::{Files, Token, Tokens};

use super::support::{Reply, Server};

const FORM: &str = "content-type: application/x-www-form-urlencoded\r\n";
const BROWSER: &str = "accept: text/html,application/xhtml+xml\r\n";

/// A server with a full and a read-only token.
fn guarded() -> (Server, String, String) {
    let (full, read) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(Some(full.clone()), Some(read.clone())).unwrap();
    let server = Server::with(|app| app.access.tokens = tokens);
    (server, full.reveal().to_owned(), read.reveal().to_owned())
}

fn ask(server: &Server, method: &str, target: &str, token: &str) -> Reply {
    server.request_with(method, target, &format!("authorization: Bearer {token}\r\n"), b"")
}

#[test]
fn a_full_token_allows_everything_and_a_read_only_token_allows_reading() {
    let (server, full, read) = guarded();
    let poke = "/core/write8?address=0x02000100&value=5";
    assert_eq!(ask(&server, "POST", poke, &full).status, 200);
    for token in [&full, &read] {
        for target in
            ["/core/read8?address=0x02000100", "/healthz", "/metrics", "/screen.png", "/v1/emulator", "/docs"]
        {
            assert_eq!(ask(&server, "GET", target, token).status, 200, "{target}");
        }
        // A POST that only reads.
        assert_eq!(ask(&server, "POST", "/core/savestatebuffer", token).status, 200);
        let headers = format!("authorization: bearer {token}\r\n");
        let batch = br#"{"ops":[{"op":"read8","address":"0x02000100"}]}"#;
        assert_eq!(server.request_with("POST", "/v1/batch", &headers, batch).status, 200);
    }
    let refused = ask(&server, "POST", poke, &read);
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("is read-only"), "{}", refused.text());
}

#[test]
fn a_refusal_under_v1_is_problem_json() {
    let (server, ..) = guarded();
    let reply = server.get("/v1/emulator");
    assert_eq!((reply.status, reply.header("content-type")), (401, Some("application/problem+json")));
    assert!(reply.text().contains("Authorization: Bearer TOKEN"), "{}", reply.text());
    let reply = server.get("/core/currentframe");
    assert_eq!(reply.status, 401);
    assert!(reply.header("content-type").unwrap().starts_with("text/plain"));
}

#[test]
fn a_browser_logs_in_uses_its_cookie_and_logs_out() {
    let (server, full, _) = guarded();
    let page = server.request_with("GET", "/docs?x=1&y='", BROWSER, b"");
    assert_eq!((page.status, page.header("cache-control")), (401, Some("no-store")));
    assert!(page.text().contains("value=\"/docs?x=1&amp;y='\""), "{}", page.text());
    let own = format!("origin: http://{}\r\nhost: {0}\r\n", server.address);

    let wrong =
        server.request_with("POST", "/v1/login", &format!("{FORM}{BROWSER}"), b"token=wrong&next=%2Fdocs");
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));
    assert!(wrong.text().contains("value=\"/docs\""), "{}", wrong.text());

    let form = format!("token={full}&next=%2Fdocs");
    let reply = server.request_with("POST", "/v1/login", &format!("{FORM}{BROWSER}"), form.as_bytes());
    assert_eq!((reply.status, reply.header("location")), (303, Some("/docs")));
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("framewire-{}=", server.address.port())), "{cookie}");
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(&full), "the cookie holds the token");

    let session = format!("cookie: theme=dark; {}\r\n", cookie.split(';').next().unwrap());
    assert_eq!(server.request_with("GET", "/docs", &session, b"").status, 200);
    // `request_with` sends `host: localhost`, which is not the host of the page.
    let ask = |line: &str, headers: &str| super::access::ask(&server, line, headers);
    assert_eq!(ask("POST /core/step", &format!("{own}{session}")).status, 200);
    let gone = ask("POST /v1/logout", &format!("{own}{session}"));
    assert_eq!(gone.status, 204);
    assert!(gone.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(server.request_with("GET", "/docs", &session, b"").status, 401);
}

#[test]
fn a_login_never_redirects_to_another_server() {
    let (server, full, _) = guarded();
    for next in [
        "//evil.example/",
        "https://evil.example/",
        "/%5Cevil.example",
        "%2F%2Fevil.example",
        "/a%0d%0aset-cookie:x",
    ] {
        let form = format!("token={full}&next={next}");
        let reply = server.request_with("POST", "/v1/login", &format!("{FORM}{BROWSER}"), form.as_bytes());
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{next}");
    }
}

#[test]
fn head_gets_the_headers_of_the_login_page() {
    let (server, ..) = guarded();
    let page = server.request_with("GET", "/docs", BROWSER, b"");
    let head = server.request_with("HEAD", "/docs", BROWSER, b"");
    assert_eq!((head.status, head.body.len()), (401, 0));
    for name in ["content-type", "content-length", "content-security-policy", "cache-control"] {
        assert_eq!(head.header(name), page.header(name), "{name}");
    }
}

#[test]
fn logins_with_other_content_types_large_forms_or_foreign_origins_are_refused() {
    let (server, full, _) = guarded();
    let reply = server.request_with("POST", "/v1/login", "content-type: text/plain\r\n", b"token=x");
    assert_eq!(reply.status, 415, "{}", reply.text());
    let reply = server.request_with("POST", "/v1/login", FORM, &[b'x'; 100_000]);
    assert_eq!(reply.status, 413, "{}", reply.text());
    let foreign = format!("{FORM}origin: http://evil.example\r\n");
    let reply = server.request_with("POST", "/v1/login", &foreign, format!("token={full}").as_bytes());
    assert_eq!((reply.status, reply.header("set-cookie")), (403, None));
}

#[test]
fn a_login_at_a_server_without_tokens_says_that_it_needs_none() {
    let reply = Server::start().request_with("POST", "/v1/login", FORM, b"token=x");
    assert_eq!((reply.status, reply.header("set-cookie")), (404, None));
    assert!(reply.text().contains("this server needs no token"), "{}", reply.text());
}

#[test]
fn paths_of_files_are_relative_to_the_folder_for_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::within(folder.path()).unwrap();
    let server = Server::with(|app| app.access.files = Some(files));
    let target = "/core/screenshot?path=picture.png";
    for headers in ["", "x-forwarded-for: 203.0.113.7\r\n"] {
        assert_eq!(server.request_with("POST", target, headers, b"").status, 200);
        assert!(std::fs::read(folder.path().join("picture.png")).unwrap().starts_with(b"\x89PNG"));
        std::fs::remove_file(folder.path().join("picture.png")).unwrap();
    }
    let batch = br#"{"ops":[{"op":"save_state_file","path":"a.ss","flags":0}]}"#;
    assert_eq!(server.request("POST", "/v1/batch", batch).status, 200);
    assert!(folder.path().join("a.ss").exists());
    let outside = server.file("picture.png");
    let reply = server.post(&format!("/core/screenshot?path={outside}"));
    assert_eq!(reply.status, 400, "callers on this machine must stay in the folder too");
    assert!(reply.text().contains("states/1.ss"), "{}", reply.text());
}
