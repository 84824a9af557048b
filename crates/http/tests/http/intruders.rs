//! Requests that must be refused: from foreign web pages, for foreign host names (DNS rebinding), with wrong or missing
//! tokens, with a cookie but without an origin, and with paths that lead out of the folder for files. Each case is one
//! request. No case may change anything, and no reply may reveal anything.

mod cases;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_http::{Files, FrontEnd, LocalCalls, Token, Tokens};
use framewire_mcp::{
    Backend, CallFuture, Connect, EndFuture, HttpHost, Object, Options, Problem as McpProblem, Session,
};

use self::cases::{
    At, BROWSER, Batch, CASES, Case, Get, Guarded, Mcp, McpAct, McpScript, Other, Peek, Picture, Poke, Post,
    Script, Socket, Usual, WriteInBatch, WriteTo,
};
use super::support::{Reply, Server, field, wait_for};
use super::until_good::until_good;

/// Passes the calls of the MCP front end to the server's JSON-RPC methods.
struct Calls(LocalCalls);

impl Backend for Calls {
    fn call<'a>(&'a self, method: &'a str, params: Object) -> CallFuture<'a> {
        Box::pin(async move {
            self.0.call(method, params).await.map_err(|problem| McpProblem::from_json(&problem))
        })
    }

    fn only_reads(&self) -> bool {
        self.0.only_reads()
    }

    fn stopped(&self) -> EndFuture<'_> {
        Box::pin(self.0.stopped())
    }
}

/// The MCP front end.
pub fn mcp() -> FrontEnd {
    let routes = |calls: LocalCalls| {
        // All MCP sessions share this lock, so that their tools run frames one after the other.
        let playing = Arc::default();
        let (senders, server) = (calls.clone(), calls.clone());
        let host = HttpHost {
            sender: Arc::new(move |extensions| senders.for_sender(extensions).name()),
            stopped: Box::pin(async move { server.stopped().await }),
        };
        let connect: Connect = Arc::new(move |parts| {
            let mut options = Options::default();
            options.read_query(parts.uri.query().unwrap_or_default())?;
            let backend = Arc::new(Calls(calls.for_sender(&parts.extensions)));
            Ok(Session::new(backend, options, Arc::clone(&playing)))
        });
        framewire_mcp::router(host, connect)
    };
    FrontEnd { path: framewire_mcp::PATH, routes: Arc::new(routes) }
}

/// The headers that MCP clients send with each request.
const MCP_HEADERS: &str = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
                           mcp-protocol-version: 2025-11-25\r\n";

/// The message that opens an MCP session.
pub const MCP_INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

/// Opens a stream of MCP notifications about the picture, and waits for the acknowledgement. Returns the connection and
/// the bytes that were read so far.
pub fn mcp_listen(server: &Server) -> (TcpStream, Vec<u8>) {
    let body = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"#,
        r#""notifications":{"resourceSubscriptions":["framewire://screen"]},"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#
    );
    let mut stream = server.connect();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&read).contains("notifications/subscriptions/acknowledged") {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&buffer[..count]);
    }
    (stream, read)
}

/// A call of an MCP tool that writes to the game's memory.
fn mcp_write() -> String {
    mcp_call("write", r#"{"address":"scratch","value":99}"#)
}

fn mcp_call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Lua code that writes to the game's memory.
fn script() -> String {
    serde_json::json!({"code": format!("emu:write8({}, 99)", field("scratch"))}).to_string()
}

/// The servers, and the values of the placeholders in the cases.
struct Scene {
    usual: Server,
    guarded: Server,
    /// A folder that callers must not reach. It contains `files`, the folder for files of the guarded server.
    outside: tempfile::TempDir,
    token: String,
    /// The read-only token.
    read: String,
    /// The id of a login session with the full token.
    session: String,
    /// The id of a login session with the read-only token.
    read_session: String,
    /// The ids of a watch that the full token created, and of a shared watch, which belongs to all of its readers.
    watches: [String; 2],
}

impl Scene {
    fn new() -> Scene {
        let outside = tempfile::tempdir().unwrap();
        let files = outside.path().join("files");
        std::fs::create_dir(&files).unwrap();
        std::os::unix::fs::symlink(outside.path(), files.join("out")).unwrap();
        std::fs::write(outside.path().join("secret.sav"), [7; 64]).unwrap();
        std::os::unix::fs::symlink("../secret.sav", files.join("secret")).unwrap();
        let (token, read) = (Token::random().unwrap(), Token::random().unwrap());
        let tokens = Tokens::new(Some(token.clone()), Some(read.clone())).unwrap();
        let guarded = Server::with(|app| {
            app.access.tokens = tokens;
            app.access.files = Some(Files::within(&files).unwrap());
            app.access.scripts = true;
            app.front_end = Some(mcp());
        });
        let mut scene = Scene {
            usual: Server::with(|app| {
                app.access.scripts = true;
                app.front_end = Some(mcp());
            }),
            guarded,
            outside,
            token: token.reveal().to_owned(),
            read: read.reveal().to_owned(),
            session: String::new(),
            read_session: String::new(),
            watches: Default::default(),
        };
        scene.session = scene.log_in(&scene.token);
        scene.read_session = scene.log_in(&scene.read);
        scene.watches = scene.watch_and_search();
        scene
    }

    /// With the full token, creates a watch and a search, and begins to read another watch. Returns the ids of the
    /// watches.
    fn watch_and_search(&self) -> [String; 2] {
        let authorization = format!("authorization: Bearer {}\r\n", self.token);
        let ask = |method, target, body: &str| {
            let reply = self.guarded.request_with(method, target, &authorization, body.as_bytes());
            let json: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            (reply.status, json)
        };
        let (status, watch) = ask("POST", "/v1/watches", r#"{"watch":["u8[0x02000000]"]}"#);
        assert_eq!(status, 201, "{watch}");
        let (status, search) = ask("POST", "/v1/search", r#"{"type":"u8"}"#);
        assert_eq!((status, &search["id"]), (201, &serde_json::json!(1)), "{search}");
        let mut reader = self.guarded.connect();
        write!(reader, "GET /v1/watch?watch=1 HTTP/1.1\r\nhost: localhost\r\n{authorization}\r\n").unwrap();
        let own = watch["id"].as_str().unwrap().to_owned();
        let mut shared = None;
        wait_for("the shared watch", || {
            let (_, list) = ask("GET", "/v1/watches", "");
            let ids = list["watches"].as_array().unwrap().iter().map(|watch| watch["id"].as_str().unwrap());
            shared = ids.map(str::to_owned).find(|id| *id != own);
            shared.is_some()
        });
        [own, shared.unwrap()]
    }

    /// Logs in with this token, and returns the id of the new session.
    fn log_in(&self, token: &str) -> String {
        let form = format!("token={token}");
        let kind = "content-type: application/x-www-form-urlencoded\r\n";
        let reply = self.guarded.request_with("POST", "/v1/login", kind, form.as_bytes());
        assert_eq!(reply.status, 204, "{}", reply.text());
        let cookie = reply.header("set-cookie").unwrap();
        let (_, id) = cookie.split(';').next().unwrap().split_once('=').unwrap();
        id.to_owned()
    }

    fn server(&self, at: At) -> &Server {
        match at {
            Usual => &self.usual,
            Guarded => &self.guarded,
        }
    }

    /// Replaces the placeholders in a text.
    fn filled(&self, at: At, text: &str) -> String {
        let address = self.server(at).address;
        text.replace("{host}", &address.to_string())
            .replace("{cookie}", &format!("framewire-{}", address.port()))
            .replace("{token}", &self.token)
            .replace("{read}", &self.read)
            .replace("{session}", &self.session)
            .replace("{read_session}", &self.read_session)
            .replace("{watch}", &self.watches[0])
            .replace("{shared}", &self.watches[1])
            .replace("{outside}", self.outside.path().to_str().unwrap())
            .replace("BROWSER", BROWSER)
    }

    /// Sends the request of a case, and returns what is wrong with the answer, if anything.
    fn fault(&self, case: &Case) -> Option<String> {
        let scratch = field("scratch");
        let (method, target, body) = match case.attempt {
            Poke => ("POST", format!("/core/write8?address={scratch}&value=99"), String::new()),
            Batch => {
                let op = format!(r#"{{"op":"write8","address":{scratch},"value":99}}"#);
                ("POST", "/v1/batch".to_owned(), format!(r#"{{"ops":[{op}]}}"#))
            }
            Peek => ("GET", "/core/getgametitle".to_owned(), String::new()),
            Picture => ("GET", "/screen.png".to_owned(), String::new()),
            Socket => ("GET", "/v1/ws".to_owned(), String::new()),
            Get(target) => ("GET", target.to_owned(), String::new()),
            Post(target, body) => ("POST", target.to_owned(), body.to_owned()),
            Other(method, target) => (method, target.to_owned(), String::new()),
            WriteTo(path) => ("POST", format!("/core/screenshot?path={path}"), String::new()),
            WriteInBatch(path) => {
                let op = format!(r#"{{"op":"screenshot_file","path":"{path}"}}"#);
                ("POST", "/v1/batch".to_owned(), format!(r#"{{"ops":[{op}]}}"#))
            }
            Mcp(target) => ("POST", target.to_owned(), mcp_write()),
            Script => ("POST", "/v1/script".to_owned(), script()),
            McpScript(target) => ("POST", target.to_owned(), mcp_call("script", &script())),
            McpAct(target) => ("POST", target.to_owned(), mcp_call("act", r#"{"keys":"Select+L+R:5"}"#)),
        };
        let further = match case.attempt {
            Mcp(_) | McpAct(_) | McpScript(_) => MCP_HEADERS,
            Socket => {
                "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            }
            _ => "",
        };
        let (target, body) = (self.filled(case.at, &target), self.filled(case.at, &body));
        let headers = self.filled(case.at, case.headers);
        let mut stream = self.server(case.at).connect();
        let length = body.len();
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\n{headers}{further}content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let reply = Reply::read(&mut stream);
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        if reply.status != case.status {
            return Some(format!("answered {} instead of {}: {text}", reply.status, case.status));
        }
        let outside = self.outside.path().to_str().unwrap();
        // An error may repeat a path that the request contains.
        let named = target.contains(outside) || body.contains(outside);
        // FRAMEWIRE is the game's title.
        if text.contains("FRAMEWIRE") || text.contains(&self.token) || !named && text.contains(outside) {
            return Some(format!("reveals too much: {text}"));
        }
        if reply.status == 200 && !text.contains(r#""isError":true"#) {
            return Some(format!("was performed: {text}"));
        }
        if reply.header("access-control-allow-origin").is_some() {
            return Some("lets the page read the answer".to_owned());
        }
        if reply.status == 401 && reply.header("www-authenticate") != Some("Bearer realm=\"framewire\"") {
            return Some("does not ask for a token".to_owned());
        }
        let required = ["content-security-policy", "x-content-type-options", "cross-origin-resource-policy"];
        required.iter().find(|name| reply.header(name).is_none()).map(|name| format!("lacks {name}"))
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = [self.outside.path(), &self.outside.path().join("files")]
            .iter()
            .flat_map(|folder: &&Path| std::fs::read_dir(folder).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn requests_without_permission_change_nothing_and_reveal_nothing() {
    let scene = Scene::new();
    let files = scene.files();
    let titles: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    let unique: std::collections::HashSet<_> = titles.iter().collect();
    assert!(unique.len() == titles.len() && titles.len() >= 109, "{} cases", titles.len());
    let faults: Vec<String> =
        CASES.iter().filter_map(|case| Some(format!("{}: {}", case.name, scene.fault(case)?))).collect();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), CASES.len(), faults.join("\n"));
    let scratch = format!("/core/read8?address={}", field("scratch"));
    assert_eq!(scene.usual.text(&scratch), "0");
    let authorization = format!("authorization: Bearer {}\r\n", scene.token);
    assert_eq!(scene.guarded.request_with("GET", &scratch, &authorization, b"").text(), "0");
    assert_eq!(scene.files(), files);
    let watch = format!("/v1/watches/{}", scene.watches[0]);
    for target in [watch.as_str(), "/v1/search/1"] {
        let reply = scene.guarded.request_with("GET", target, &authorization, b"");
        assert_eq!(reply.status, 200, "{target} is gone");
    }
}

/// Checks that the MCP cases would change memory if the server accepted them.
#[test]
fn mcp_with_the_token_changes_memory() {
    let scene = Scene::new();
    let authorization = format!("authorization: Bearer {}\r\n{MCP_HEADERS}", scene.token);
    let reply = scene.guarded.request_with("POST", "/mcp", &authorization, mcp_write().as_bytes());
    assert!(reply.status == 200 && !reply.text().contains(r#""isError":true"#), "{}", reply.text());
    let scratch = format!("/core/read8?address={}", field("scratch"));
    assert_eq!(scene.guarded.request_with("GET", &scratch, &authorization, b"").text(), "99");
}

/// Checks that the cases with Lua code would change memory if the server accepted them, and that a server without
/// `--allow-script` refuses them.
#[test]
fn scripts_with_the_token_change_memory_if_scripts_are_allowed() {
    let scene = Scene::new();
    let authorization = format!("authorization: Bearer {}\r\n", scene.token);
    let scratch = format!("/core/read8?address={}", field("scratch"));
    let reply = scene.guarded.request_with("POST", "/v1/script", &authorization, script().as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(scene.guarded.request_with("GET", &scratch, &authorization, b"").text(), "99");
    let headers = format!("{authorization}{MCP_HEADERS}");
    let body = mcp_call("script", r#"{"code":"return emu:currentFrame() >= 0"}"#);
    let reply = scene.guarded.request_with("POST", "/mcp?toolsets=script", &headers, body.as_bytes());
    assert!(reply.text().contains("true") && !reply.text().contains(r#""isError":true"#), "{}", reply.text());

    let usual = Server::with(|app| app.front_end = Some(mcp()));
    let reply = usual.request("POST", "/v1/script", script().as_bytes());
    assert!(reply.status == 403 && reply.text().contains("--allow-script"), "{}", reply.text());
    let body = mcp_call("script", &script());
    let reply = usual.request_with("POST", "/mcp?toolsets=script", MCP_HEADERS, body.as_bytes());
    assert!(
        reply.text().contains(r#""isError":true"#) && reply.text().contains("--allow-script"),
        "{}",
        reply.text()
    );
    assert_eq!(usual.text(&scratch), "0");
}

/// A read-only token may do everything with the watches and searches that it created itself.
#[test]
fn a_read_only_token_changes_and_ends_its_own_watches_and_searches_only() {
    let scene = Scene::new();
    let ask = |token: &str, method: &str, target: &str, body: &str| {
        let authorization = format!("authorization: Bearer {token}\r\n");
        scene.guarded.request_with(method, target, &authorization, body.as_bytes())
    };
    let location = |reply: &Reply| reply.header("location").unwrap().to_owned();
    let (read, full) = (&scene.read, &scene.token);
    let begun = ask(read, "POST", "/v1/search", r#"{"type":"u8"}"#);
    let search = location(&begun);
    assert_eq!(ask(read, "POST", &format!("{search}/narrow"), r#"{"is":"unchanged"}"#).status, 200);
    assert_eq!(ask(read, "POST", &format!("{search}/undo"), "").status, 200);
    assert_eq!(ask(full, "DELETE", &search, "").status, 204, "the full token may end any search");
    // New searches of the read-only token replace its old ones, but never those of the full token.
    for _ in 0..20 {
        assert_eq!(ask(read, "POST", "/v1/search", r#"{"type":"u8"}"#).status, 201);
    }
    assert_eq!(ask(full, "GET", "/v1/search/1", "").status, 200);
    let watch = location(&ask(read, "POST", "/v1/watches", r#"{"watch":["u8[0]"]}"#));
    assert_eq!(ask(read, "DELETE", &watch, "").status, 204);
    // The read-only token can create only a part of the watches that the server accepts, so others can create some too.
    let make = |token: &str, number: u32| {
        let body = format!(r#"{{"watch":["u8[{}]"]}}"#, 0x0200_0000 + number);
        ask(token, "POST", "/v1/watches", &body).status
    };
    let made = (0..70).filter(|number| make(read, *number) == 201).count();
    assert_eq!(made, 64);
    assert_eq!(make(full, 100), 201);
}

#[test]
fn after_ten_wrong_tokens_further_guesses_must_wait_but_the_right_token_is_accepted() {
    let ask = |scene: &Scene, token: &str| {
        let authorization = format!("authorization: Bearer {token}\r\n");
        scene.guarded.request_with("GET", "/core/getgametitle", &authorization, b"")
    };
    let mut last = None;
    let guess_all = || {
        let scene = Scene::new();
        let begun = Instant::now();
        let replies: Vec<Reply> = (0..12).map(|guess| ask(&scene, &format!("{guess:032}"))).collect();
        let time = begun.elapsed();
        last = Some((scene, replies));
        time
    };
    // After 6 s, one more guess does not have to wait.
    until_good(guess_all, |time| *time < Duration::from_secs(5));
    let (scene, replies) = last.unwrap();
    assert!(replies.iter().all(|reply| reply.status == 401), "{replies:?}");
    assert!(replies.iter().all(|reply| reply.header("www-authenticate").is_some()), "{replies:?}");
    let waits = |reply: &Reply| reply.header("retry-after").map(|wait| wait.parse::<u32>().unwrap() > 0);
    let must_wait: Vec<_> = replies.iter().map(waits).collect();
    assert_eq!(must_wait, [[None; 10].as_slice(), &[Some(true); 2]].concat());
    assert_eq!(ask(&scene, &scene.token).status, 200, "the right token does not have to wait");
    let session = scene.filled(Guarded, "cookie: {cookie}={session}\r\n");
    assert_eq!(scene.guarded.request_with("GET", "/core/getgametitle", &session, b"").status, 200);
    assert_eq!(scene.guarded.get("/core/getgametitle").status, 401, "a request without a token");
}

/// An MCP session belongs to the token that opened it. Its requests go through the same checks as all other requests.
#[test]
fn an_mcp_session_works_only_with_the_token_that_opened_it() {
    let scene = Scene::new();
    // Returns the status and the whole reply, which may have no `content-length`.
    let ask = |method: &str, headers: &str, body: &str| {
        let headers = scene.filled(Guarded, headers);
        let length = body.len();
        let mut stream = scene.guarded.connect();
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{MCP_HEADERS}{headers}content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status: u16 = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text)
    };
    let open = |token: &str| {
        let (_, text) = ask("POST", token, MCP_INITIALIZE);
        let line = text.lines().find(|line| line.starts_with("mcp-session-id: ")).expect("a session");
        format!("{line}\r\n")
    };
    let full = "authorization: Bearer {token}\r\n";
    let read = "authorization: Bearer {read}\r\n";
    let session = open(full);
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let own = format!("{full}{session}");
    let (status, text) = ask("POST", &own, list);
    assert!(status == 200 && text.contains("\"write\""), "{text}");
    for (headers, expected) in [
        (session.clone(), 401),
        (format!("{read}{session}"), 404),
        (format!("{own}origin: http://evil.example\r\n"), 403),
        (format!("authorization: Bearer 00000000000000000000000000000000\r\n{session}"), 401),
    ] {
        for (method, body) in [("POST", mcp_write().as_str()), ("GET", ""), ("DELETE", "")] {
            let (status, text) = ask(method, &headers, body);
            assert_eq!(status, expected, "{method} with {headers}: {text}");
        }
    }
    // A session of the read-only token offers no tool that changes anything.
    let reading = format!("{read}{}", open(read));
    let (_, text) = ask("POST", &reading, &mcp_write());
    assert!(text.contains(r#""isError":true"#), "{text}");
    assert_eq!(ask("DELETE", &own, "").0, 204);
    assert_eq!(ask("POST", &own, list).0, 404);
}
