//! A client for the script's text messages. They have the format of mGBA-http's messages: `message<|END|>`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use framewire_loadtest::payload::Payload;
use framewire_protocol::marker;

use crate::{Error, Result};

/// The bytes at the end of every message and every reply.
const END: &[u8] = marker::END.as_bytes();

/// One connection to a script. Replies come in the order of the messages.
#[derive(Debug)]
pub struct TextClient {
    stream: TcpStream,
    /// Bytes that were read but not returned yet.
    received: Vec<u8>,
    random: fastrand::Rng,
}

impl TextClient {
    /// Connects within `limit`, which is then also the timeout for replies.
    pub fn connect(address: SocketAddr, limit: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, limit)
            .map_err(Error::io(format!("connect to the script at {address}")))?;
        stream.set_nodelay(true).map_err(Error::io("set TCP_NODELAY"))?;
        stream.set_write_timeout(Some(limit)).map_err(Error::io("set the time limit"))?;
        let mut client = Self { stream, received: Vec::new(), random: fastrand::Rng::new() };
        client.set_limit(limit)?;
        Ok(client)
    }

    /// Changes the timeout for replies. It must not be zero.
    pub fn set_limit(&mut self, limit: Duration) -> Result<()> {
        self.stream.set_read_timeout(Some(limit)).map_err(Error::io("set the time limit"))
    }

    /// Sends a message and waits for its reply. Neither the argument nor the returned text includes the end mark.
    ///
    /// # Errors
    /// [`Error::Io`] if the connection breaks or no reply comes in time.
    pub fn ask(&mut self, message: &str) -> Result<String> {
        self.send(&[message.as_bytes(), END].concat())?;
        self.reply()
    }

    /// Sends `prefix` and a new UUID, waits until the UUID comes back, and returns the time that this took.
    ///
    /// # Errors
    /// Those of [`TextClient::ask`], and [`io::ErrorKind::InvalidData`] for another reply.
    pub fn echo(&mut self, prefix: &str) -> Result<Duration> {
        let mut uuid = Vec::new();
        Payload::Uuid.fill(&mut self.random, &mut uuid);
        let message = [prefix.as_bytes(), &uuid, END].concat();
        let asked = Instant::now();
        self.send(&message)?;
        let reply = self.reply()?;
        let time = asked.elapsed();
        if reply.as_bytes() == uuid {
            return Ok(time);
        }
        Err(Error::io("check the script's reply")(io::Error::new(
            io::ErrorKind::InvalidData,
            "a wrong reply",
        )))
    }

    /// Sends these bytes unchanged. They can be a part of a message, several messages, or invalid.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(Error::io("send to the script"))
    }

    /// The connection, and the bytes that were read from it but not returned yet.
    #[must_use]
    pub fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.received)
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// Those of [`TextClient::ask`]; a connection that the script closes is [`io::ErrorKind::UnexpectedEof`].
    pub fn reply(&mut self) -> Result<String> {
        let mut looked_at: usize = 0;
        loop {
            // An end mark may be split between two reads.
            let from = looked_at.saturating_sub(END.len() - 1);
            if let Some(at) = marker::find_end(&self.received[from..]) {
                let reply: Vec<u8> = self.received.drain(..from + at + END.len()).collect();
                return Ok(String::from_utf8_lossy(&reply[..reply.len() - END.len()]).into_owned());
            }
            looked_at = self.received.len();
            let mut part = [0; 4096];
            match self.stream.read(&mut part).map_err(Error::io("wait for the script's reply"))? {
                0 => {
                    let end = io::ErrorKind::UnexpectedEof.into();
                    return Err(Error::io("wait for the script's reply")(end));
                }
                count => self.received.extend_from_slice(&part[..count]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn replies_are_split_at_their_end_marks_and_not_at_the_reads() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut message = [0; 11];
            stream.read_exact(&mut message).unwrap();
            assert_eq!(&message, b"ping<|END|>");
            for part in ["one<|EN", "D|>two<|END|>thr", "ee<|END|>"] {
                stream.write_all(part.as_bytes()).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
        });
        let mut client = TextClient::connect(address, Duration::from_secs(5)).unwrap();
        assert_eq!(client.ask("ping").unwrap(), "one");
        assert_eq!(client.reply().unwrap(), "two");
        assert_eq!(client.reply().unwrap(), "three");
        assert!(matches!(client.reply(), Err(Error::Io { .. })));
        server.join().unwrap();
    }
}
