//! The open requests of a link, which outlive its connections. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use framewire_protocol::{Batch, Effect, Frame, Outcome, Request};

use crate::LinkError;

/// Called once with the outcome of a batch, or with the reason why there is none.
pub type Respond = Box<dyn FnOnce(Result<Outcome, LinkError>) + Send>;

/// A batch that a user has submitted to the link.
pub(crate) struct Submission {
    pub batch: Batch,
    pub deadline: Instant,
    /// Becomes true when the caller no longer waits for the outcome. `None` if the caller always waits.
    pub given_up: Option<Arc<AtomicBool>>,
    pub respond: Respond,
}

/// One request from its submission to its answer.
pub(crate) struct OpenRequest {
    pub batch: Batch,
    pub deadline: Instant,
    pub respond: Respond,
    sent: Sent,
}

impl OpenRequest {
    /// Whether the request changes something and was sent.
    fn may_be_done(&self) -> bool {
        self.sent == Sent::Yes && self.batch.effect() == Effect::Change
    }
}

/// Whether any bytes of a request were passed to a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    No,
    /// Yes, so the script may have performed it.
    Yes,
    /// Yes, but the connection broke before anything that changes the emulator was sent.
    Harmless,
}

/// The open requests of one session.
pub(crate) struct Session {
    /// Identifies the session to the script.
    pub name: u64,
    capacity: usize,
    /// Number of the next request. Only its low 32 bits are sent; they differ among the open requests.
    next: u64,
    open: BTreeMap<u64, OpenRequest>,
    deadlines: BTreeSet<(Instant, u64)>,
    /// The flags of open requests that their callers may give up on.
    given_up: Vec<(u64, Arc<AtomicBool>)>,
    /// Number of the first request that was not passed to the current connection.
    unsent: u64,
    /// Requests that were sent and withdrawn, and whose cancel frames may not have reached the script.
    cancelled: Vec<u32>,
}

impl Session {
    /// A session that holds up to `capacity` open requests.
    pub fn new(name: u64, capacity: usize) -> Self {
        Session {
            name,
            capacity,
            next: 1,
            open: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            given_up: Vec::new(),
            unsent: 1,
            cancelled: Vec::new(),
        }
    }

    /// Adds a request, or refuses it if the session is full.
    pub fn submit(&mut self, submission: Submission) {
        let Submission { batch, deadline, given_up, respond } = submission;
        if self.open.len() >= self.capacity {
            return respond(Err(LinkError::Busy(self.capacity)));
        }
        let id = self.next;
        self.next += 1;
        self.deadlines.insert((deadline, id));
        self.given_up.extend(given_up.map(|flag| (id, flag)));
        self.open.insert(id, OpenRequest { batch, deadline, respond, sent: Sent::No });
    }

    /// Whether no request is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Number of the oldest open request, or of the next request if none is open.
    fn oldest(&self) -> u64 {
        self.open.keys().next().copied().unwrap_or(self.next)
    }

    /// Appends the frames of requests that were not passed to this connection yet, until `out` holds `limit` bytes.
    pub fn encode_unsent(&mut self, out: &mut Vec<u8>, limit: usize) {
        let answered = self.oldest() as u32;
        for (&id, request) in self.open.range_mut(self.unsent..) {
            if out.len() >= limit {
                return;
            }
            if let Some(name) = &request.batch.trace {
                Frame::Trace { id: id as u32, name: name.clone() }.encode(out);
            }
            let frame = Request { id: id as u32, answered, batch: std::mem::take(&mut request.batch) };
            let frame = Frame::Request(frame);
            frame.encode(out);
            if let Frame::Request(frame) = frame {
                request.batch = frame.batch;
            }
            request.sent = Sent::Yes;
            self.unsent = id + 1;
        }
        self.unsent = self.next;
    }

    /// Removes and returns the first request and its number, for connections that carry one request at a time.
    pub fn take_first(&mut self) -> Option<(u64, OpenRequest)> {
        let (id, request) = self.open.pop_first()?;
        self.deadlines.remove(&(request.deadline, id));
        self.unsent = self.unsent.max(id + 1);
        Some((id, request))
    }

    /// Puts back a request that [`Session::take_first`] returned. It counts as sent, but will be sent again, because it
    /// has changed nothing.
    pub fn put_back(&mut self, id: u64, request: OpenRequest) {
        self.deadlines.insert((request.deadline, id));
        self.open.insert(id, OpenRequest { sent: Sent::Harmless, ..request });
        self.unsent = self.unsent.min(id);
    }

    /// Answers a request. A late reply is dropped.
    pub fn answer(&mut self, id: u32, outcome: Outcome) {
        let oldest = self.oldest();
        let id = oldest + u64::from(id.wrapping_sub(oldest as u32));
        if let Some(open) = self.remove(id) {
            (open.respond)(Ok(outcome));
        }
    }

    /// Fails the requests whose deadline has passed, and appends cancel frames for those that were sent. Until the
    /// script has answered the hello, the caller passes `broken`: the error for requests that may have changed
    /// something.
    pub fn expire(
        &mut self,
        now: Instant,
        error: &LinkError,
        broken: Option<&LinkError>,
        cancels: &mut Vec<u8>,
    ) {
        while let Some((_, id)) = self.deadlines.first().copied().filter(|(deadline, _)| *deadline <= now) {
            let may_be_done = self.open.get(&id).is_some_and(OpenRequest::may_be_done);
            let error = broken.filter(|_| may_be_done).unwrap_or(error);
            self.withdraw(id, error, cancels);
        }
    }

    /// Fails the requests that their callers have given up on, and appends cancel frames for those that were sent.
    pub fn drop_given_up(&mut self, error: &LinkError, cancels: &mut Vec<u8>) {
        for (id, flag) in std::mem::take(&mut self.given_up) {
            if flag.load(Relaxed) {
                self.withdraw(id, error, cancels);
            } else if self.open.contains_key(&id) {
                self.given_up.push((id, flag));
            }
        }
    }

    /// Fails a request if it is open. Appends a cancel frame if it was sent.
    fn withdraw(&mut self, id: u64, error: &LinkError, cancels: &mut Vec<u8>) {
        let Some(open) = self.remove(id) else { return };
        if open.sent == Sent::Yes {
            Frame::Cancel(id as u32).encode(cancels);
            self.cancelled.push(id as u32);
        }
        (open.respond)(Err(error.clone()));
    }

    /// Appends the cancel frames that may have been lost with an earlier connection.
    pub fn encode_cancels(&self, out: &mut Vec<u8>) {
        for &id in &self.cancelled {
            Frame::Cancel(id).encode(out);
        }
    }

    /// The number of cancel frames that may not have reached the script.
    pub fn cancelled(&self) -> usize {
        self.cancelled.len()
    }

    /// Called when the first `count` of these cancel frames have reached the script.
    pub fn cancels_arrived(&mut self, count: usize) {
        self.cancelled.drain(..count.min(self.cancelled.len()));
    }

    /// Whether there is an open request that its caller may give up on.
    pub fn may_be_given_up(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// The earliest deadline of an open request.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Prepares the open requests for a new connection, on which they will be sent again. If the script no longer
    /// remembers its replies, the requests that change something and may have been performed fail with `lost` instead.
    pub fn reconnected(&mut self, remembered: bool, lost: &LinkError) {
        if !remembered {
            self.fail(lost, OpenRequest::may_be_done);
            self.cancelled.clear();
        }
        self.unsent = self.oldest();
    }

    /// Fails every open request that was never sent. The others wait until the script is back, or until their
    /// deadlines.
    pub fn fail_unsent(&mut self, error: &LinkError) {
        self.fail(error, |open| open.sent == Sent::No);
    }

    fn fail(&mut self, error: &LinkError, is_chosen: impl Fn(&OpenRequest) -> bool) {
        let ids: Vec<u64> = self.open.iter().filter(|(_, open)| is_chosen(open)).map(|(id, _)| *id).collect();
        for id in ids {
            if let Some(open) = self.remove(id) {
                (open.respond)(Err(error.clone()));
            }
        }
    }

    /// Fails every open request.
    pub fn fail_all(&mut self, error: &LinkError) {
        self.fail(error, |_| true);
    }

    fn remove(&mut self, id: u64) -> Option<OpenRequest> {
        let open = self.open.remove(&id)?;
        self.deadlines.remove(&(open.deadline, id));
        Some(open)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use framewire_protocol::{Decoder, Op, Value};
    use parking_lot::Mutex;

    use super::*;

    type Answers = Arc<Mutex<Vec<Result<Outcome, LinkError>>>>;

    fn submit(session: &mut Session, op: Op, deadline: Instant) -> Answers {
        let answers = Answers::default();
        let inbox = answers.clone();
        let respond = Box::new(move |answer| inbox.lock().push(answer));
        session.submit(Submission { batch: op.into(), deadline, given_up: None, respond });
        answers
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// The ids of the request frames that the session would send now.
    fn sent(session: &mut Session) -> Vec<u32> {
        let mut out = Vec::new();
        session.encode_unsent(&mut out, usize::MAX);
        let mut decoder = Decoder::new();
        decoder.push(&out);
        std::iter::from_fn(|| decoder.next_frame().expect("valid"))
            .map(|frame| match frame {
                Frame::Request(request) => request.id,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn outcome(number: i64) -> Outcome {
        Outcome { frame: 1, results: vec![Ok(Value::Int(number))] }
    }

    fn lost() -> LinkError {
        LinkError::Lost { address: "here".into() }
    }

    #[test]
    fn each_reply_goes_to_its_request_in_any_order() {
        let mut session = Session::new(1, 8);
        let first = submit(&mut session, Op::GetKeys {}, later());
        let second = submit(&mut session, Op::GetKeys {}, later());
        assert_eq!(sent(&mut session), [1, 2]);
        session.answer(2, outcome(2));
        session.answer(1, outcome(1));
        assert_eq!(*first.lock(), [Ok(outcome(1))]);
        assert_eq!(*second.lock(), [Ok(outcome(2))]);
        assert!(session.is_empty());
    }

    #[test]
    fn a_late_reply_is_dropped() {
        let mut session = Session::new(1, 8);
        let first = submit(&mut session, Op::Reset {}, Instant::now());
        sent(&mut session);
        let mut cancels = Vec::new();
        session.expire(Instant::now(), &lost(), None, &mut cancels);
        assert!(!cancels.is_empty(), "the script is asked to cancel it");
        let second = submit(&mut session, Op::GetKeys {}, later());
        session.answer(1, outcome(1));
        assert_eq!(*first.lock(), [Err(lost())]);
        assert!(second.lock().is_empty());
    }

    #[test]
    fn a_request_that_is_given_up_is_cancelled() {
        let mut session = Session::new(1, 8);
        let flag = Arc::new(AtomicBool::new(false));
        let respond = Box::new(|_| {});
        let (batch, given_up) = (Op::Reset {}.into(), Some(flag.clone()));
        session.submit(Submission { batch, deadline: later(), given_up, respond });
        sent(&mut session);
        let mut cancels = Vec::new();
        session.drop_given_up(&lost(), &mut cancels);
        assert!(cancels.is_empty() && session.may_be_given_up());
        flag.store(true, Relaxed);
        session.drop_given_up(&lost(), &mut cancels);
        assert!(!cancels.is_empty() && session.is_empty() && !session.may_be_given_up());
    }

    #[test]
    fn cancels_are_sent_again_on_the_next_connection_until_they_arrive() {
        let mut session = Session::new(1, 8);
        let cancels = |session: &Session| {
            let mut out = Vec::new();
            session.encode_cancels(&mut out);
            let mut decoder = Decoder::new();
            decoder.push(&out);
            std::iter::from_fn(|| decoder.next_frame().expect("valid")).collect::<Vec<Frame>>()
        };
        submit(&mut session, Op::Reset {}, Instant::now());
        assert_eq!(sent(&mut session), [1]);
        session.expire(Instant::now(), &lost(), None, &mut Vec::new());
        session.reconnected(true, &lost());
        assert_eq!(cancels(&session), [Frame::Cancel(1)]);
        let arrived = session.cancelled();
        submit(&mut session, Op::Reset {}, Instant::now());
        assert_eq!(sent(&mut session), [2]);
        session.expire(Instant::now(), &lost(), None, &mut Vec::new());
        session.cancels_arrived(arrived);
        assert_eq!(cancels(&session), [Frame::Cancel(2)]);
        session.reconnected(false, &lost());
        assert_eq!(cancels(&session), []);
    }

    #[test]
    fn a_remembered_session_sends_everything_again_with_its_old_ids() {
        let mut session = Session::new(1, 8);
        submit(&mut session, Op::Reset {}, later());
        submit(&mut session, Op::GetKeys {}, later());
        assert_eq!(sent(&mut session), [1, 2]);
        assert_eq!(sent(&mut session), []);
        session.answer(1, outcome(1));
        session.reconnected(true, &lost());
        assert_eq!(sent(&mut session), [2]);
    }

    #[test]
    fn a_forgotten_session_repeats_reads_and_fails_changes_that_were_sent() {
        let mut session = Session::new(1, 8);
        let changed = submit(&mut session, Op::Reset {}, later());
        let read = submit(&mut session, Op::GetKeys {}, later());
        assert_eq!(sent(&mut session), [1, 2]);
        let unsent = submit(&mut session, Op::Reset {}, later());
        session.reconnected(false, &lost());
        assert_eq!(*changed.lock(), [Err(lost())]);
        assert_eq!(sent(&mut session), [2, 3]);
        assert!(read.lock().is_empty() && unsent.lock().is_empty());
    }

    #[test]
    fn a_full_session_refuses_at_once() {
        let mut session = Session::new(1, 1);
        submit(&mut session, Op::GetKeys {}, later());
        let refused = submit(&mut session, Op::GetKeys {}, later());
        assert_eq!(*refused.lock(), [Err(LinkError::Busy(1))]);
    }

    #[test]
    fn ids_wrap_without_mixing_up_replies() {
        let mut session = Session::new(1, 8);
        session.next = u64::from(u32::MAX);
        session.unsent = session.next;
        let last = submit(&mut session, Op::GetKeys {}, later());
        let first = submit(&mut session, Op::GetKeys {}, later());
        assert_eq!(sent(&mut session), [u32::MAX, 0]);
        session.answer(0, outcome(0));
        session.answer(u32::MAX, outcome(9));
        assert_eq!(*last.lock(), [Ok(outcome(9))]);
        assert_eq!(*first.lock(), [Ok(outcome(0))]);
    }
}
