//! The other end of a link: a listener whose connections are served by a function of the test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use framewire_protocol::{Decoder, Frame, PROTOCOL_VERSION, Request, marker};

/// Listens, and calls the test's function with each connection, in its own thread.
pub struct Peer {
    pub address: String,
    connections: Arc<AtomicUsize>,
}

impl Peer {
    /// `serve` gets the number of the connection, from 0. The connection ends when `serve` returns.
    pub fn start(serve: impl Fn(usize, Connection) -> Option<()> + Send + Sync + 'static) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::<AtomicUsize>::default();
        let (serve, counted) = (Arc::new(serve), Arc::clone(&connections));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                let connection = Connection {
                    stream,
                    text: String::new(),
                    decoder: Decoder::new(),
                    pause: Duration::ZERO,
                    frame: 1,
                };
                thread::spawn(move || serve(number, connection));
            }
        });
        Peer { address, connections }
    }

    /// How many connections have been accepted so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// The peer's end of a connection. Its methods return `None` if the connection has ended.
pub struct Connection {
    stream: TcpStream,
    text: String,
    decoder: Decoder,
    /// The time before each read.
    pub pause: Duration,
    /// The frame counter in pongs.
    pub frame: u32,
}

impl Connection {
    fn read(&mut self) -> Option<Vec<u8>> {
        thread::sleep(self.pause);
        let mut bytes = vec![0; 64 * 1024];
        let count = self.stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
        bytes.truncate(count);
        Some(bytes)
    }

    /// The next text message.
    pub fn message(&mut self) -> Option<String> {
        loop {
            if let Some((message, rest)) = self.text.split_once(marker::END) {
                let message = message.to_owned();
                self.text = rest.to_owned();
                return Some(message);
            }
            let bytes = self.read()?;
            self.text.push_str(std::str::from_utf8(&bytes).ok()?);
        }
    }

    /// Whether the next text message begins with this. The message is not consumed.
    pub fn begins_with(&mut self, begin: &str) -> Option<bool> {
        while !self.text.contains(marker::END) {
            let bytes = self.read()?;
            self.text.push_str(std::str::from_utf8(&bytes).ok()?);
        }
        Some(self.text.starts_with(begin))
    }

    /// Sends a text reply.
    pub fn reply(&mut self, text: &str) -> Option<()> {
        self.send(format!("{text}{}", marker::END).as_bytes())
    }

    pub fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).ok()
    }

    /// Answers the hello as mGBA-http's script does.
    pub fn greet_as_mgba_http(&mut self) -> Option<()> {
        self.message()?;
        self.reply(marker::ERROR)
    }

    /// Answers the hello as Framewire's script does.
    pub fn greet(&mut self) -> Option<()> {
        self.message()?;
        self.reply(&format!("framewire.welcome,{PROTOCOL_VERSION},0.1.0,boot,1"))
    }

    /// The next text message that is not a heartbeat. Answers heartbeats.
    pub fn message_except_heartbeats(&mut self) -> Option<String> {
        loop {
            match self.message()?.as_str() {
                "core.currentFrame" => self.reply("1")?,
                message => return Some(message.to_owned()),
            }
        }
    }

    /// Waits until the start of a message has arrived, which must be `begin`. Answers heartbeats before it.
    pub fn start_of_message(&mut self, begin: &str) -> Option<()> {
        while !self.text.starts_with(begin) {
            let bytes = self.read()?;
            self.text.push_str(std::str::from_utf8(&bytes).ok()?);
            if let Some(rest) = self.text.strip_prefix("core.currentFrame<|END|>") {
                self.text = rest.to_owned();
                self.reply("1")?;
            }
        }
        Some(())
    }

    /// Reads nothing, and leaves the connection open for the rest of the test.
    pub fn hold(&self) -> ! {
        loop {
            thread::park();
        }
    }

    /// The next request. Answers pings before it.
    pub fn request(&mut self) -> Option<Request> {
        loop {
            match self.decoder.next_frame().ok()? {
                Some(Frame::Request(request)) => return Some(request),
                Some(Frame::Ping(id)) => self.send_frame(&Frame::Pong { id, frame: self.frame })?,
                Some(_) => {}
                None => {
                    let bytes = self.read()?;
                    self.decoder.push(&bytes);
                }
            }
        }
    }

    pub fn send_frame(&mut self, frame: &Frame) -> Option<()> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.send(&bytes)
    }

    /// Reads everything until the connection ends, and answers nothing.
    pub fn ignore(&mut self) -> Option<()> {
        loop {
            self.read()?;
        }
    }
}
