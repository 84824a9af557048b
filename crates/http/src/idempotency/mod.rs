//! The header `Idempotency-Key`: a caller that got no reply repeats the request with the same key, and the request
//! takes effect only once (IETF draft-ietf-httpapi-idempotency-key-header).
//!
//! All requests with a key, over HTTP and JSON-RPC, go through [`Idempotency::once`], so routes do not have to handle
//! keys. A route that changes an emulator also passes the key to the emulator
//! ([`Batch::key`](framewire_protocol::Batch)): Framewire's script remembers the key even if this server is restarted.
//!
//! `memory` holds the requests that are remembered, with their replies.

mod memory;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use framewire_protocol::MAX_KEY;
use tokio::runtime::Handle;

use self::memory::{KeyId, KeyedReplies, Known};
use crate::access::caller::Caller;
use crate::access::gate::RequestHead;
use crate::failure::Failure;
use crate::limits::{LARGEST_ROM, Limits, ROM_PATH};
use crate::reading::emulator_of;
use crate::transport::incoming::BodyReader;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A route adds this to the extensions of a reply if the request changed nothing. Such a reply is not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NothingDone;

/// The key of a request, if it has one. `takes_key` says whether its route accepts keys. If it does not, a key is an
/// error.
pub(crate) fn key(
    head: &RequestHead<'_>,
    takes_key: impl FnOnce() -> bool,
) -> Result<Option<String>, Failure> {
    let Some(key) = read(head.headers)? else { return Ok(None) };
    if takes_key() {
        return Ok(Some(key));
    }
    let (method, path) = (head.method, head.path());
    Err(Failure::bad_request(format!(
        "header Idempotency-Key: {method} {path} accepts no key; leave the header out"
    )))
}

/// The key in the header; `None` if there is no such header. Fails if there are several such headers, or if the key is
/// not as [`ACCEPTED`] describes it.
pub(crate) fn read(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let text = key.to_str().ok().filter(|key| is_key(key));
    match (text, keys.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err(Failure::bad_request(format!("header Idempotency-Key: accepted is {ACCEPTED}"))),
    }
}

/// What is accepted as a key.
pub(crate) const ACCEPTED: &str = "one key of 1 to 255 printable ASCII characters, such as a UUID";
const _: () = assert!(MAX_KEY == 255);

pub(crate) fn is_key(text: &str) -> bool {
    (1..=MAX_KEY).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Makes sure that requests with a key are performed only once.
pub(crate) struct Idempotency {
    replies: Arc<KeyedReplies>,
    bodies: Arc<BodyReader>,
    /// The name of the emulator for requests that name none.
    first_emulator: String,
}

impl Idempotency {
    pub(crate) fn new(limits: &Limits, bodies: Arc<BodyReader>, first_emulator: String) -> Idempotency {
        Idempotency { replies: Arc::new(KeyedReplies::new(limits)), bodies, first_emulator }
    }

    /// Answers a request with a key: from memory if the request was performed before, and otherwise with `work`. The
    /// work continues even if the caller disconnects. `held` counts the memory that the request takes; it is dropped at
    /// the end of the work.
    ///
    /// # Errors
    /// If the key was used for a different request, its reply is no longer kept, there is no room for another key, or
    /// the body cannot be read.
    pub(crate) async fn once<W>(
        &self,
        caller: &Caller,
        key: String,
        request: Request,
        held: impl Send + 'static,
        work: impl FnOnce(Request) -> W,
    ) -> Result<Response, Failure>
    where
        W: Future<Output = Response> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let limit = if parts.uri.path() == ROM_PATH { LARGEST_ROM } else { self.bodies.limit };
        let body = self.bodies.read_within(body, limit).await?;
        let kind = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
        let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
        let digest = Digest::of(&[parts.method.as_str().as_bytes(), target.as_bytes(), kind, &body]);
        let emulator = emulator_of(&parts).unwrap_or_else(|| self.first_emulator.clone());
        let request = Request::from_parts(parts, Body::from(body));
        let id = Arc::new(KeyId { rights: caller.rights, reach: caller.reach, emulator, key });
        let turn = loop {
            match self.replies.find(&id, digest)? {
                Known::Done(reply) => return Ok(reply.response()),
                // If the other request fails or changes nothing, its key is forgotten, and this request is performed.
                Known::UnderWay(mut over) => drop(over.changed().await),
                Known::New(turn) => break turn,
            }
        };
        let work = work(request);
        let finish = async move {
            let response = work.await;
            drop(held);
            turn.end(response).await
        };
        Ok(Unfinished(Some(Box::pin(finish))).await)
    }
}

/// A digest of the parts of a request that must be the same when it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u64; 2]);

impl Digest {
    pub(crate) fn of(parts: &[&[u8]]) -> Digest {
        static HASHERS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        Digest(HASHERS.each_ref().map(|state| {
            let mut hasher = state.build_hasher();
            for part in parts {
                hasher.write_usize(part.len());
                hasher.write(part);
            }
            hasher.finish()
        }))
    }
}

/// A future that continues in its own task if it is dropped before its end.
struct Unfinished<F: Future + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future + Send + 'static> Future for Unfinished<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // The work is taken out first, so that it is not continued if it panics.
        let Some(mut work) = self.0.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<F: Future + Send + 'static> Drop for Unfinished<F> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { drop(work.await) });
        }
    }
}
