//! Text messages on a raw socket, one after the other.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use framewire_loadtest::payload::Payload;
use framewire_protocol::marker::END;

use crate::sample::{Latencies, Sample};
use crate::stand::{Script, Stand};

/// Longest wait for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a script.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    prefix: &'static str,
    random: fastrand::Rng,
    payload: Vec<u8>,
    message: Vec<u8>,
    reply: Vec<u8>,
}

impl Client {
    /// Connects within `limit`, which is also the longest wait for a reply.
    pub fn connect(address: SocketAddr, script: Script, limit: Duration) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(limit))?;
        stream.set_read_timeout(Some(limit))?;
        let prefix = if script == Script::Ours { "framewire.echo," } else { "" };
        let random = fastrand::Rng::new();
        Ok(Client { stream, prefix, random, payload: Vec::new(), message: Vec::new(), reply: Vec::new() })
    }

    /// Sends a fresh UUID and waits until it comes back; how long that took.
    pub fn echo(&mut self) -> io::Result<Duration> {
        Payload::Uuid.fill(&mut self.random, &mut self.payload);
        self.message.clear();
        for part in [self.prefix.as_bytes(), &self.payload, END.as_bytes()] {
            self.message.extend_from_slice(part);
        }
        self.reply.resize(self.payload.len() + END.len(), 0);
        let asked = Instant::now();
        self.stream.write_all(&self.message)?;
        self.stream.read_exact(&mut self.reply)?;
        let time = asked.elapsed();
        match self.reply == self.message[self.prefix.len()..] {
            true => Ok(time),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "a wrong reply")),
        }
    }
}

/// Asks for so long, each request when the one before was answered.
///
/// # Errors
/// If one is not answered, or not rightly.
pub fn sequential(stand: &Stand, length: Duration) -> anyhow::Result<Sample> {
    let mut client = Client::connect(stand.address(), stand.script(), PATIENCE)?;
    let mut latencies = Latencies::new();
    let watch = stand.watch();
    let start = Instant::now();
    while start.elapsed() < length {
        latencies.note(client.echo()?);
    }
    let seconds = start.elapsed().as_secs_f64();
    let answered = latencies.count();
    Ok(Sample {
        seconds,
        requests: answered,
        correct: answered,
        rate: Some(answered as f64 / seconds),
        latency: latencies.summary(),
        frames: watch.stop(),
        ..Sample::of("a blocking TCP client, a fresh UUID each, the next when the last was answered")
    })
}
