//! Reads bodies, and limits the memory for the data that clients send: heads, bodies and WebSocket messages, even while
//! they arrive.
//!
//! The socket of a connection counts each byte that it reads ([`Account::add`]). The first [`FREE`] bytes of a request
//! or message are free, so small requests need neither a lock nor an allocation. Further bytes are charged to the
//! client's address and to all clients together, until the request is answered.

use std::collections::HashMap;
use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::Stopping;
use crate::failure::{Failure, STOPPING};
use crate::limits::Limits;

/// Bytes of a request or message that are not charged. The limit on connections keeps their total small.
pub(crate) const FREE: usize = 16 * 1024;
/// How many bytes are charged at a time while a request of unknown length arrives.
const STEP: usize = 64 * 1024;
/// When a pool becomes empty, memory is returned to the system only if the pool's charges had reached this total.
const RELEASE_ABOVE: usize = 16 * 1024 * 1024;
/// How long to wait after the last charge was given back before the allocator returns memory to the system.
const RELEASE_DELAY: Duration = Duration::from_millis(500);

/// There is no memory for the data that the client sends. Sockets report this as the inner error of a
/// [`std::io::Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "other large requests are arriving and leave no memory for this one; send it again in a second, or send smaller requests"
)]
pub(crate) struct OutOfMemory;

/// The memory that arriving data uses.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    /// For callers that may do everything.
    full: Arc<Pool>,
    /// For read-only callers, and clients that have not sent a token yet.
    limited: Arc<Pool>,
}

/// A limit on bytes, for each client and for all clients together.
#[derive(Debug)]
struct Pool {
    most: usize,
    most_each: usize,
    taken: Mutex<Taken>,
    /// Makes the allocator return free memory to the system.
    release: Option<fn()>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// The largest value of `all` since it was last 0.
    peak: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// Bytes taken from a pool, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    pool: Arc<Pool>,
    client: IpAddr,
    bytes: usize,
}

impl Incoming {
    /// Memory within these limits. `release` is called on a separate thread after much memory was given back.
    pub(crate) fn new(limits: &Limits, release: Option<fn()>) -> Incoming {
        let pool = |most, most_each| Arc::new(Pool { most, most_each, taken: Mutex::default(), release });
        Incoming {
            full: pool(limits.max_incoming, limits.max_incoming_per_address),
            limited: pool(limits.max_incoming_limited, limits.max_incoming_limited_per_address),
        }
    }
}

impl Pool {
    fn take(&self, client: IpAddr, bytes: usize) -> Result<(), OutOfMemory> {
        let mut taken = self.taken.lock();
        let own = taken.by_client.get(&client).copied().unwrap_or(0);
        if own + bytes > self.most_each || taken.all + bytes > self.most {
            return Err(OutOfMemory);
        }
        taken.by_client.insert(client, own + bytes);
        taken.all += bytes;
        taken.peak = taken.peak.max(taken.all);
        Ok(())
    }

    fn give_back(self: &Arc<Pool>, client: IpAddr, bytes: usize) {
        let mut taken = self.taken.lock();
        taken.all -= bytes;
        if let Some(own) = taken.by_client.get_mut(&client) {
            *own -= bytes;
            if *own == 0 {
                taken.by_client.remove(&client);
            }
        }
        if taken.all > 0 || std::mem::take(&mut taken.peak) < RELEASE_ABOVE {
            return;
        }
        drop(taken);
        let (Some(release), Ok(runtime)) = (self.release, Handle::try_current()) else { return };
        let pool = self.clone();
        runtime.spawn(async move {
            sleep(RELEASE_DELAY).await;
            if pool.taken.lock().all == 0 {
                let _ = tokio::task::spawn_blocking(release).await;
            }
        });
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.pool.give_back(self.client, self.bytes);
    }
}

/// Counts the bytes of a connection's current request or message.
#[derive(Debug)]
pub(crate) struct Account {
    incoming: Incoming,
    client: IpAddr,
    /// Whether the bytes are charged to the pool for callers with full rights.
    full: AtomicBool,
    /// How many bytes of the current request or message have arrived.
    bytes: AtomicUsize,
    /// How many of them are free or charged already.
    covered: AtomicUsize,
    charge: Mutex<Option<Charge>>,
}

impl Account {
    /// The account of a client. `full` says whether it may do everything without a token.
    pub(crate) fn new(incoming: Incoming, client: IpAddr, full: bool) -> Account {
        Account {
            incoming,
            client,
            full: full.into(),
            bytes: AtomicUsize::new(0),
            covered: AtomicUsize::new(FREE),
            charge: Mutex::default(),
        }
    }

    /// Notes the client's rights. If the pool for these rights has room, the bytes that the client has sent are charged
    /// to that pool from now on.
    pub(crate) fn set_full(&self, full: bool) {
        if self.full.load(Relaxed) == full {
            return;
        }
        self.full.store(full, Relaxed);
        if let Some(charge) = &mut *self.charge.lock() {
            let pool = self.pool();
            if pool.take(charge.client, charge.bytes).is_ok() {
                *charge = Charge { pool: pool.clone(), client: charge.client, bytes: charge.bytes };
            }
        }
    }

    /// Counts bytes that arrived.
    pub(crate) fn add(&self, bytes: usize) -> Result<(), OutOfMemory> {
        // Only one task at a time does the counting, so nothing has to be locked.
        let all = self.bytes.load(Relaxed) + bytes;
        self.bytes.store(all, Relaxed);
        if all <= self.covered.load(Relaxed) {
            return Ok(());
        }
        self.cover(all.next_multiple_of(STEP))
    }

    /// Reserves memory for further bytes before they arrive.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let all = self.bytes.load(Relaxed).saturating_add(bytes);
        if all <= self.covered.load(Relaxed) {
            return Ok(());
        }
        self.cover(all)
    }

    /// Notes that the current request or message is complete. Its memory is given back when the returned charge is
    /// dropped.
    pub(crate) fn end(&self) -> Option<Charge> {
        self.bytes.store(0, Relaxed);
        if self.covered.load(Relaxed) == FREE {
            return None;
        }
        self.covered.store(FREE, Relaxed);
        self.charge.lock().take()
    }

    /// Subtracts bytes that are not part of the current message and no longer use memory.
    pub(crate) fn subtract(&self, bytes: usize) {
        let now = self.bytes.load(Relaxed);
        self.bytes.store(now.saturating_sub(bytes), Relaxed);
    }

    fn pool(&self) -> &Arc<Pool> {
        if self.full.load(Relaxed) { &self.incoming.full } else { &self.incoming.limited }
    }

    fn cover(&self, all: usize) -> Result<(), OutOfMemory> {
        let more = all - self.covered.load(Relaxed);
        let mut charge = self.charge.lock();
        // Further bytes go to the pool of the existing charge, which `set_full` may not have been able to move.
        let pool = charge.as_ref().map_or(self.pool(), |charge| &charge.pool).clone();
        pool.take(self.client, more)?;
        charge.get_or_insert_with(|| Charge { pool, client: self.client, bytes: 0 }).bytes += more;
        self.covered.store(all, Relaxed);
        Ok(())
    }
}

pub(crate) struct BodyReader {
    /// The largest number of bytes of a body, for routes that have no limit of their own.
    pub(crate) limit: usize,
    /// How long a body may take to arrive.
    time_limit: Duration,
    stopping: Stopping,
}

impl BodyReader {
    pub(crate) fn new(limits: &Limits, stopping: Stopping) -> BodyReader {
        BodyReader { limit: limits.max_body, time_limit: limits.body, stopping }
    }

    /// Reads a body. When the server stops, this no longer waits for a body that has not arrived.
    pub(crate) async fn read(&self, body: Body) -> Result<Bytes, Failure> {
        self.read_within(body, self.limit).await
    }

    /// Reads a body of at most `limit` bytes. A larger body is a 413, and a body that does not arrive in time is a 408.
    pub(crate) async fn read_within(&self, body: Body, limit: usize) -> Result<Bytes, Failure> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let too_large = || {
            Failure::too_large(format!("the body is larger than the {limit} bytes that are accepted here"))
        };
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let read = tokio::select! {
            biased;
            read = timeout(self.time_limit, collect(Limited::new(body, limit))) => read,
            () = self.stopping.wait() => return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, STOPPING)),
        };
        match read {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(error)) if is_out_of_memory(&*error) => Err(Failure::busy(OutOfMemory.to_string())),
            Ok(Err(error)) => Err(Failure::bad_request(format!("the body cannot be read: {error}"))),
            Err(_) => {
                let message = format!("the body did not arrive within {} s", self.time_limit.as_secs());
                Err(Failure::new(StatusCode::REQUEST_TIMEOUT, message))
            }
        }
    }
}

/// Reads a whole body. A body that arrives in one piece is not copied.
async fn collect(mut body: Limited<Body>) -> Result<Bytes, BoxError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if whole.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        if whole.is_empty() {
            let rest = usize::try_from(body.size_hint().lower()).unwrap_or(0);
            whole.reserve(data.len() + rest);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

/// Whether a body ended early because there was no memory for it.
fn is_out_of_memory(error: &(dyn Error + 'static)) -> bool {
    let reported = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    reported.is_some_and(|inner| inner.is::<OutOfMemory>()) || error.source().is_some_and(is_out_of_memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn incoming() -> Incoming {
        let limits = Limits {
            max_incoming: 8 * STEP,
            max_incoming_per_address: 4 * STEP,
            max_incoming_limited: 2 * STEP,
            max_incoming_limited_per_address: STEP,
            ..Limits::default()
        };
        Incoming::new(&limits, None)
    }

    #[test]
    fn small_requests_are_not_charged() {
        let incoming = incoming();
        let account = Account::new(incoming.clone(), CLIENT, true);
        for _ in 0..100 {
            account.add(FREE).unwrap();
            assert!(account.end().is_none());
        }
        assert_eq!(incoming.full.taken.lock().all, 0);
    }

    #[test]
    fn further_bytes_are_charged_and_given_back() {
        let incoming = incoming();
        let account = Account::new(incoming.clone(), CLIENT, true);
        account.reserve(3 * STEP).unwrap();
        account.add(3 * STEP).unwrap();
        assert_eq!(incoming.full.taken.lock().all, 3 * STEP - FREE);
        let other = Account::new(incoming.clone(), CLIENT, true);
        assert_eq!(other.reserve(2 * STEP), Err(OutOfMemory));
        let elsewhere = Account::new(incoming.clone(), IpAddr::from([10, 0, 0, 1]), true);
        elsewhere.add(4 * STEP).unwrap();
        let charge = account.end();
        assert_eq!(other.add(2 * STEP), Err(OutOfMemory), "a charge that was handed out still counts");
        drop(charge);
        other.end();
        other.reserve(2 * STEP).unwrap();
        drop((other, elsewhere));
        assert!(incoming.full.taken.lock().by_client.is_empty());
    }

    #[test]
    fn read_only_callers_have_a_small_pool_of_their_own() {
        let incoming = incoming();
        let accounts: Vec<Account> = (0..4)
            .map(|last| Account::new(incoming.clone(), IpAddr::from([10, 0, 0, last]), false))
            .collect();
        assert_eq!(accounts[0].add(2 * STEP), Err(OutOfMemory));
        accounts[1].reserve(STEP).unwrap();
        accounts[2].reserve(STEP).unwrap();
        assert_eq!(accounts[3].reserve(STEP), Err(OutOfMemory));
        accounts[3].set_full(true);
        accounts[3].reserve(STEP).unwrap();
    }

    #[test]
    fn bytes_before_the_token_are_charged_to_the_pool_of_its_rights() {
        let incoming = incoming();
        let account = Account::new(incoming.clone(), CLIENT, false);
        account.reserve(STEP).unwrap();
        account.set_full(true);
        assert_eq!(incoming.limited.taken.lock().all, 0);
        account.reserve(4 * STEP).unwrap();
        assert_eq!(incoming.full.taken.lock().all, 4 * STEP - FREE);
        account.set_full(false);
        assert_eq!(incoming.full.taken.lock().all, 4 * STEP - FREE, "the other pool has no room for it");
        drop(account);
        assert!(incoming.full.taken.lock().by_client.is_empty());
    }
}
