//! What a link works with, whichever connection it has.

use std::sync::Arc;
use std::time::Instant;

use framewire_protocol::{EventFrame, EventItem, Pulse, Welcome};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;

use crate::session::Session;
use crate::submission::Submission;
use crate::{Config, LinkError, Listen, Notice, Phase, Status};

/// What a link keeps over its connections, and what each connection works with.
pub(crate) struct Desk {
    pub config: Config,
    pub session: Session,
    pub inbox: mpsc::Receiver<Submission>,
    pub stop: watch::Receiver<bool>,
    pub pulse: Pulse,
    pub status: Arc<Mutex<Status>>,
    /// Whoever is told what happens.
    pub listen: Listen,
    /// Memory of the script that was reached last.
    pub boot: Option<String>,
    /// How many events that script had sent in its life when the last one came in here.
    pub events: Option<u32>,
    /// The emulator's frame counter when it was last heard, over connections.
    pub frame: u32,
    /// When the connection broke that was ready last.
    pub lost: Option<Instant>,
}

/// Why a connection, or an attempt at one, is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection broke, for this reason; try again.
    Broken(String),
    /// The link was asked to stop.
    Stopped,
}

impl Desk {
    /// A desk with a session of its own.
    pub fn new(
        config: Config,
        inbox: mpsc::Receiver<Submission>,
        status: Arc<Mutex<Status>>,
        stop: watch::Receiver<bool>,
        listen: Listen,
    ) -> Desk {
        let session = Session::new(fastrand::u64(..), config.capacity);
        let pulse = Pulse::default();
        let (boot, events, frame, lost) = (None, None, 0, None);
        Desk { config, session, inbox, stop, pulse, status, listen, boot, events, frame, lost }
    }

    /// Changes the status, and tells of it where that is more than a number.
    pub fn update(&mut self, change: impl FnOnce(&mut Status)) {
        let (frame, notice) = {
            let status = &mut *self.status.lock();
            let before = (status.phase, status.stalled);
            let frame = status.frame;
            change(status);
            let frame = if status.frame == 0 { frame } else { status.frame };
            (frame, Notice::of_change(before, status))
        };
        if let Some(notice) = notice {
            (self.listen)(frame, notice);
        }
    }

    pub fn phase(&self) -> Phase {
        self.status.lock().phase
    }

    pub fn absent(&self, problem: &str) -> LinkError {
        LinkError::Absent { address: self.config.address.clone(), problem: problem.to_owned() }
    }

    /// Why a request that waits now would run out of time.
    fn reason(&self) -> LinkError {
        let status = self.status.lock();
        match status.phase {
            // The script has not said a word on this connection, however short the request's deadline is.
            Phase::Greeting => LinkError::Stalled { address: self.config.address.clone() },
            Phase::Ready => {
                let address = self.config.address.clone();
                if status.stalled { LinkError::Stalled { address } } else { LinkError::Late { address } }
            }
            Phase::Connecting | Phase::Absent => {
                self.absent(status.problem.as_deref().unwrap_or("still connecting"))
            }
        }
    }

    /// Tells what happened.
    pub fn happened(&mut self, events: EventFrame) {
        let count = events.items.iter().filter(|item| !matches!(item, EventItem::Changed { .. })).count();
        self.events = self.events.map(|events| events.wrapping_add(count as u32));
        self.frame = events.frame;
        (self.listen)(events.frame, Notice::Events(events));
    }

    /// Notes which script is there now. Returns what was lost since the connection before.
    pub fn welcomed(&mut self, welcome: &Welcome) -> Option<Notice> {
        let events = std::mem::replace(&mut self.events, welcome.events);
        let boot = self.boot.replace(welcome.boot.clone())?;
        if boot != welcome.boot {
            return Some(Notice::Missed(None));
        }
        let missed = welcome.events?.wrapping_sub(events?);
        (missed > 0).then_some(Notice::Missed(Some(missed)))
    }

    /// Notes the emulator's frame counter.
    pub fn heard(&mut self, frame: u32) {
        self.frame = frame;
        let rate = self.pulse.beat(Instant::now(), frame);
        self.update(|status| {
            status.frame = frame;
            status.stalled = false;
            if let Some(rate) = rate {
                status.frames_per_second = rate;
            }
        });
    }

    /// Fails what is past its deadline; appends cancel frames for what was sent.
    pub fn expire(&mut self, cancels: &mut Vec<u8>) {
        let now = Instant::now();
        if self.session.next_deadline().is_some_and(|deadline| deadline <= now) {
            let reason = self.reason();
            self.session.expire(now, &reason, cancels);
        }
    }

    /// Waits for `future` while requests come in and run out of time. `None`: the link was asked to stop.
    pub async fn attend<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        loop {
            let deadline = self.session.next_deadline();
            let expiry = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                output = &mut future => return Some(output),
                () = asked_to_stop(&mut self.stop) => return None,
                submission = self.inbox.recv() => match submission {
                    None => return None,
                    Some(submission) if self.phase() == Phase::Absent => {
                        (submission.respond)(Err(self.reason()));
                    }
                    Some(submission) => self.session.submit(submission),
                },
                () = expiry => self.expire(&mut Vec::new()),
            }
        }
    }
}

/// Waits until the link is asked to stop or is dropped.
pub(crate) async fn asked_to_stop(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
