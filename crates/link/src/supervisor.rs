//! Connects, says hello, and connects again after a break.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_protocol::{Hello, Welcome, marker};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep_until, timeout};
use tracing::{debug, info};

use crate::link::Submission;
use crate::pulse::Pulse;
use crate::session::Session;
use crate::{Config, LinkError, Phase, Script, Status, binary, socket, text};

/// Longest welcome that is read.
const MAX_WELCOME: usize = 1024;

/// What a link keeps over its connections, and what each connection works with.
pub(crate) struct Desk {
    pub config: Config,
    pub session: Session,
    pub inbox: mpsc::Receiver<Submission>,
    pub stop: watch::Receiver<bool>,
    pub pulse: Pulse,
    status: Arc<Mutex<Status>>,
    /// Memory of the script that was reached last.
    boot: Option<String>,
    /// When the connection broke that was ready last.
    lost: Option<Instant>,
}

/// Why a connection, or an attempt at one, is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection broke, for this reason; try again.
    Broken(String),
    /// The link was asked to stop.
    Stopped,
}

impl Desk {
    pub fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock());
    }

    fn phase(&self) -> Phase {
        self.status.lock().phase
    }

    pub fn stalled(&self) -> LinkError {
        LinkError::Stalled { address: self.config.address.clone() }
    }

    fn absent(&self, problem: &str) -> LinkError {
        LinkError::Absent { address: self.config.address.clone(), problem: problem.to_owned() }
    }

    /// Why a request that waits now would run out of time.
    fn reason(&self) -> LinkError {
        let status = self.status.lock();
        match status.phase {
            Phase::Greeting | Phase::Ready => self.stalled(),
            Phase::Connecting | Phase::Absent => {
                self.absent(status.problem.as_deref().unwrap_or("still connecting"))
            }
        }
    }

    /// Notes the emulator's frame counter.
    pub fn heard(&mut self, frame: u32) {
        let rate = self.pulse.beat(Instant::now(), frame);
        self.update(|status| {
            status.frame = frame;
            status.stalled = false;
            if let Some(rate) = rate {
                status.frames_per_second = rate;
            }
        });
    }

    /// Fails what is past its deadline; appends cancel frames for what was sent.
    pub fn expire(&mut self, cancels: &mut Vec<u8>) {
        let now = Instant::now();
        if self.session.next_deadline().is_some_and(|deadline| deadline <= now) {
            let reason = self.reason();
            self.session.expire(now, &reason, cancels);
        }
    }

    /// Waits for `future` while requests come in and run out of time. `None`: the link was asked to stop.
    async fn attend<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        loop {
            let deadline = self.session.next_deadline();
            let expiry = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                output = &mut future => return Some(output),
                () = asked_to_stop(&mut self.stop) => return None,
                submission = self.inbox.recv() => match submission {
                    None => return None,
                    Some(submission) if self.phase() == Phase::Absent => {
                        (submission.respond)(Err(self.reason()));
                    }
                    Some(submission) => self.session.submit(submission),
                },
                () = expiry => self.expire(&mut Vec::new()),
            }
        }
    }
}

/// Waits until the link is asked to stop or is dropped.
pub(crate) async fn asked_to_stop(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Runs a link until it is asked to stop.
pub(crate) async fn run(
    config: Config,
    inbox: mpsc::Receiver<Submission>,
    status: Arc<Mutex<Status>>,
    stop: watch::Receiver<bool>,
) {
    let session = Session::new(fastrand::u64(..), config.capacity);
    let mut delay = config.first_retry;
    let mut desk =
        Desk { config, session, inbox, stop, pulse: Pulse::default(), status, boot: None, lost: None };
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
    match before {
        Phase::Ready => info!(target: "framewire::link", "connection to {address} ended: {problem}"),
        Phase::Connecting if desk.lost.is_none() => {
            info!(target: "framewire::link", "no emulator at {address} yet: {problem}");
        }
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
            Ok(reply) => reply,
            Err(_) => {
                // Accepted by the system, not by the script: mGBA is paused or has no ROM. It may go on at any time.
                status.lock().stalled = true;
                greeting.await
            }
        }
    };
    let (reply, rest) = match desk.attend(greeting).await {
        None => return End::Stopped,
        Some(Err(error)) => return End::Broken(error.to_string()),
        Some(Ok(greeting)) => greeting,
    };
    *delay = desk.config.first_retry;
    if let Some(welcome) = Welcome::from_reply(&reply) {
        let remembered = welcome.known && desk.boot.as_ref() == Some(&welcome.boot);
        let lost = LinkError::Lost { address: address.clone() };
        desk.session.reconnected(remembered, &lost);
        desk.boot = Some(welcome.boot);
        info!(target: "framewire::link", "connected to script {} at {address}", welcome.script_version);
        desk.update(|status| *status = ready(Script::Framewire(welcome.script_version)));
        return binary::drive(desk, stream, &rest).await;
    }
    if reply == marker::ERROR {
        info!(target: "framewire::link", "connected to mGBA-http's script at {address}; Framewire's answers faster and more");
        desk.session.reconnected(false, &LinkError::Lost { address });
        desk.update(|status| *status = ready(Script::MgbaHttp));
        return text::drive(desk, stream).await;
    }
    End::Broken(format!("what listens there is no emulator's script: it answered {reply:?}"))
}

fn ready(script: Script) -> Status {
    Status { phase: Phase::Ready, script: Some(script), ..Status::default() }
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
