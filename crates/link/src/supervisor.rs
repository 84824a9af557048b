//! Connects, sends the hello, and connects again after a break. The hello is the first message of a connection.
//! Framewire's script answers it with a welcome.

use std::io;
use std::time::{Duration, Instant};

use framewire_protocol::{Hello, PROTOCOL_VERSION, Welcome, marker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::{debug, info};

use crate::state::{ConnectionEnd, LinkState};
use crate::{LinkError, Phase, Script, Status, binary, silence, text};

/// Longest welcome that the link reads, in bytes.
const MAX_WELCOME: usize = 1024;

/// Runs a link until it is asked to stop.
pub(crate) async fn run(mut state: LinkState) {
    let mut delay = state.config.first_retry;
    loop {
        let begun = Instant::now();
        match connection(&mut state).await {
            ConnectionEnd::Stopped => break,
            ConnectionEnd::Broken(problem) => broken(&mut state, problem),
        }
        let first_retry = state.config.first_retry;
        let mut pause = Duration::ZERO;
        if state.lost.is_some_and(|lost| lost >= begun + first_retry) {
            // After the end of a connection that was not short, the link connects again at once.
            delay = first_retry;
        } else {
            pause = jittered(delay);
            delay = (delay * 2).min(state.config.last_retry);
        }
        if state.wait_for(tokio::time::sleep(pause)).await.is_none() {
            break;
        }
    }
    state.close_inbox();
    state.session.fail_all(&LinkError::Stopped);
}

/// Varies the delay, so that several links that lost the same emulator do not retry at the same moment.
fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.75 + 0.5 * fastrand::f64())
}

/// Records the end of a connection, or of an attempt to connect.
fn broken(state: &mut LinkState, problem: String) {
    let address = &state.config.address;
    let before = state.phase();
    let known = state.status.lock().problem.as_ref() == Some(&problem);
    match before {
        Phase::Ready => info!(target: "framewire::link", "connection to {address} ended: {problem}"),
        _ if !known => info!(target: "framewire::link", "no emulator at {address}: {problem}"),
        _ => debug!(target: "framewire::link", "{address}: {problem}"),
    }
    if before == Phase::Ready {
        state.lost = Some(Instant::now());
    }
    let waits = state.lost.is_some_and(|lost| lost.elapsed() < state.config.grace);
    let phase = if waits { Phase::Connecting } else { Phase::Absent };
    let absent = state.absent(&problem);
    state.frame_rate.clear();
    state.update(|status| {
        let script = status.script.take();
        *status = Status { phase, script, problem: Some(problem), ..Status::default() };
    });
    // The status is updated first, so that a caller whose request fails sees that there is no emulator.
    if phase == Phase::Absent {
        state.session.fail_unsent(&absent);
    }
}

/// One connection, from its first packet to its end.
async fn connection(state: &mut LinkState) -> ConnectionEnd {
    let address = state.config.address.clone();
    let connect = connect(&address, state.config.connect_timeout);
    let mut stream = match state.wait_for(connect).await {
        None => return ConnectionEnd::Stopped,
        Some(Err(error)) => return ConnectionEnd::Broken(error.to_string()),
        Some(Ok(stream)) => stream,
    };
    if let Err(error) = notice_when_gone(&stream, state.config.gone_after) {
        return ConnectionEnd::Broken(error.to_string());
    }
    state.update(|status| status.phase = Phase::Greeting);
    let hello = Hello::new(state.session.name).to_message();
    let status = state.status.clone();
    let patience = state.config.stalled_after;
    let greeting = async {
        let mut greeting = std::pin::pin!(greet(&mut stream, &hello));
        match timeout(patience, &mut greeting).await {
            Ok(reply) => reply.map(Some),
            Err(_) => {
                // The system accepted the connection, but the script did not: mGBA is paused or has no ROM.
                status.lock().stalled = true;
                tokio::select! {
                    reply = greeting => reply.map(Some),
                    () = silence::script_answers_elsewhere(address.clone()) => Ok(None),
                }
            }
        }
    };
    let (reply, rest) = match state.wait_for(greeting).await {
        None => return ConnectionEnd::Stopped,
        Some(Err(error)) => return ConnectionEnd::Broken(error.to_string()),
        Some(Ok(None)) => {
            // The script answers on another connection. So it can be reached, and requests may wait for it.
            state.lost = Some(Instant::now());
            return ConnectionEnd::Broken(silence::DEAD.to_owned());
        }
        Some(Ok(Some(greeting))) => greeting,
    };
    if let Some(welcome) = Welcome::from_reply(&reply) {
        if welcome.protocol != PROTOCOL_VERSION {
            return ConnectionEnd::Broken(format!(
                "the script has version {} and protocol {}, but this program has protocol {PROTOCOL_VERSION}; load this \
                 program's script (`framewire script` prints it)",
                welcome.script_version, welcome.protocol
            ));
        }
        let remembered = welcome.known && state.boot.as_ref() == Some(&welcome.boot);
        let lost = LinkError::Lost { address: address.clone() };
        state.session.reconnected(remembered, &lost);
        let missed = state.note_welcome(&welcome);
        state.frame = welcome.frame.unwrap_or(state.frame);
        info!(target: "framewire::link", "connected to script {} at {address}", welcome.script_version);
        state.connected(Script::Framewire(welcome.script_version), missed);
        return binary::drive(state, stream, &rest).await;
    }
    if reply == marker::ERROR {
        info!(target: "framewire::link", "connected to mGBA-http's script at {address}; Framewire's script is faster and can do more");
        state.session.reconnected(false, &LinkError::Lost { address });
        let missed = state.note_other_script();
        state.connected(Script::MgbaHttp, missed);
        return text::drive(state, stream).await;
    }
    ConnectionEnd::Broken(format!(
        "a program that is not an emulator's script listens there: it answered {reply:?}"
    ))
}

/// Sends the hello. Returns the reply without its end marker, and the bytes that came after it.
async fn greet(stream: &mut TcpStream, hello: &str) -> io::Result<(String, Vec<u8>)> {
    stream.write_all(hello.as_bytes()).await?;
    let mut received = Vec::new();
    loop {
        if let Some(at) = marker::find_end(&received) {
            let rest = received.split_off(at + marker::END.len());
            received.truncate(at);
            return Ok((String::from_utf8_lossy(&received).into_owned(), rest));
        }
        if received.len() > MAX_WELCOME {
            return Err(io::Error::other(
                "a program that is not an emulator's script listens there: it never ends its reply",
            ));
        }
        if stream.read_buf(&mut received).await? == 0 {
            let text = String::from_utf8_lossy(&received);
            let Some(line) = text.lines().next() else {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "it closed the connection without an answer",
                ));
            };
            return Err(io::Error::other(format!(
                "a program that is not an emulator's script listens there: it answered {line:?} and closed the \
                 connection"
            )));
        }
    }
}

/// Connects within `limit`. If `address` resolves to several IP addresses, uses the first one that accepts.
async fn connect(address: &str, limit: Duration) -> io::Result<TcpStream> {
    let stream = timeout(limit, TcpStream::connect(address))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}")))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Makes the system notice that the other machine is gone, even while no bytes are in flight.
///
/// This sets no limit on unacknowledged data (`TCP_USER_TIMEOUT`). Such a limit would also count the time for which the
/// buffers of a paused mGBA are full (tcp(7)), and would break a connection that works again when mGBA continues.
fn notice_when_gone(stream: &TcpStream, after: Duration) -> io::Result<()> {
    let second = Duration::from_secs(1);
    let keepalive = socket2::TcpKeepalive::new().with_time(second.max(after / 2));
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
    let keepalive = keepalive.with_interval(second.max(after / 10));
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    let keepalive = keepalive.with_retries(5);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
