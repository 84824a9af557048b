use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Instant;

/// A request to be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// When it is due.
    pub(super) intended: Instant,
    /// Whether every client was busy when it was due.
    pub(super) waited: bool,
}

/// Where a job went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// To an idle client.
    ToIdle,
    /// To no client yet: the caller starts one more with it.
    ToNew,
    /// Into the queue.
    Queued,
}

/// Which client does which request. A client is a slot with a number; the last that became idle is the first to work again, so
/// that no more connections are open than are needed.
#[derive(Debug)]
pub(super) struct Slots {
    inner: RefCell<Inner>,
    /// With a closed load: until when clients go on by themselves.
    closed_until: Cell<Option<Instant>>,
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
}

impl Slots {
    /// At most `most` clients.
    pub(super) fn new(most: usize) -> Self {
        Slots { inner: RefCell::default(), closed_until: Cell::new(None), most }
    }

    /// From now on clients take a new job by themselves when they have done one, until `end`.
    pub(super) fn close_loop(&self, end: Instant) {
        self.closed_until.set(Some(end));
    }

    /// Gives a job to a client that is free.
    pub(super) fn give(&self, intended: Instant) -> Given {
        let mut inner = self.inner.borrow_mut();
        let given = if let Some(index) = inner.idle.pop() {
            let slot = &mut inner.slots[index];
            slot.job = Some(Job { intended, waited: false });
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
            Given::ToIdle
        } else if inner.slots.len() < self.most {
            inner.slots.push(Slot::default());
            Given::ToNew
        } else {
            inner.queue.push_back(intended);
            Given::Queued
        };
        inner.most_busy = inner.most_busy.max(inner.slots.len() - inner.idle.len());
        given
    }

    /// Number of the client that was added last.
    pub(super) fn newest(&self) -> usize {
        self.inner.borrow().slots.len() - 1
    }

    /// The next job of client `index`, whose last one is done.
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
        if let Some(end) = self.closed_until.get() {
            let now = Instant::now();
            if now < end {
                return Some(Job { intended: now, waited: false });
            }
        }
        let mut inner = self.inner.borrow_mut();
        match inner.queue.pop_front() {
            Some(intended) => Some(Job { intended, waited: true }),
            None => {
                inner.idle.push(index);
                None
            }
        }
    }

    /// Clients at work.
    pub(super) fn busy(&self) -> usize {
        let inner = self.inner.borrow();
        inner.slots.len() - inner.idle.len()
    }

    /// Requests that wait for a client.
    pub(super) fn queued(&self) -> usize {
        self.inner.borrow().queue.len()
    }

    /// Most clients that were at work at a time.
    pub(super) fn most_busy(&self) -> usize {
        self.inner.borrow().most_busy
    }
}
