use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::ExchangeError;
use super::connection::Connection;
use super::dialect::{Answer, Codec, Ticket};

/// Read at a time, in bytes.
const PIECE: usize = 64 * 1024;

/// One connection, many messages in flight: a task writes, a task reads.
#[derive(Debug)]
pub(super) struct Pipeline {
    shared: Arc<Mutex<Shared>>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct Shared {
    codec: Codec,
    /// To the writer; gone when the connection is of no more use. It holds no more than callers have in flight, each of
    /// whom waits for its answer: the load tester's slots bound them.
    out: Option<mpsc::UnboundedSender<Vec<u8>>>,
    waiting: HashMap<Ticket, oneshot::Sender<Answer>>,
}

impl Pipeline {
    /// Takes a connection over, on the runtime this is called in.
    pub(super) fn start(connection: Connection) -> Self {
        let (stream, codec) = connection.into_parts();
        let (reader, mut writer) = stream.into_split();
        let (out, mut messages) = mpsc::unbounded_channel::<Vec<u8>>();
        let shared = Arc::new(Mutex::new(Shared { codec, out: Some(out), waiting: HashMap::new() }));
        let write = tokio::spawn(async move {
            while let Some(mut bytes) = messages.recv().await {
                // What has gathered meanwhile goes out in one piece.
                while let Ok(more) = messages.try_recv() {
                    bytes.extend_from_slice(&more);
                }
                if writer.write_all(&bytes).await.is_err() {
                    // The reader sees the same end and says so.
                    return;
                }
            }
        });
        let read = tokio::spawn(read(reader, Arc::clone(&shared)));
        Pipeline { shared, tasks: [write, read] }
    }

    /// Whether it can be used.
    pub(super) fn is_open(&self) -> bool {
        self.shared.lock().out.is_some()
    }

    /// Sends a message; the receiver gets its answer, or an error if the connection ends before.
    pub(super) fn send(&self, payload: &[u8]) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let mut shared = self.shared.lock();
        let mut bytes = Vec::with_capacity(payload.len() + 64);
        let ticket = shared.codec.encode(payload, &mut bytes);
        if shared.out.as_ref().is_some_and(|out| out.send(bytes).is_ok()) {
            shared.waiting.insert(ticket, sender);
        }
        receiver
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Hands out answers until the connection ends; then whoever still waits is told.
async fn read(mut reader: OwnedReadHalf, shared: Arc<Mutex<Shared>>) {
    let mut buffer = Vec::with_capacity(PIECE);
    loop {
        buffer.clear();
        let failure = match reader.read_buf(&mut buffer).await {
            Ok(0) => Some(ExchangeError::closed()),
            Ok(_) => hand_out(&shared, &buffer).err(),
            Err(error) => Some(ExchangeError::Io(error)),
        };
        if let Some(failure) = failure {
            let mut shared = shared.lock();
            shared.out = None;
            for (_, waiting) in shared.waiting.drain() {
                let _ = waiting.send(Err(again(&failure)));
            }
            return;
        }
    }
}

fn hand_out(shared: &Mutex<Shared>, bytes: &[u8]) -> Result<(), ExchangeError> {
    let mut shared = shared.lock();
    shared.codec.receive(bytes)?;
    while let Some((ticket, answer)) = shared.codec.next()? {
        // A late answer to somebody who gave up is dropped here.
        if let Some(waiting) = shared.waiting.remove(&ticket) {
            let _ = waiting.send(answer);
        }
    }
    Ok(())
}

/// The same failure for one more waiter.
fn again(failure: &ExchangeError) -> ExchangeError {
    match failure {
        ExchangeError::Io(error) => ExchangeError::Io(std::io::Error::new(error.kind(), error.to_string())),
        ExchangeError::TimedOut(time) => ExchangeError::TimedOut(*time),
        ExchangeError::Refused(text) => ExchangeError::Refused(text.clone()),
        ExchangeError::Malformed(text) => ExchangeError::Malformed(text.clone()),
    }
}
