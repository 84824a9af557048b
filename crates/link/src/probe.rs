//! Finds out what listens at an address, without starting a session with it.

use std::io;
use std::time::Duration;

use framewire_protocol::marker;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Script;

/// The largest number of bytes of an answer that are read.
const MAX_ANSWER: usize = 256;

/// What was found at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing accepts connections, for this reason.
    Nothing(String),
    /// Something accepts connections but does not answer: mGBA that is paused or has no ROM, or another program.
    Silent,
    /// The script of an emulator.
    Script(Script),
    /// Another program; this is its answer, or `(closed: ...)` with the system's error if the connection broke.
    Other(String),
}

/// Finds out what listens at `address`. Takes at most `limit` to connect, and then at most `limit` for the answer.
pub async fn probe(address: &str, limit: Duration) -> Found {
    let stream = match timeout(limit, TcpStream::connect(address)).await {
        Err(_) => return Found::Nothing(format!("no answer within {limit:?}")),
        Ok(Err(error)) => return Found::Nothing(error.to_string()),
        Ok(Ok(stream)) => stream,
    };
    match timeout(limit, ask(stream)).await {
        Err(_) => Found::Silent,
        Ok(Err(error)) => Found::Other(format!("(closed: {error})")),
        Ok(Ok(answer)) => match answer.strip_prefix("framewire ") {
            Some(version) => Found::Script(Script::Framewire(version.to_owned())),
            None if answer == marker::ERROR => Found::Script(Script::MgbaHttp),
            None => Found::Other(answer),
        },
    }
}

async fn ask(mut stream: TcpStream) -> io::Result<String> {
    stream.write_all(format!("framewire.version{}", marker::END).as_bytes()).await?;
    let mut received = Vec::new();
    while received.len() < MAX_ANSWER {
        let text = String::from_utf8_lossy(&received);
        if let Some((answer, _)) = text.split_once(marker::END) {
            return Ok(answer.to_owned());
        }
        if stream.read_buf(&mut received).await? == 0 {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&received).into_owned())
}
