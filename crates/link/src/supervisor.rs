//! Connects, says hello, and connects again after a break.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_protocol::{Hello, PROTOCOL_VERSION, Welcome, marker};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tracing::{debug, info};

use crate::desk::{Desk, End};
use crate::submission::Submission;
use crate::{Config, LinkError, Listen, Phase, Script, Status, binary, silence, socket, text};

/// Longest welcome that is read.
const MAX_WELCOME: usize = 1024;

/// Runs a link until it is asked to stop.
pub(crate) async fn run(
    config: Config,
    inbox: mpsc::Receiver<Submission>,
    status: Arc<Mutex<Status>>,
    stop: watch::Receiver<bool>,
    listen: Listen,
) {
    let mut delay = config.first_retry;
    let mut desk = Desk::new(config, inbox, status, stop, listen);
    loop {
        match connection(&mut desk, &mut delay).await {
            End::Stopped => break,
            End::Broken(problem) => broken(&mut desk, problem),
        }
        let pause = match desk.lost {
            Some(lost) if lost.elapsed() < desk.config.first_retry => Duration::ZERO,
            _ => jittered(delay),
        };
        delay = (delay * 2).min(desk.config.last_retry);
        if desk.attend(tokio::time::sleep(pause)).await.is_none() {
            break;
        }
    }
    desk.session.fail_all(&LinkError::Stopped);
}

/// Spreads the retries of links that lost the same emulator.
fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.75 + 0.5 * fastrand::f64())
}

/// Notes the end of a connection, or of an attempt at one.
fn broken(desk: &mut Desk, problem: String) {
    let address = &desk.config.address;
    let before = desk.phase();
    let known = desk.status.lock().problem.as_ref() == Some(&problem);
    match before {
        Phase::Ready => info!(target: "framewire::link", "connection to {address} ended: {problem}"),
        _ if !known => info!(target: "framewire::link", "no emulator at {address} yet: {problem}"),
        _ => debug!(target: "framewire::link", "{address}: {problem}"),
    }
    if before == Phase::Ready {
        desk.lost = Some(Instant::now());
    }
    let waits = desk.lost.is_some_and(|lost| lost.elapsed() < desk.config.grace);
    let phase = if waits { Phase::Connecting } else { Phase::Absent };
    if phase == Phase::Absent {
        desk.session.fail_unsent(&desk.absent(&problem));
    }
    desk.pulse.clear();
    desk.update(|status| {
        let script = status.script.take();
        *status = Status { phase, script, problem: Some(problem), ..Status::default() };
    });
}

/// One connection, from its first packet to its end.
async fn connection(desk: &mut Desk, delay: &mut Duration) -> End {
    let address = desk.config.address.clone();
    let connect = socket::connect(&address, desk.config.connect_timeout);
    let mut stream = match desk.attend(connect).await {
        None => return End::Stopped,
        Some(Err(error)) => return End::Broken(error.to_string()),
        Some(Ok(stream)) => stream,
    };
    if let Err(error) = socket::notice_when_gone(&stream, desk.config.gone_after) {
        return End::Broken(error.to_string());
    }
    desk.update(|status| status.phase = Phase::Greeting);
    let hello = Hello::new(desk.session.name).to_message();
    let status = desk.status.clone();
    let patience = desk.config.stalled_after;
    let greeting = async {
        let mut greeting = std::pin::pin!(greet(&mut stream, &hello));
        match timeout(patience, &mut greeting).await {
            Ok(reply) => reply.map(Some),
            Err(_) => {
                // Accepted by the system, not by the script: mGBA is paused or has no ROM. It may go on at any time.
                status.lock().stalled = true;
                tokio::select! {
                    reply = greeting => reply.map(Some),
                    () = silence::others_are_answered(address.clone()) => Ok(None),
                }
            }
        }
    };
    let (reply, rest) = match desk.attend(greeting).await {
        None => return End::Stopped,
        Some(Err(error)) => return End::Broken(error.to_string()),
        Some(Ok(None)) => {
            // The script is there, so requests may wait for it.
            desk.lost = Some(Instant::now());
            return End::Broken(silence::VERDICT.to_owned());
        }
        Some(Ok(Some(greeting))) => greeting,
    };
    *delay = desk.config.first_retry;
    if let Some(welcome) = Welcome::from_reply(&reply) {
        if welcome.protocol != PROTOCOL_VERSION {
            return End::Broken(format!(
                "script {} there speaks protocol {}, this program {PROTOCOL_VERSION}: load this program's script, \
                 `framewire script` prints it",
                welcome.script_version, welcome.protocol
            ));
        }
        let remembered = welcome.known && desk.boot.as_ref() == Some(&welcome.boot);
        let lost = LinkError::Lost { address: address.clone() };
        desk.session.reconnected(remembered, &lost);
        let missed = desk.welcomed(&welcome);
        desk.frame = welcome.frame.unwrap_or(desk.frame);
        info!(target: "framewire::link", "connected to script {} at {address}", welcome.script_version);
        let frame = desk.frame;
        desk.update(|status| *status = ready(Script::Framewire(welcome.script_version), frame));
        if let Some(missed) = missed {
            (desk.listen)(frame, missed);
        }
        return binary::drive(desk, stream, &rest).await;
    }
    if reply == marker::ERROR {
        info!(target: "framewire::link", "connected to mGBA-http's script at {address}; Framewire's answers faster and more");
        desk.session.reconnected(false, &LinkError::Lost { address });
        let frame = desk.frame;
        desk.update(|status| *status = ready(Script::MgbaHttp, frame));
        return text::drive(desk, stream).await;
    }
    End::Broken(format!("what listens there is no emulator's script: it answered {reply:?}"))
}

fn ready(script: Script, frame: u32) -> Status {
    Status { phase: Phase::Ready, script: Some(script), frame, ..Status::default() }
}

/// Says hello. Gives the reply without its end marker, and the bytes that came behind it.
async fn greet(stream: &mut TcpStream, hello: &str) -> io::Result<(String, Vec<u8>)> {
    stream.write_all(hello.as_bytes()).await?;
    let mut received = Vec::new();
    let end = marker::END.as_bytes();
    loop {
        if let Some(at) = received.windows(end.len()).position(|window| window == end) {
            let rest = received.split_off(at + end.len());
            received.truncate(at);
            return Ok((String::from_utf8_lossy(&received).into_owned(), rest));
        }
        if received.len() > MAX_WELCOME {
            return Err(io::Error::other(
                "what listens there is no emulator's script: it never ends its reply",
            ));
        }
        if stream.read_buf(&mut received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
