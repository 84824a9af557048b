//! The header `Idempotency-Key`: a caller that never heard the answer repeats the request with the same key, and what
//! it asked for is done once (IETF draft-ietf-httpapi-idempotency-key-header).
//!
//! All requests with a key pass [`once`], over HTTP and JSON-RPC alike, so a route needs nothing of its own for it. A route
//! that changes an emulator also hands the key on ([`Batch::key`](framewire_protocol::Batch)): the emulator's own memory
//! outlives this server where a script holds it.
//!
//! - `memory`: the requests that are remembered, with their bounds;
//! - `reply`: a reply as it is kept;
//! - `unfinished`: work that goes on when its caller has left.

mod memory;
mod reply;
mod unfinished;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::response::Response;
use framewire_protocol::MAX_KEY;

use crate::access::caller::Caller;
use crate::access::login::{LOGIN, LOGOUT};
use crate::app::Site;
use crate::failure::Failure;
use crate::routing::extract::emulator_of;
use crate::transport::body;
pub(crate) use memory::KeyedReplies;
use memory::{Known, Name};
use unfinished::Unfinished;

/// The header that carries a key.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Waits for something, and changes nothing.
const WAIT: &str = "/v1/wait";

/// Put among a reply's extensions by a route whose request turned out to change nothing: its reply is not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NothingDone;

/// The key of a request, if it has one.
///
/// # Errors
/// If it cannot be used, or no key applies to such a request.
pub(crate) fn key(method: &Method, path: &str, headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(key) = read(headers)? else { return Ok(None) };
    if applies(method, path) {
        return Ok(Some(key));
    }
    let why = match path {
        LOGIN | LOGOUT => "keys do not apply to logging in and out",
        _ => "changes nothing and can be repeated as it is",
    };
    Err(Failure::bad_request(format!("header Idempotency-Key: {method} {path} {why}; leave the header out")))
}

/// Whether a key can be used with such requests.
pub(crate) fn applies(method: &Method, path: &str) -> bool {
    let changes = matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    changes && !matches!(path, WAIT | LOGIN | LOGOUT)
}

/// The key that the header holds.
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

/// Whether a text can be a key.
pub(crate) fn is_key(text: &str) -> bool {
    (1..=MAX_KEY).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Answers a request with a key: from memory if it was done before, and else by `work`, which goes on even if the caller
/// leaves. `held` counts the memory that the request takes; it is dropped at the end of the work.
///
/// # Errors
/// If the key came with another request, its reply is not kept any more, there is no room for another key, or the body
/// cannot be read.
pub(crate) async fn once<W>(
    site: &Arc<Site>,
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
    let body = body::read(body, site.app.limits.max_body, site).await?;
    let kind = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    let digest = Digest::of(&[parts.method.as_str().as_bytes(), target.as_bytes(), kind, &body]);
    let emulator = emulator_of(&parts).unwrap_or_else(|| site.app.emulators.first().name.clone());
    let request = Request::from_parts(parts, Body::from(body));
    let work = || {
        let work = work(request);
        async move {
            let response = work.await;
            drop(held);
            response
        }
    };
    remembered(&site.keyed, caller, emulator, key, digest, work).await
}

/// Does `work` under a key, unless it was done before.
pub(crate) async fn remembered<W>(
    keyed: &Arc<KeyedReplies>,
    caller: &Caller,
    emulator: String,
    key: String,
    digest: Digest,
    work: impl FnOnce() -> W,
) -> Result<Response, Failure>
where
    W: Future<Output = Response> + Send + 'static,
{
    let name = Arc::new(Name { rights: caller.rights, reach: caller.reach, emulator, key });
    let turn = loop {
        match keyed.find(&name, digest)? {
            Known::Done(reply) => return Ok(reply.response()),
            // If it ends without a reply that is kept, it is this request's turn.
            Known::UnderWay(over) => over.wait().await,
            Known::New(turn) => break turn,
        }
    };
    let work = work();
    Ok(Unfinished::new(async move { turn.end(work.await).await }).await)
}

/// What is compared of two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u64; 2]);

impl Digest {
    /// The digest of these parts of a request.
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
