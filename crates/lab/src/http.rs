//! A blocking HTTP client that returns every response, whatever its status.

use std::time::Duration;

use serde_json::Value as Json;
use ureq::http::Request;

use crate::{Error, Result};

/// The time limit for a response. It is longer than the program's default deadlines, so that a test gets the program's
/// own error.
const LIMIT: Duration = Duration::from_secs(30);
/// The limit on the size of a response's body, in bytes; a larger one is an error. Savestates and pictures are smaller.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A client for one server. It keeps connections open between requests.
#[derive(Debug, Clone)]
pub struct Http {
    agent: ureq::Agent,
    base: String,
}

/// A response with any status.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The `content-type` header; empty if there is none.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as text; invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If the body is not JSON.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

impl Http {
    /// A client for the server at `base`, such as `http://127.0.0.1:5000`.
    #[must_use]
    pub fn new(base: impl Into<String>) -> Self {
        Self::with_limit(base, LIMIT)
    }

    /// Like [`Http::new`], with another time limit for a response.
    #[must_use]
    pub fn with_limit(base: impl Into<String>, limit: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(limit))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        Self { agent: config.into(), base: base.into() }
    }

    /// Sends a `GET` request for a path, which can have a query.
    ///
    /// # Errors
    /// [`Error::Io`] if no complete response arrives.
    pub fn get(&self, path: &str) -> Result<Reply> {
        self.send("GET", path, "", Vec::new())
    }

    /// Sends a `POST` request without a body.
    pub fn post(&self, path: &str) -> Result<Reply> {
        self.send("POST", path, "", Vec::new())
    }

    /// Sends any request. If `content_type` is empty, the request has no such header.
    pub fn send(&self, method: &str, path: &str, content_type: &str, body: Vec<u8>) -> Result<Reply> {
        let header = [("content-type", content_type)];
        let headers = if content_type.is_empty() { &[][..] } else { &header[..] };
        self.exchange(method, path, headers, body)
    }

    /// Sends a request with a JSON body; null means no body. Use null for a route that reads no body: after a body that
    /// it has not read, the server may close the connection.
    pub fn send_json(&self, method: &str, path: &str, body: &Json) -> Result<Reply> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.send(method, path, "application/json", body)
    }

    /// Sends any request with these headers.
    pub fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Reply> {
        let broken = |error: ureq::Error| Error::io("send an HTTP request")(std::io::Error::other(error));
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let failed = |error| broken(ureq::Error::Http(error));
        let mut response = if body.is_empty() {
            self.agent.run(request.body(()).map_err(failed)?)
        } else {
            self.agent.run(request.body(body).map_err(failed)?)
        }
        .map_err(broken)?;
        let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        Ok(Reply {
            status: response.status().as_u16(),
            content_type: content_type.unwrap_or_default().to_owned(),
            body: response.body_mut().with_config().limit(LARGEST).read_to_vec().map_err(broken)?,
        })
    }
}
