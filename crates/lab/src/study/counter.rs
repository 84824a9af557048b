//! Serves a window's frame number as JSON over HTTP, in the format that `framewire bench --emulator` reads.
//!
//! The number comes from the file that `src/frames.lua` of this crate writes. So it is measured in the same way for
//! Framewire's script and the study's script, and neither script has to answer extra requests.

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// A small HTTP server. Dropping it stops it.
#[derive(Debug)]
pub struct Counter {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Counter {
    /// Starts a server whose only response is the content of `file`.
    pub fn start(file: PathBuf) -> std::io::Result<Counter> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let answer = move || async move { std::fs::read_to_string(file).unwrap_or_default() };
        let server = axum::serve(listener, Router::new().route("/", get(answer)));
        runtime.spawn(server.into_future());
        Ok(Counter { address, runtime: Some(runtime) })
    }

    /// The URL of the frame number.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
