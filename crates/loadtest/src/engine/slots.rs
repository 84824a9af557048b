use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Instant;

/// A request to perform.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// When it is due.
    pub(super) intended: Instant,
    /// Whether every client was busy when it was due.
    pub(super) waited: bool,
}

/// Assigns requests to clients. A client is a slot with a number. The client that became idle last gets the next
/// request, so that only the connections that are needed are open.
#[derive(Debug)]
pub(super) struct Slots {
    inner: RefCell<Inner>,
    /// The end of a closed load. Until then, each client begins a new request when its last one is done. `None` if the
    /// load is not closed.
    closed_until: Cell<Option<Instant>>,
    /// The largest number of clients.
    most: usize,
}

#[derive(Debug, Default)]
struct Inner {
    slots: Vec<Slot>,
    idle: Vec<usize>,
    queue: VecDeque<Instant>,
    most_busy: usize,
}

#[derive(Debug, Default)]
struct Slot {
    job: Option<Job>,
    waker: Option<Waker>,
    /// When the request that it works on was due; `None` while it is idle.
    current: Option<Instant>,
}

impl Slots {
    /// Creates slots for at most `most` clients.
    pub(super) fn new(most: usize) -> Self {
        Slots { inner: RefCell::default(), closed_until: Cell::new(None), most }
    }

    /// From now until `end`, a client that has finished a job begins a new one by itself.
    pub(super) fn close_loop(&self, end: Instant) {
        self.closed_until.set(Some(end));
    }

    /// Gives a job to an idle client, to a new client, or to the queue. For a new client, returns its number; the
    /// caller must start this client with the job.
    pub(super) fn give(&self, intended: Instant) -> Option<usize> {
        let mut inner = self.inner.borrow_mut();
        let mut new = None;
        if let Some(index) = inner.idle.pop() {
            let slot = &mut inner.slots[index];
            slot.job = Some(Job { intended, waited: false });
            slot.current = Some(intended);
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        } else if inner.slots.len() < self.most {
            new = Some(inner.slots.len());
            inner.slots.push(Slot { current: Some(intended), ..Slot::default() });
        } else {
            inner.queue.push_back(intended);
        }
        inner.most_busy = inner.most_busy.max(inner.slots.len() - inner.idle.len());
        new
    }

    /// Waits for the next job of client `index`, which has finished its last job.
    pub(super) async fn next(&self, index: usize) -> Job {
        if let Some(job) = self.next_at_once(index) {
            return job;
        }
        poll_fn(|context| {
            let slot = &mut self.inner.borrow_mut().slots[index];
            match slot.job.take() {
                Some(job) => Poll::Ready(job),
                None => {
                    slot.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn next_at_once(&self, index: usize) -> Option<Job> {
        let now = Instant::now();
        let mut inner = self.inner.borrow_mut();
        let job = if self.closed_until.get().is_some_and(|end| now < end) {
            Some(Job { intended: now, waited: false })
        } else {
            inner.queue.pop_front().map(|intended| Job { intended, waited: true })
        };
        inner.slots[index].current = job.map(|job| job.intended);
        if job.is_none() {
            inner.idle.push(index);
        }
        job
    }

    /// The number of busy clients.
    pub(super) fn busy(&self) -> usize {
        let inner = self.inner.borrow();
        inner.slots.len() - inner.idle.len()
    }

    /// The number of requests that clients are performing, and the number of requests that wait for a client. Only
    /// requests that were due at or after `window` are counted.
    pub(super) fn open_since(&self, window: Instant) -> (u64, u64) {
        let inner = self.inner.borrow();
        let current = inner.slots.iter().filter_map(|slot| slot.current);
        let count =
            |times: &mut dyn Iterator<Item = Instant>| times.filter(|due| *due >= window).count() as u64;
        (count(&mut current.into_iter()), count(&mut inner.queue.iter().copied()))
    }

    /// The largest number of clients that were busy at the same time.
    pub(super) fn most_busy(&self) -> usize {
        self.inner.borrow().most_busy
    }
}
