//! A window's frame number as JSON over HTTP, in the form that `framewire bench --emulator` reads.
//!
//! It is taken from the file that `frames.lua` keeps, so that both scripts are watched in the same way and neither has a
//! request more to answer.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longest wait for a request's head.
const PATIENCE: Duration = Duration::from_secs(2);

/// A small server.
#[derive(Debug)]
pub struct Counter {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Counter {
    /// Serves `file`.
    ///
    /// # Errors
    /// If the system gives no port.
    pub fn start(file: PathBuf) -> std::io::Result<Counter> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // Whoever asks badly gets nothing.
                let _ = stream.and_then(|stream| answer(stream, &file));
            }
        });
        Ok(Counter { address, over, thread: Some(thread) })
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, file: &PathBuf) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut head, mut piece) = (Vec::new(), [0; 512]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            count => head.extend_from_slice(&piece[..count]),
        }
    }
    let body = fs::read(file)?;
    let head = format!(
        "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat())
}
