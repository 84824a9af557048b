//! Limits the memory that the large replies of all connections use together.

use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use framewire_protocol::Op;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::Failure;

/// The budget is counted in units of this many bytes.
const UNIT: usize = 1024;

/// Results up to this size do not count. Even if every connection has such a result, they do not use much memory.
pub(crate) const SMALL: usize = 16 * 1024;
/// The same for the results of JSON-RPC. A connection can have 1,024 of them.
const TINY: usize = 1024;

/// The memory that is left for replies.
#[derive(Debug, Clone)]
pub(crate) struct ReplyBudget(Arc<Semaphore>);

/// A part of a [`ReplyBudget`], which is returned to the budget when it is dropped.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    _permit: Option<OwnedSemaphorePermit>,
}

impl ReplyBudget {
    pub(crate) fn new(bytes: usize) -> ReplyBudget {
        ReplyBudget(Arc::new(Semaphore::new((bytes / UNIT).min(Semaphore::MAX_PERMITS))))
    }

    /// Reserves memory for the largest result that `op` can have. Call it before the operation is sent.
    pub(crate) fn share(&self, op: &Op) -> Result<BudgetShare, Failure> {
        self.share_bytes(op.largest_result())
    }

    /// Reserves memory for the largest results that `ops` can have together. Call it before they are sent.
    pub(crate) fn share_all(&self, ops: &[Op]) -> Result<BudgetShare, Failure> {
        self.share_bytes(ops.iter().map(Op::largest_result).sum())
    }

    pub(crate) fn share_bytes(&self, bytes: usize) -> Result<BudgetShare, Failure> {
        self.share_above(SMALL, bytes)
    }

    /// Like [`ReplyBudget::share_bytes`], for one of many results that a connection can have at the same time.
    pub(crate) fn share_of_many(&self, bytes: usize) -> Result<BudgetShare, Failure> {
        self.share_above(TINY, bytes)
    }

    fn share_above(&self, free: usize, bytes: usize) -> Result<BudgetShare, Failure> {
        if bytes <= free {
            return Ok(BudgetShare { _permit: None });
        }
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        match self.0.clone().try_acquire_many_owned(units) {
            Ok(permit) => Ok(BudgetShare { _permit: Some(permit) }),
            Err(_) => Err(Failure::busy(format!(
                "other large replies are being sent and leave no room for {bytes} more bytes; read those replies, or \
                 ask for less at a time, and try again"
            ))),
        }
    }
}

impl BudgetShare {
    /// A body that returns the share when it has been sent.
    pub(crate) fn body(self, bytes: Vec<u8>) -> Body {
        Body::from(Bytes::from_owner(CountedBytes { bytes, _share: self }))
    }

    /// A reply of bytes that returns the share when it has been sent.
    pub(crate) fn bytes(self, kind: &'static str, bytes: Vec<u8>) -> Response {
        ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")], self.body(bytes)).into_response()
    }

    /// A reply in JSON that returns the share when it has been sent.
    pub(crate) fn json(self, value: &impl Serialize) -> Response {
        match serde_json::to_vec(value) {
            Ok(text) => ([(CONTENT_TYPE, "application/json")], self.body(text)).into_response(),
            Err(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        }
    }
}

/// Bytes with the share of the budget that they use.
struct CountedBytes {
    bytes: Vec<u8>,
    _share: BudgetShare,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
