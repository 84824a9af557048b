//! Clients of event streams and WebSockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::Message;
use tungstenite::{Error, WebSocket};

use crate::support::{Server, encoded, open_streams, wait_for};

/// An event, from a stream of server-sent events or over JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: String,
    pub name: String,
    pub data: Value,
}

/// A stream of server-sent events.
pub struct Events {
    lines: BufReader<TcpStream>,
}

impl Events {
    /// Opens a stream. The request must succeed.
    pub fn open(server: &Server, target: &str) -> Events {
        Events::resume(server, target, None)
    }

    /// Opens a stream that continues after the event `last_id`.
    pub fn resume(server: &Server, target: &str, last_id: Option<&str>) -> Events {
        Events::over(server.connect(), target, last_id)
    }

    /// Opens a stream over an existing connection.
    pub fn over(mut stream: TcpStream, target: &str, last_id: Option<&str>) -> Events {
        let resume = last_id.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        // With HTTP/1.0, the reply is not chunked.
        write!(stream, "GET {target} HTTP/1.0\r\nhost: localhost\r\n{resume}\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let head: Vec<String> =
            lines.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        assert!(head[0].contains(" 200 "), "{target}: {head:?}");
        assert!(
            head.iter().any(|line| line.eq_ignore_ascii_case("content-type: text/event-stream")),
            "{head:?}"
        );
        Events { lines }
    }

    /// Reads the next event. Returns `None` if the stream has ended.
    pub fn next(&mut self) -> Option<Event> {
        let mut event = Event { id: String::new(), name: String::new(), data: Value::Null };
        for line in self.lines.by_ref().lines() {
            let line = line.expect("a line in time");
            match line.split_once(": ") {
                Some(("id", id)) => event.id = id.to_owned(),
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                None if line.is_empty() && !event.name.is_empty() => return Some(event),
                _ => {}
            }
        }
        None
    }

    /// Reads events until one has this name.
    pub fn wait_for(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().unwrap_or_else(|| panic!("the stream ended before {name}"));
            if event.name == name {
                return event;
            }
        }
    }
}

/// The target for a watch of these expressions.
pub fn watch(expressions: &[&str]) -> String {
    let query: Vec<String> =
        expressions.iter().map(|expression| format!("watch={}", encoded(expression))).collect();
    format!("/v1/watch?{}", query.join("&"))
}

/// A WebSocket with JSON-RPC.
pub struct Rpc {
    socket: WebSocket<TcpStream>,
    /// The id of the last request that [`Rpc::ask`] sent.
    last: u64,
    /// Events that arrived while [`Rpc::ask`] waited for a reply.
    events: Vec<Event>,
}

impl Rpc {
    pub fn open(server: &Server) -> Rpc {
        Rpc::open_at(server, "/v1/ws")
    }

    pub fn open_at(server: &Server, target: &str) -> Rpc {
        Rpc::over(server, server.connect(), target)
    }

    /// Opens a WebSocket over an existing connection.
    pub fn over(server: &Server, stream: TcpStream, target: &str) -> Rpc {
        Rpc::with_token(server, stream, target, None)
    }

    /// Opens a WebSocket over an existing connection, with this token if there is one.
    pub fn with_token(server: &Server, stream: TcpStream, target: &str, token: Option<&str>) -> Rpc {
        let value = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = value.iter().map(|value| ("authorization", value.as_str())).collect();
        Rpc::with_headers(server, stream, target, &headers)
    }

    /// Opens a WebSocket over an existing connection, with these headers.
    pub fn with_headers(
        server: &Server,
        stream: TcpStream,
        target: &str,
        headers: &[(&'static str, &str)],
    ) -> Rpc {
        let mut request = format!("ws://{}{target}", server.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (socket, _) = tungstenite::client(request, stream).expect("a WebSocket");
        Rpc { socket, last: 0, events: Vec::new() }
    }

    /// Sends a text message.
    pub fn send(&mut self, text: impl Into<String>) {
        self.socket.send(Message::text(text.into())).unwrap();
    }

    /// Reads until the server's close frame arrives, and returns its code and reason.
    pub fn closed(&mut self) -> (u16, String) {
        loop {
            if let Message::Close(frame) = self.socket.read().unwrap() {
                let frame = frame.unwrap();
                return (frame.code.into(), frame.reason.to_string());
            }
        }
    }

    /// Reads the next message. Returns `None` if the connection has ended.
    pub fn receive(&mut self) -> Option<Value> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(_)) | Err(Error::ConnectionClosed) => return None,
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Sends a request, and returns the reply.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let message = self.receive().expect("a reply");
            match message["method"].as_str() {
                Some("event") => self.events.push(event(&message)),
                _ => {
                    assert_eq!(
                        (&message["jsonrpc"], &message["id"]),
                        (&json!("2.0"), &json!(id)),
                        "{message}"
                    );
                    return message;
                }
            }
        }
    }

    /// Sends a request that must succeed, and returns its result.
    #[track_caller]
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let reply = self.ask(method, params);
        assert!(reply["error"].is_null(), "{method}: {reply}");
        reply["result"].clone()
    }

    /// Sends a request that must fail with this code, and returns the `data` of the error.
    #[track_caller]
    pub fn error(&mut self, method: &str, params: Value, code: i64) -> Value {
        let reply = self.ask(method, params);
        assert_eq!(reply["error"]["code"], code, "{method}: {reply}");
        reply["error"]["data"].clone()
    }

    /// Reads events until one has this name.
    pub fn wait_for(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().unwrap_or_else(|| panic!("the connection ended before {name}"));
            if event.name == name {
                return event;
            }
        }
    }

    /// The events that arrived before the last reply, and that [`Rpc::next`] has not returned.
    pub fn unread_events(&self) -> &[Event] {
        &self.events
    }

    /// The next event of a subscription. Returns `None` if the connection has ended.
    pub fn next(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.receive().map(|message| event(&message))
        } else {
            Some(self.events.remove(0))
        }
    }
}

/// The event in a message.
fn event(message: &Value) -> Event {
    let params = &message["params"];
    let text = |field: &str| params[field].as_str().unwrap_or_else(|| panic!("{message}")).to_owned();
    Event { id: text("id"), name: text("event"), data: params["data"].clone() }
}

/// Waits until this many requests wait for a condition or a frame.
pub fn wait_for_waiters(server: &Server, count: usize) {
    wait_for("requests that wait", || open_streams(server, "wait") == count);
}
