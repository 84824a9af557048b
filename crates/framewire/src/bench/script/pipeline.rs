use std::collections::HashMap;
use std::sync::Arc;

use framewire_loadtest::Failure;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::connection::Connection;
use super::dialect::{Answer, Codec, Ticket};

/// The size of the buffer for a read, in bytes.
const PIECE: usize = 64 * 1024;

/// A connection with many messages in flight. One task writes, and another task reads.
#[derive(Debug)]
pub(super) struct Pipeline {
    shared: Arc<Mutex<Shared>>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct Shared {
    codec: Codec,
    /// Sends messages to the writing task; `None` after the connection has ended. The channel is unbounded, but each
    /// caller sends its next message only after a reply or a timeout, and the load tester limits the number of callers.
    out: Option<mpsc::UnboundedSender<Vec<u8>>>,
    waiting: HashMap<Ticket, oneshot::Sender<Answer>>,
}

impl Pipeline {
    /// Takes over a connection. Must be called within a tokio runtime, on which its tasks run.
    pub(super) fn start(connection: Connection) -> Self {
        let (stream, codec) = connection.into_parts();
        let (reader, mut writer) = stream.into_split();
        let (out, mut messages) = mpsc::unbounded_channel::<Vec<u8>>();
        let shared = Arc::new(Mutex::new(Shared { codec, out: Some(out), waiting: HashMap::new() }));
        let write = tokio::spawn(async move {
            while let Some(mut bytes) = messages.recv().await {
                // All waiting messages are sent in one write.
                while let Ok(more) = messages.try_recv() {
                    bytes.extend_from_slice(&more);
                }
                if writer.write_all(&bytes).await.is_err() {
                    // The reading task also notices that the connection has ended, and reports it.
                    return;
                }
            }
        });
        let read = tokio::spawn(read(reader, Arc::clone(&shared)));
        Pipeline { shared, tasks: [write, read] }
    }

    /// Whether the connection can still be used.
    pub(super) fn is_open(&self) -> bool {
        self.shared.lock().out.is_some()
    }

    /// Sends a message. The returned receiver gets the answer to it, or an error if the connection ends first.
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

/// Passes each answer to its caller until the connection ends. Then all waiting callers get the failure.
async fn read(mut reader: OwnedReadHalf, shared: Arc<Mutex<Shared>>) {
    let mut buffer = Vec::with_capacity(PIECE);
    loop {
        buffer.clear();
        let failure = match reader.read_buf(&mut buffer).await {
            Ok(0) => Some(Failure::Reset),
            Ok(_) => hand_out(&shared, &buffer).err(),
            Err(error) => Some(error.into()),
        };
        if let Some(failure) = failure {
            let mut shared = shared.lock();
            shared.out = None;
            for (_, waiting) in shared.waiting.drain() {
                let _ = waiting.send(Err(failure.clone()));
            }
            return;
        }
    }
}

fn hand_out(shared: &Mutex<Shared>, bytes: &[u8]) -> Result<(), Failure> {
    let mut shared = shared.lock();
    shared.codec.receive(bytes)?;
    while let Some((ticket, answer)) = shared.codec.next()? {
        // If the caller has given up, its late answer is dropped here.
        if let Some(waiting) = shared.waiting.remove(&ticket) {
            let _ = waiting.send(answer);
        }
    }
    Ok(())
}
