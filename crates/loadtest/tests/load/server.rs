//! An HTTP server with faults. A test says how the server reacts to each request.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How the server reacts to a request.
pub enum Action {
    /// It replies with the message.
    Echo,
    /// It replies with another text.
    Reply(&'static str),
    /// It replies with the message in pieces.
    Chunked,
    /// It replies with the message, and sends further bytes after the reply.
    Surplus,
    /// It replies with this status, which is not a success.
    Status(u16),
    /// It closes the connection without a reply.
    Close,
    /// It sends a reply without its last five bytes, and closes the connection.
    Partial,
    /// It waits for this time, and then replies with the message.
    Silence(Duration),
}

pub struct Server {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server. `act` gets the number of each request, from 0, and says how to react to it.
    pub fn start(act: impl Fn(usize) -> Action + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let server = Server { port, connections: Arc::clone(&connections), requests: Arc::clone(&requests) };
        let act = Arc::new(act);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (act, requests) = (Arc::clone(&act), Arc::clone(&requests));
                thread::spawn(move || serve(stream, &*act, &requests));
            }
        });
        server
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(stream: TcpStream, act: &dyn Fn(usize) -> Action, requests: &AtomicUsize) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut out = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    loop {
        let (mut message, mut line, mut close) = (String::new(), String::new(), false);
        while line != "\r\n" {
            line.clear();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some((_, rest)) = line.split_once("?message=") {
                message = rest.split(' ').next()?.to_owned();
            }
            close |= line == "Connection: close\r\n";
        }
        let number = requests.fetch_add(1, Ordering::SeqCst);
        let plain = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let response = match act(number) {
            Action::Echo => plain(&message),
            Action::Reply(body) => plain(body),
            Action::Chunked => {
                let (one, two) = message.split_at(message.len() / 2);
                let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
                format!(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n",
                    chunk(one),
                    chunk(two)
                )
            }
            Action::Surplus => plain(&message) + "more",
            Action::Status(status) => format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n"),
            Action::Close => return None,
            Action::Partial => {
                let whole = plain(&message);
                out.write_all(&whole.as_bytes()[..whole.len() - 5]).ok()?;
                return None;
            }
            Action::Silence(time) => {
                thread::sleep(time);
                plain(&message)
            }
        };
        out.write_all(response.as_bytes()).ok()?;
        if close {
            return None;
        }
    }
}
