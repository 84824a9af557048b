//! The interface through which tools call the methods of a server.

use std::pin::Pin;

use serde_json::Value as Json;

/// Parameters by name.
pub type Object = serde_json::Map<String, Json>;

/// The future of a method call.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<Json, Problem>> + Send + 'a>>;

/// A future that completes when the server stops.
pub type EndFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Calls JSON-RPC methods (docs/json-rpc.md): `batch`, and routes by their `operationId`, such as `load` or `v1.pause`.
pub trait Backend: Send + Sync {
    /// Calls a method with parameters by name. Returns the result of the method.
    fn call<'a>(&'a self, method: &'a str, params: Object) -> CallFuture<'a>;

    /// Whether calls may only read.
    fn only_reads(&self) -> bool;

    /// Whether a call without an idempotency key ends if its future is dropped. If not, the call continues to run
    /// frames.
    fn ends_dropped_calls(&self) -> bool {
        true
    }

    /// Waits until the server stops. Endless replies, such as event streams, end then.
    fn stopped(&self) -> EndFuture<'_>;
}

/// Why a call failed: a problem document (RFC 9457).
#[derive(Debug, Clone, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// What was wrong, and what is accepted.
    pub detail: String,
}

impl Problem {
    /// Reads a problem document. Without a status, the status is 500. Without `detail`, the detail is the whole
    /// document.
    pub fn from_json(document: &Json) -> Problem {
        let status = document["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        let detail = document["detail"].as_str().map_or_else(|| document.to_string(), str::to_owned);
        Problem { status: status.unwrap_or(500), detail }
    }
}
