//! Reads the emulator's frame counter during a run, so that each row of the report shows whether the emulator kept its
//! speed.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use framewire_loadtest::http::request::Request;
use framewire_loadtest::http::{HttpOptions, HttpTarget};
use framewire_loadtest::probe::{JsonProbe, Probe};
use framewire_loadtest::url::Url;
use framewire_protocol::{Decoder, Frame, Hello, PROTOCOL_VERSION, Welcome, marker};

use super::args::RunArgs;
use super::target::BenchTarget;

/// The path at which Framewire's server returns the emulator's state.
const STATE: &str = "/v1/emulator";
/// The default of `--counter`: the name of the frame number in Framewire's JSON.
const FRAME: &str = "frame";
/// The longest wait for a script's answer. The script answers in the next frame, unless the emulator is paused.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The probe that `--emulator` selects, and the unit of its counter. `None` for `none`, and for `auto` if the target
/// has no counter or does not answer now.
///
/// # Errors
/// If `--emulator` is not a URL, `auto` or `none`, or if its URL cannot be used or does not return the counter now.
/// Also if `--counter` names a field that the target does not return now, or if `--counter` is given although the
/// counter is not in a JSON document.
pub fn probe(args: &RunArgs, measured: &BenchTarget) -> anyhow::Result<Option<(Box<dyn Probe>, String)>> {
    let mut probe: Box<dyn Probe> = match args.emulator.as_str() {
        "none" => {
            ensure!(
                args.counter == FRAME,
                "--counter {} has no effect with --emulator none; leave --counter out",
                args.counter
            );
            return Ok(None);
        }
        "auto" => {
            ensure!(
                args.counter == FRAME || matches!(measured, BenchTarget::Http(_)),
                "--counter {} names a number in JSON, which this target does not have; leave --counter out, or give \
                 the URL of JSON as --emulator",
                args.counter
            );
            match automatic(args, measured) {
                Some(probe) => probe,
                None => return Ok(None),
            }
        }
        text => {
            let url: Url = text.parse().context("--emulator takes a URL, auto or none")?;
            let target = match measured {
                BenchTarget::Http(http) => http.with_path(&url)?,
                _ => HttpTarget::new(&url, &[Request::get(&url.path)], &HttpOptions::default())?,
            };
            let mut probe = JsonProbe::new(&target, &args.counter)?;
            if probe.read().is_none() {
                bail!(
                    "{url} does not return JSON with a number {:?}; name another field with --counter, or use \
                     --emulator none",
                    args.counter
                );
            }
            Box::new(probe)
        }
    };
    // If the target does not answer now, the counter is not sampled during the runs.
    if probe.read().is_none() {
        ensure!(
            args.counter == FRAME,
            "the target does not return JSON with a number {:?} at {STATE}; name another field with --counter, or give \
             the URL of JSON as --emulator",
            args.counter
        );
        return Ok(None);
    }
    let unit = if args.counter == FRAME { "frames" } else { &args.counter };
    Ok(Some((probe, unit.to_owned())))
}

/// The probe for the target's own frame counter, if it has one.
fn automatic(args: &RunArgs, measured: &BenchTarget) -> Option<Box<dyn Probe>> {
    match measured {
        BenchTarget::Http(http) => {
            Some(Box::new(JsonProbe::new(&http.state(STATE).ok()?, &args.counter).ok()?))
        }
        BenchTarget::Script { target, .. } if !target.is_ours() => None,
        BenchTarget::Script { target, .. } => {
            Some(Box::new(ScriptProbe { address: target.address.clone(), connection: None, pings: 0 }))
        }
        #[cfg(feature = "embedded")]
        BenchTarget::Embedded(target) => Some(Box::new((**target).clone())),
    }
}

/// Sends pings to Framewire's script on a separate connection. Each pong contains the frame number.
struct ScriptProbe {
    address: String,
    connection: Option<(TcpStream, Decoder)>,
    pings: u32,
}

impl Probe for ScriptProbe {
    fn read(&mut self) -> Option<f64> {
        if self.connection.is_none() {
            self.connection = Some(greet(&self.address)?);
        }
        let frame = self.ping();
        if frame.is_none() {
            self.connection = None;
        }
        frame
    }
}

impl ScriptProbe {
    fn ping(&mut self) -> Option<f64> {
        let (stream, decoder) = self.connection.as_mut()?;
        self.pings = self.pings.wrapping_add(1);
        let mut bytes = Vec::new();
        Frame::Ping(self.pings).encode(&mut bytes);
        stream.write_all(&bytes).ok()?;
        let (mut piece, end) = ([0; 256], Instant::now() + TIMEOUT);
        while Instant::now() < end {
            match decoder.next_frame().ok()? {
                Some(Frame::Pong { id, frame }) if id == self.pings => return Some(f64::from(frame)),
                Some(_) => {}
                None => {
                    let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
                    decoder.push(&piece[..count]);
                }
            }
        }
        None
    }
}

/// Tries the addresses of `host`, which has the form `HOST:PORT`, in order. Returns the first connection that succeeds.
/// Waits at most `limit` for each address.
pub fn connect(host: &str, limit: Duration) -> io::Result<TcpStream> {
    let mut connected = Err(io::ErrorKind::NotFound.into());
    for address in host.to_socket_addrs()? {
        connected = TcpStream::connect_timeout(&address, limit);
        if connected.is_ok() {
            break;
        }
    }
    connected
}

/// Connects to Framewire's script, and makes the connection binary.
fn greet(address: &str) -> Option<(TcpStream, Decoder)> {
    let mut stream = connect(address, TIMEOUT).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(TIMEOUT)).ok()?;
    stream.write_all(Hello::new(fastrand::u64(..)).to_message().as_bytes()).ok()?;
    // The welcome is read byte by byte, because the bytes after it belong to the decoder.
    let (mut welcome, mut byte, end) = (Vec::new(), [0], Instant::now() + TIMEOUT);
    while !welcome.ends_with(marker::END.as_bytes()) {
        if Instant::now() >= end {
            return None;
        }
        stream.read_exact(&mut byte).ok()?;
        welcome.push(byte[0]);
    }
    let welcome = String::from_utf8_lossy(&welcome);
    let welcome = Welcome::from_reply(welcome.trim_end_matches(marker::END))?;
    (welcome.protocol == PROTOCOL_VERSION).then(|| (stream, Decoder::new()))
}
