//! HTTP/2: one connection for the requests of all clients of a worker.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::Request;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::connector::Connector;
use super::response::BODY;
use crate::target::{Call, Failure};

/// A connection that clients share. It is opened when the first request needs it. When it takes no more requests, another
/// one is opened.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedConnection(Arc<Mutex<Option<Arc<Open>>>>);

/// An open connection. It is closed when no client can get it any more and the last request on it has ended.
#[derive(Debug)]
struct Open {
    sender: SendRequest<Bytes>,
    /// The task that moves the connection's data. It ends with the connection.
    driver: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl SharedConnection {
    async fn open(&self, connector: &Connector, call: &mut Call<'_>) -> Result<Arc<Open>, Failure> {
        let mut shared = self.0.lock().await;
        // A new clone of the sender has no request to wait for. It is ready unless the connection takes no more requests.
        if let Some(open) = shared.as_ref()
            && open.sender.clone().ready().await.is_ok()
        {
            return Ok(Arc::clone(open));
        }
        let start = Instant::now();
        let stream = connector.connect().await?;
        let (sender, connection) = client::handshake(stream).await.map_err(failure)?;
        call.mark_connected(Some(start.elapsed()));
        let driver = tokio::spawn(async move {
            // The error can be ignored here, because the requests in flight get it, too.
            let _ = connection.await;
        });
        Ok(Arc::clone(shared.insert(Arc::new(Open { sender, driver }))))
    }

    /// Sends a request and returns the status of the reply. The reply's body goes into the call.
    pub(super) async fn exchange(
        &self,
        connector: &Connector,
        request: Request<()>,
        body: Bytes,
        call: &mut Call<'_>,
    ) -> Result<u16, Failure> {
        let open = self.open(connector, call).await?;
        let mut sender = open.sender.clone();
        let (response, mut stream) = sender.send_request(request, body.is_empty()).map_err(failure)?;
        // Waits while as many requests are in flight as the server allows. Until then, the request is not sent.
        sender.ready().await.map_err(failure)?;
        call.mark_sent(body.len());
        if !body.is_empty() {
            stream.send_data(body, true).map_err(failure)?;
        }
        let response = response.await.map_err(failure)?;
        // The head has arrived. With HTTP/2, the bytes of heads are not counted.
        call.mark_received(0);
        let status = response.status().as_u16();
        let mut body = response.into_body();
        while let Some(data) = poll_fn(|context| body.poll_data(context)).await {
            let data = data.map_err(failure)?;
            call.mark_received(data.len());
            call.reply.extend_from_slice(&data);
            if call.reply.len() > BODY {
                return Err(Failure::Other(format!("a body of more than {BODY} bytes")));
            }
            let _ = body.flow_control().release_capacity(data.len());
        }
        Ok(status)
    }
}

fn failure(error: h2::Error) -> Failure {
    if error.is_library() {
        return Failure::Other(format!("the response is not HTTP/2: {error}"));
    }
    if error.is_go_away() || error.is_reset() {
        return Failure::Reset;
    }
    match error.get_io() {
        Some(io) => std::io::Error::from(io.kind()).into(),
        None => Failure::Other(error.to_string()),
    }
}
