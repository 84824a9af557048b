//! The requests that must be refused, as a table.

/// The server to which a case is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A server that needs no token from callers on this machine.
    Usual,
    /// A server that requires tokens and has a folder for files.
    Guarded,
}
pub use At::{Guarded, Usual};

/// What the request of a case tries to do. It determines the method, the target and the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// Change the game's memory.
    Poke,
    /// Change the game's memory in a batch.
    Batch,
    /// Read the game's title.
    Peek,
    /// Get the picture.
    Picture,
    /// Open a WebSocket.
    Socket,
    /// Send a GET to this target.
    Get(&'static str),
    /// Send a POST to this target, with this body.
    Post(&'static str, &'static str),
    /// Send a request with this method to this target.
    Other(&'static str, &'static str),
    /// Write a picture to this file.
    Write(&'static str),
    /// Write a picture to this file, in a batch.
    WriteInBatch(&'static str),
    /// Change the game's memory with an MCP tool, at this target.
    Mcp(&'static str),
    /// Press keys with an MCP tool, at this target.
    McpAct(&'static str),
    /// Change the game's memory with Lua code.
    Script,
    /// Run the same Lua code with an MCP tool, at this target.
    McpScript(&'static str),
}
pub use Attempt::{
    Batch, Get, Mcp, McpAct, McpScript, Other, Peek, Picture, Poke, Post, Script, Socket, Write as WriteTo,
    WriteInBatch,
};

/// A request that must be refused.
pub struct Case {
    pub name: &'static str,
    pub at: At,
    pub attempt: Attempt,
    /// Header lines. `Scene::filled` replaces the placeholders in braces and `BROWSER`.
    pub headers: &'static str,
    pub status: u16,
}

const fn case(name: &'static str, at: At, attempt: Attempt, headers: &'static str, status: u16) -> Case {
    Case { name, at, attempt, headers, status }
}

pub const BROWSER: &str = "user-agent: Mozilla/5.0 (X11; Linux x86_64)\r\naccept-language: en\r\n";

#[rustfmt::skip]
pub const CASES: &[Case] = &[
    // Pages of other origins.
    case("a form on another site", Usual, Poke, "host: {host}\r\norigin: http://evil.example\r\n", 403),
    case("fetch() on another site", Usual, Batch, "host: {host}\r\norigin: https://evil.example\r\nsec-fetch-site: cross-site\r\n", 403),
    case("a page in a sandboxed frame", Usual, Poke, "host: {host}\r\norigin: null\r\n", 403),
    case("a page from a file", Usual, Batch, "host: {host}\r\norigin: file://\r\n", 403),
    case("a page of another port", Usual, Poke, "host: {host}\r\norigin: http://127.0.0.1:1\r\n", 403),
    case("a page whose name begins like ours", Usual, Poke, "host: {host}\r\norigin: http://{host}.evil.example\r\n", 403),
    case("a page whose name contains ours", Usual, Poke, "host: {host}\r\norigin: http://evil.example/{host}\r\n", 403),
    case("an origin with a user name", Usual, Poke, "host: {host}\r\norigin: http://{host}@evil.example\r\n", 403),
    case("two origins in one header", Usual, Poke, "host: {host}\r\norigin: http://{host} http://evil.example\r\n", 403),
    case("an empty origin", Usual, Poke, "host: {host}\r\norigin: \r\n", 403),
    case("a browser extension", Usual, Poke, "host: {host}\r\norigin: chrome-extension://abcdefgh\r\n", 403),
    case("a form that posts JSON as text", Usual, Batch, "host: {host}\r\norigin: http://evil.example\r\ncontent-type: text/plain\r\n", 403),
    case("a preflight request", Usual, Other("OPTIONS", "/v1/batch"), "host: {host}\r\norigin: http://evil.example\r\naccess-control-request-method: POST\r\n", 403),
    case("a preflight request for a private network", Usual, Other("OPTIONS", "/core/read8"), "host: {host}\r\norigin: http://evil.example\r\naccess-control-request-method: GET\r\naccess-control-request-private-network: true\r\n", 403),
    case("a WebSocket from another site", Usual, Socket, "host: {host}\r\norigin: http://evil.example\r\n", 403),
    case("a WebSocket from another port", Usual, Socket, "host: {host}\r\norigin: http://localhost:1\r\n", 403),
    case("an image on another site", Usual, Picture, "host: {host}\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: image\r\n", 403),
    case("an image on another port", Usual, Picture, "host: {host}\r\nsec-fetch-site: same-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: image\r\n", 403),
    case("a script on another site", Usual, Peek, "host: {host}\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\nsec-fetch-dest: script\r\n", 403),
    case("a frame on another site", Usual, Get("/docs"), "host: {host}\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: iframe\r\n", 403),
    case("a form on another site that navigates, without an origin", Usual, Poke, "host: {host}\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n", 403),
    case("an event stream for another site", Usual, Get("/v1/events"), "host: {host}\r\norigin: http://evil.example\r\naccept: text/event-stream\r\n", 403),
    // Host names that an attacker has pointed at this machine (DNS rebinding), and other foreign host names.
    case("a rebound name", Usual, Peek, "host: evil.example:5000\r\nBROWSER", 403),
    case("a rebound name, same origin", Usual, Poke, "host: evil.example:5000\r\norigin: http://evil.example:5000\r\n", 403),
    case("a rebound name, and the browser says same-origin", Usual, Peek, "host: evil.example\r\nsec-fetch-site: same-origin\r\n", 403),
    case("a rebound name, WebSocket", Usual, Socket, "host: evil.example\r\norigin: http://evil.example\r\n", 403),
    case("a rebound name that ends like localhost", Usual, Peek, "host: xlocalhost\r\nBROWSER", 403),
    case("a rebound name that begins with an address", Usual, Peek, "host: 127.0.0.1.evil.example\r\nBROWSER", 403),
    case("a rebound name, the picture", Usual, Picture, "host: evil.example\r\nBROWSER", 403),
    case("a rebound name, the metrics", Usual, Get("/metrics"), "host: evil.example\r\nBROWSER", 403),
    case("a rebound name in the target", Usual, Get("http://evil.example/core/currentframe"), "host: evil.example\r\nBROWSER", 403),
    case("another name, a program", Usual, Get("/v1/state"), "host: evil.example\r\n", 403),
    case("another name, a program that changes something", Usual, Batch, "host: evil.example\r\n", 403),
    case("another name, a program that resets", Usual, Post("/v1/reset", ""), "host: evil.example\r\n", 403),
    case("another name that begins with an address", Usual, Get("/v1/state"), "host: 127.0.0.1.evil.example\r\n", 403),
    case("another name in the target", Usual, Get("http://evil.example/v1/emulators"), "host: {host}\r\n", 403),
    case("another name in the target, the console", Usual, Get("http://evil.example/"), "host: {host}\r\n", 403),
    case("another name, the console page", Usual, Get("/"), "host: evil.example\r\n", 403),
    case("another name, the docs page", Usual, Get("/docs"), "host: evil.example\r\n", 403),
    case("another name, the OpenAPI document", Usual, Get("/openapi.json"), "host: evil.example\r\n", 403),
    case("another name, the metrics", Usual, Get("/metrics"), "host: evil.example\r\n", 403),
    case("another name, logging in", Usual, Post("/v1/login", "token=x"), "host: evil.example\r\n", 403),
    case("another name, a WebSocket", Usual, Socket, "host: evil.example\r\n", 403),
    case("another name, an unknown path", Usual, Get("/nothing"), "host: evil.example\r\n", 403),
    case("an empty host name", Usual, Get("/v1/state"), "host:\r\n", 403),
    case("two Host headers", Usual, Peek, "host: {host}\r\nhost: evil.example\r\n", 400),
    // No token, or a wrong one.
    case("no token", Guarded, Peek, "host: {host}\r\n", 401),
    case("no token, a change", Guarded, Poke, "host: {host}\r\n", 401),
    case("no token, the console page", Guarded, Get("/"), "host: {host}\r\naccept: text/html\r\n", 401),
    case("no token, health", Guarded, Get("/healthz"), "host: {host}\r\n", 401),
    case("no token, metrics", Guarded, Get("/metrics"), "host: {host}\r\n", 401),
    case("no token, the docs page", Guarded, Get("/docs"), "host: {host}\r\n", 401),
    case("no token, the OpenAPI document", Guarded, Get("/openapi.json"), "host: {host}\r\n", 401),
    case("no token, an unknown path", Guarded, Get("/no/such/path"), "host: {host}\r\n", 401),
    case("no token, an unknown method", Guarded, Other("BREW", "/core/read8"), "host: {host}\r\n", 401),
    case("no token, a WebSocket", Guarded, Socket, "host: {host}\r\norigin: http://{host}\r\n", 401),
    case("no token, a foreign page", Guarded, Poke, "host: {host}\r\norigin: http://evil.example\r\n", 401),
    case("no token, a rebound name", Guarded, Peek, "host: evil.example\r\nBROWSER", 401),
    case("no token, a savestate to load", Guarded, Other("PUT", "/v1/state"), "host: {host}\r\n", 401),
    case("no token, an upper case path", Guarded, Get("/CORE/currentFrame/"), "host: {host}\r\n", 401),
    case("no token, an escaped path", Guarded, Get("/%76%31/emulator"), "host: {host}\r\n", 401),
    case("no token, the login by GET", Guarded, Get("/v1/login"), "host: {host}\r\n", 401),
    case("an empty token", Guarded, Peek, "host: {host}\r\nauthorization: Bearer \r\n", 401),
    case("a token that is too short", Guarded, Peek, "host: {host}\r\nauthorization: Bearer 0123456789abcdef\r\n", 401),
    case("a token with one more character", Guarded, Peek, "host: {host}\r\nauthorization: Bearer {token}0\r\n", 401),
    case("a token of another scheme", Guarded, Peek, "host: {host}\r\nauthorization: Basic {token}\r\n", 401),
    case("a token without a scheme", Guarded, Peek, "host: {host}\r\nauthorization: {token}\r\n", 401),
    case("two tokens, one of them right", Guarded, Peek, "host: {host}\r\nauthorization: Bearer x\r\nauthorization: Bearer {token}\r\n", 401),
    case("a token in the query", Guarded, Get("/core/currentframe?access_token={token}"), "host: {host}\r\n", 401),
    case("a token as a cookie", Guarded, Peek, "host: {host}\r\ncookie: {cookie}={token}\r\n", 401),
    case("a made-up session", Guarded, Peek, "host: {host}\r\ncookie: {cookie}=0000000000000000000000000000000000000000000000000000000000000000\r\n", 401),
    case("an empty session", Guarded, Peek, "host: {host}\r\ncookie: {cookie}=\r\n", 401),
    case("a session under another name", Guarded, Peek, "host: {host}\r\ncookie: framewire={session}\r\n", 401),
    // Requests that other pages make a logged-in browser send.
    case("a session, a form on another site", Guarded, Poke, "host: {host}\r\ncookie: {cookie}={session}\r\norigin: http://evil.example\r\n", 401),
    case("a session, a page of another port", Guarded, Poke, "host: {host}\r\ncookie: {cookie}={session}\r\norigin: http://127.0.0.1:1\r\n", 401),
    case("a session, no origin", Guarded, Poke, "host: {host}\r\ncookie: {cookie}={session}\r\n", 403),
    case("a session, a batch without origin", Guarded, Batch, "host: {host}\r\ncookie: {cookie}={session}\r\n", 403),
    case("a session, a WebSocket of another port", Guarded, Socket, "host: {host}\r\ncookie: {cookie}={session}\r\norigin: http://localhost:1\r\n", 401),
    case("a session, a WebSocket without origin", Guarded, Socket, "host: {host}\r\ncookie: {cookie}={session}\r\n", 403),
    case("a session, an image on another port", Guarded, Picture, "host: {host}\r\ncookie: {cookie}={session}\r\nsec-fetch-site: same-site\r\nsec-fetch-dest: image\r\n", 401),
    case("a session, a rebound name", Guarded, Peek, "host: evil.example\r\nBROWSERcookie: {cookie}={session}\r\n", 401),
    // Tokens without the necessary rights.
    case("the read-only token writes to memory", Guarded, Poke, "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token writes to memory in a batch", Guarded, Batch, "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token resets", Guarded, Post("/coreadapter/reset", ""), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token posts to an unknown path", Guarded, Post("/v1/no/such", "{}"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token deletes", Guarded, Other("DELETE", "/v1/snapshots/a"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token puts", Guarded, Other("PUT", "/v1/state"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token ends another's watch", Guarded, Other("DELETE", "/v1/watches/{watch}"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token ends a shared watch", Guarded, Other("DELETE", "/v1/watches/{shared}"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token narrows another's search", Guarded, Post("/v1/search/1/narrow", r#"{"is":"changed"}"#), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token undoes a step of another's search", Guarded, Post("/v1/search/1/undo", ""), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("the read-only token ends another's search", Guarded, Other("DELETE", "/v1/search/1"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("a read-only session ends another's search", Guarded, Other("DELETE", "/v1/search/1"), "host: {host}\r\ncookie: {cookie}={read_session}\r\norigin: http://{host}\r\n", 403),
    case("a read-only session writes to memory", Guarded, Poke, "host: {host}\r\ncookie: {cookie}={read_session}\r\norigin: http://{host}\r\n", 403),
    case("the token, sent by a foreign page", Guarded, Poke, "host: {host}\r\norigin: http://evil.example\r\nauthorization: Bearer {token}\r\n", 403),
    case("the token under a rebound name", Guarded, Peek, "host: evil.example\r\nBROWSERauthorization: Bearer {token}\r\n", 403),
    // MCP. If a tool is not offered, a call gets status 200 and a result with an error, which the model can read.
    case("MCP from a page on another site", Usual, Mcp("/mcp"), "host: {host}\r\norigin: http://evil.example\r\n", 403),
    case("MCP from a page in a sandboxed frame", Usual, Mcp("/mcp"), "host: {host}\r\norigin: null\r\n", 403),
    case("MCP from a page of another port", Usual, McpAct("/mcp"), "host: {host}\r\norigin: http://127.0.0.1:1\r\n", 403),
    case("MCP under a rebound name", Usual, Mcp("/mcp"), "host: evil.example\r\nBROWSER", 403),
    case("MCP for a client that only reads", Usual, Mcp("/mcp?read_only=true"), "host: {host}\r\n", 200),
    case("MCP for a client that only reads, the tool act", Usual, McpAct("/mcp?read_only=true"), "host: {host}\r\n", 200),
    case("MCP, the write tool for a client that chose only the toolset play", Usual, Mcp("/mcp?toolsets=play"), "host: {host}\r\n", 200),
    case("MCP without a token", Guarded, Mcp("/mcp"), "host: {host}\r\n", 401),
    case("MCP with a wrong token", Guarded, Mcp("/mcp"), "host: {host}\r\nauthorization: Bearer 00000000000000000000000000000000\r\n", 401),
    case("MCP with a session, from a form on another site", Guarded, Mcp("/mcp"), "host: {host}\r\ncookie: {cookie}={session}\r\norigin: http://evil.example\r\n", 401),
    case("MCP with the token, sent by a foreign page", Guarded, Mcp("/mcp"), "host: {host}\r\norigin: http://evil.example\r\nauthorization: Bearer {token}\r\n", 403),
    case("MCP with the read-only token", Guarded, Mcp("/mcp"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 200),
    case("MCP with the read-only token, the tool act", Guarded, McpAct("/mcp"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 200),
    case("MCP with the read-only token and read_only=false", Guarded, Mcp("/mcp?read_only=false"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 200),
    case("MCP with a read-only session", Guarded, Mcp("/mcp"), "host: {host}\r\ncookie: {cookie}={read_session}\r\norigin: http://{host}\r\n", 200),
    // Lua code, on servers that allow it.
    case("a script from another site", Usual, Script, "host: {host}\r\norigin: http://evil.example\r\n", 403),
    case("a script from another site, as text", Usual, Script, "host: {host}\r\norigin: http://evil.example\r\ncontent-type: text/plain\r\n", 403),
    case("a script under a rebound name", Usual, Script, "host: evil.example\r\nBROWSER", 403),
    case("a script without a token", Guarded, Script, "host: {host}\r\n", 401),
    case("a script with a wrong token", Guarded, Script, "host: {host}\r\nauthorization: Bearer 00000000000000000000000000000000\r\n", 401),
    case("a script with a session, without origin", Guarded, Script, "host: {host}\r\ncookie: {cookie}={session}\r\n", 403),
    case("a script with the read-only token", Guarded, Script, "host: {host}\r\nauthorization: Bearer {read}\r\n", 403),
    case("a script with a read-only session", Guarded, Script, "host: {host}\r\ncookie: {cookie}={read_session}\r\norigin: http://{host}\r\n", 403),
    case("a script in a batch", Usual, Post("/v1/batch", r#"{"ops":[{"op":"script","code":"emu:reset()"}]}"#), "host: {host}\r\n", 400),
    case("MCP, a script from another site", Usual, McpScript("/mcp?toolsets=script"), "host: {host}\r\norigin: http://evil.example\r\n", 403),
    case("MCP, a script for a client that did not ask for the tool", Usual, McpScript("/mcp"), "host: {host}\r\n", 200),
    case("MCP, a script for a client that only reads", Usual, McpScript("/mcp?toolsets=script&read_only=true"), "host: {host}\r\n", 200),
    case("MCP, a script without a token", Guarded, McpScript("/mcp?toolsets=script"), "host: {host}\r\n", 401),
    case("MCP, a script with the read-only token", Guarded, McpScript("/mcp?toolsets=script"), "host: {host}\r\nauthorization: Bearer {read}\r\n", 200),
    // Files that callers may not use.
    case("an absolute path", Guarded, WriteTo("{outside}/p.png"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a path that climbs out", Guarded, WriteTo("../p.png"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a path that climbs out, escaped", Guarded, WriteTo("%2e%2e%2fp.png"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a path that climbs out of a subfolder", Guarded, WriteTo("x/../../p.png"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a path that begins with the folder", Guarded, WriteTo("{outside}/files/../p.png"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a path with a NUL", Guarded, WriteTo("p.png%00.txt"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a symbolic link that leads out", Guarded, WriteTo("out/p.png"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a symbolic link to a file outside", Guarded, Post("/core/loadsavefile?path=secret&temporary=true", ""), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a path that climbs out, in a batch", Guarded, WriteInBatch("../p.png"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("an absolute path, in a batch", Guarded, WriteInBatch("{outside}/p.png"), "host: {host}\r\nauthorization: Bearer {token}\r\n", 400),
    case("a file path sent through a proxy", Usual, WriteTo("{outside}/p.png"), "host: {host}\r\nx-forwarded-for: 203.0.113.7\r\n", 403),
    case("a file path sent through a proxy, in a batch", Usual, WriteInBatch("{outside}/p.png"), "host: {host}\r\nforwarded: for=203.0.113.7\r\n", 403),
    case("a ROM path sent through a proxy", Usual, Post("/mgba-http/extension/loadfile?path=x.gba", ""), "host: {host}\r\nvia: 1.1 proxy\r\n", 403),
];
