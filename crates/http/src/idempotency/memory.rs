//! The requests that are remembered by their keys, with their replies.
//!
//! The key of a request that succeeded and changed something is remembered for a fixed time after the request. When
//! there are too many keys, requests with new keys are refused. When the replies take too much memory, the oldest
//! replies are dropped, but not their keys. A request that is repeated after that is refused, and not performed again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::MatchedPath;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Digest, NothingDone};
use crate::access::caller::{Reach, Rights};
use crate::failure::Failure;
use crate::limits::Limits;

/// How many requests with a key may be under way at once, in each of the two memories of [`KeyedReplies`].
const UNDER_WAY: usize = 1024;
/// Read-only callers have a separate memory. Its limits on keys and bytes are the usual ones divided by this number.
const READ_ONLY_DIVISOR: usize = 32;
/// A reply is kept only if its size is at most the memory for replies divided by this number, so that one reply
/// displaces only a few others.
const REPLY_DIVISOR: usize = 8;

/// What identifies a remembered key.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyId {
    pub(super) rights: Rights,
    pub(super) reach: Reach,
    pub(super) emulator: String,
    pub(super) key: String,
}

/// Limits on what is remembered, and for how long.
#[derive(Debug, Clone, Copy)]
struct KeyLimits {
    keys: usize,
    bytes: usize,
    life: Duration,
}

/// The remembered requests: one memory for callers with full rights, and one for read-only callers.
pub(crate) struct KeyedReplies {
    full: Mutex<KeyMemory>,
    read: Mutex<KeyMemory>,
}

/// The state of a key.
pub(super) enum Known {
    /// Its request was performed.
    Done(Arc<KeptReply>),
    /// Its request is being performed. The receiver closes when it has ended.
    UnderWay(watch::Receiver<()>),
    /// The key is unknown, so the request must be performed.
    New(Turn),
}

/// The right to perform the request of a key. If it is dropped before the end, nothing is remembered.
pub(super) struct Turn {
    keyed: Arc<KeyedReplies>,
    id: Arc<KeyId>,
    /// Dropped at the end, which closes the receivers of [`Known::UnderWay`].
    _over: watch::Sender<()>,
    ended: bool,
}

impl Turn {
    /// Keeps the reply, if the request succeeded and changed something. Otherwise, the key is forgotten.
    pub(super) async fn end(mut self, response: Response) -> Response {
        let nothing_done = response.extensions().get::<NothingDone>().is_some();
        if nothing_done || !response.status().is_success() {
            return response;
        }
        let most = self.keyed.memory(&self.id).lock().bounds.bytes / REPLY_DIVISOR;
        let (response, kept) = KeptReply::of(response, most).await;
        self.ended = true;
        self.keyed.memory(&self.id).lock().keep(&self.id, kept, Instant::now());
        response
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.ended {
            self.keyed.memory(&self.id).lock().entries.remove(&self.id);
        }
    }
}

impl KeyedReplies {
    pub(crate) fn new(limits: &Limits) -> KeyedReplies {
        let Limits { max_keys, max_keyed_bytes, keyed_life, .. } = *limits;
        let memory = |share: usize| {
            let keys = (max_keys / share).max(1);
            let bounds = KeyLimits { keys, bytes: max_keyed_bytes / share, life: keyed_life };
            let entries = HashMap::new();
            Mutex::new(KeyMemory { bounds, entries, done: VecDeque::new(), dropped: 0, bytes: 0 })
        };
        KeyedReplies { full: memory(1), read: memory(READ_ONLY_DIVISOR) }
    }

    fn memory(&self, id: &KeyId) -> &Mutex<KeyMemory> {
        match id.rights {
            Rights::Full => &self.full,
            Rights::Read => &self.read,
        }
    }

    /// The state of a key. If the key is unknown, its request counts as under way from now on.
    pub(super) fn find(self: &Arc<Self>, id: &Arc<KeyId>, digest: Digest) -> Result<Known, Failure> {
        let mut memory = self.memory(id).lock();
        memory.expire(Instant::now());
        match memory.entries.get(id) {
            Some(entry) if entry.digest != digest => Err(Failure::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "Idempotency-Key: the key was used for another request; choose a new one",
            )),
            Some(KeyEntry { state: KeyState::UnderWay(over), .. }) => Ok(Known::UnderWay(over.clone())),
            Some(KeyEntry { state: KeyState::Done(Some(reply)), .. }) => Ok(Known::Done(reply.clone())),
            Some(KeyEntry { state: KeyState::Done(None), .. }) => Err(Failure::new(
                StatusCode::GONE,
                "Idempotency-Key: the request was done before, and its reply is not kept any more; ask for what you \
                 need with a separate request",
            )),
            None => {
                let over = memory.begin(id, digest, Instant::now())?;
                let (keyed, id) = (self.clone(), id.clone());
                Ok(Known::New(Turn { keyed, id, _over: over, ended: false }))
            }
        }
    }
}

struct KeyMemory {
    bounds: KeyLimits,
    entries: HashMap<Arc<KeyId>, KeyEntry>,
    /// The requests that were done, the oldest first.
    done: VecDeque<(Instant, Arc<KeyId>)>,
    /// How many of these, counted from the oldest, no longer have their reply.
    dropped: usize,
    /// Bytes of the replies that are kept.
    bytes: usize,
}

struct KeyEntry {
    digest: Digest,
    state: KeyState,
}

enum KeyState {
    UnderWay(watch::Receiver<()>),
    /// `None` if the reply was dropped, or could not be kept, for example because it is too large.
    Done(Option<Arc<KeptReply>>),
}

impl KeyMemory {
    fn begin(&mut self, id: &Arc<KeyId>, digest: Digest, now: Instant) -> Result<watch::Sender<()>, Failure> {
        if self.entries.len() - self.done.len() >= UNDER_WAY {
            return Err(Failure::busy(format!(
                "{UNDER_WAY} requests with an Idempotency-Key are under way; wait for replies"
            )));
        }
        if self.entries.len() >= self.bounds.keys {
            return Err(self.full(now));
        }
        let (sender, over) = watch::channel(());
        self.entries.insert(id.clone(), KeyEntry { digest, state: KeyState::UnderWay(over) });
        Ok(sender)
    }

    /// The failure when there is no room for another key.
    fn full(&self, now: Instant) -> Failure {
        let KeyLimits { keys, life, .. } = self.bounds;
        let oldest = self.done.front().map_or(now, |(done, _)| *done);
        let wait = life.saturating_sub(now.duration_since(oldest)).as_secs() + 1;
        let message = format!(
            "{keys} values of Idempotency-Key are remembered, each for {} s, and there is no room for another; send the \
             request again in {wait} s, or without a key if it may be done twice",
            life.as_secs()
        );
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, message).with_header(RETRY_AFTER, wait.into())
    }

    /// Keeps the reply to a request that was under way.
    fn keep(&mut self, id: &Arc<KeyId>, reply: Option<KeptReply>, now: Instant) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        self.bytes += reply.as_ref().map_or(0, KeptReply::size);
        entry.state = KeyState::Done(reply.map(Arc::new));
        self.done.push_back((now, id.clone()));
        while self.bytes > self.bounds.bytes {
            let Some((_, oldest)) = self.done.get(self.dropped) else { break };
            if let Some(KeyEntry { state: KeyState::Done(reply), .. }) = self.entries.get_mut(oldest) {
                self.bytes -= reply.take().map_or(0, |reply| reply.size());
            }
            self.dropped += 1;
        }
    }

    /// Forgets requests that were performed long enough ago.
    fn expire(&mut self, now: Instant) {
        while let Some((done, _)) = self.done.front()
            && now.duration_since(*done) >= self.bounds.life
        {
            let Some((_, id)) = self.done.pop_front() else { return };
            if let Some(KeyEntry { state: KeyState::Done(Some(reply)), .. }) = self.entries.remove(&id) {
                self.bytes -= reply.size();
            }
            self.dropped = self.dropped.saturating_sub(1);
        }
    }
}

/// A reply that can be sent again.
#[derive(Debug)]
pub(super) struct KeptReply {
    status: StatusCode,
    headers: Box<[(HeaderName, HeaderValue)]>,
    body: Bytes,
    /// The route that made the reply, for the metrics.
    route: Option<MatchedPath>,
}

impl KeptReply {
    /// Copies a reply. Returns the reply and its copy; the copy is `None` if the body has more than `most` bytes or
    /// cannot be read. If it cannot be read, the returned reply has an empty body.
    pub(super) async fn of(response: Response, most: usize) -> (Response, Option<KeptReply>) {
        if response.body().size_hint().lower() > most as u64 {
            return (response, None);
        }
        let (parts, body) = response.into_parts();
        let Ok(body) = to_bytes(body, usize::MAX).await else {
            return (Response::from_parts(parts, Body::empty()), None);
        };
        if body.len() > most {
            return (Response::from_parts(parts, Body::from(body)), None);
        }
        let kept = KeptReply {
            status: parts.status,
            headers: parts.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            // A copy, because the original bytes may hold a share of the memory that is reserved for replies under way.
            body: Bytes::copy_from_slice(&body),
            route: parts.extensions.get().cloned(),
        };
        (Response::from_parts(parts, Body::from(body)), Some(kept))
    }

    /// How many bytes its headers and its body have.
    pub(super) fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        self.body.len() + headers
    }

    pub(super) fn response(&self) -> Response {
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.status_mut() = self.status;
        for (name, value) in &self.headers {
            response.headers_mut().append(name.clone(), value.clone());
        }
        if let Some(route) = &self.route {
            response.extensions_mut().insert(route.clone());
        }
        response
    }
}
