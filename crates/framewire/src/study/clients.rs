//! Two clients for single requests, blocking: one for a script's text, one for HTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use framewire_protocol::marker::END;

use super::steps::Script;

/// A connection to a script, one request at a time.
#[derive(Debug)]
pub struct TextClient {
    stream: TcpStream,
    script: Script,
}

impl TextClient {
    /// Connects within `limit`, which is also the longest wait for a reply.
    pub fn connect(address: SocketAddr, script: Script, limit: Duration) -> io::Result<TextClient> {
        let stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(limit))?;
        stream.set_read_timeout(Some(limit))?;
        Ok(TextClient { stream, script })
    }

    /// Sends a fresh text and waits until it comes back; how long that took.
    pub fn echo(&mut self) -> io::Result<Duration> {
        let text = format!("{:032x}", fastrand::u128(..));
        let asked = Instant::now();
        let prefix = if self.script == Script::Ours { "framewire.echo," } else { "" };
        self.stream.write_all(format!("{prefix}{text}{END}").as_bytes())?;
        let expected = format!("{text}{END}");
        let mut reply = vec![0; expected.len()];
        self.stream.read_exact(&mut reply)?;
        match reply == expected.as_bytes() {
            true => Ok(asked.elapsed()),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "a wrong reply")),
        }
    }
}

/// Time from now to the first right answer to a client that connects anew, trying again and again for `limit`.
pub fn first_answer(address: SocketAddr, script: Script, limit: Duration) -> Option<Duration> {
    let start = Instant::now();
    while start.elapsed() < limit {
        let left = limit.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
        let asked = TextClient::connect(address, script, left).and_then(|mut client| client.echo());
        if asked.is_ok() {
            return Some(start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// `GET`s a path of an HTTP server on a connection of its own: status and body.
pub fn get(server: SocketAddr, path: &str, limit: Duration) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&server, limit)?;
    stream.set_write_timeout(Some(limit))?;
    stream.set_read_timeout(Some(limit))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let broken = || io::Error::new(io::ErrorKind::UnexpectedEof, "half an answer");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    Ok((status, body.to_owned()))
}
