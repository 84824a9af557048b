//! The state of a link, which outlives its connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_protocol::{EventFrame, EventItem, FrameRate, Welcome};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;

use crate::session::{Session, Submission};
use crate::silence::{self, SilenceCheck};
use crate::{Config, LinkError, Listen, Notice, Phase, Script, Status};

/// Time between two checks of the deadlines and of the heartbeat.
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// Bytes per read.
pub(crate) const READ: usize = 64 * 1024;
/// After this many iterations, the loop of a connection yields to other tasks of the runtime.
pub(crate) const TURNS: usize = 64;

/// The state of a link. Its connections use it one after the other.
pub(crate) struct LinkState {
    pub config: Config,
    pub session: Session,
    pub inbox: mpsc::Receiver<Submission>,
    pub stop: watch::Receiver<bool>,
    pub frame_rate: FrameRate,
    pub status: Arc<Mutex<Status>>,
    /// Receives notices.
    pub listen: Listen,
    /// Identifies the boot of the script that answered last. A boot is one run of the script, from its loading to its
    /// end.
    pub boot: Option<String>,
    /// How many events the script has sent during this boot, up to the last event that has arrived; `None` if the
    /// script does not report this number. Changes of memory do not count.
    pub events: Option<u32>,
    /// The last known frame counter of the emulator, from a heartbeat, an event or a welcome, on any connection.
    pub frame: u32,
    /// When the last connection to a script ended: one that was ready, or one that got no welcome while the script
    /// answered on another connection. Failed attempts to connect do not count.
    pub lost: Option<Instant>,
}

/// Why a connection, or an attempt to connect, ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// The connection broke, for this reason. The link connects again.
    Broken(String),
    /// The link was asked to stop.
    Stopped,
}

impl LinkState {
    /// The state of a link that starts a new session.
    pub fn new(
        config: Config,
        inbox: mpsc::Receiver<Submission>,
        status: Arc<Mutex<Status>>,
        stop: watch::Receiver<bool>,
        listen: Listen,
    ) -> LinkState {
        let session = Session::new(fastrand::u64(..), config.capacity);
        let frame_rate = FrameRate::default();
        let (boot, events, frame, lost) = (None, None, 0, None);
        LinkState { config, session, inbox, stop, frame_rate, status, listen, boot, events, frame, lost }
    }

    /// Changes the status. Sends a notice if the link becomes ready or is no longer ready, or if the emulator stalls or
    /// answers again while the link is ready.
    pub fn update(&mut self, change: impl FnOnce(&mut Status)) {
        let notice = {
            let status = &mut *self.status.lock();
            let before = (status.phase, status.stalled);
            change(status);
            Notice::of_change(before, status)
        };
        if let Some(notice) = notice {
            (self.listen)(self.frame, notice);
        }
    }

    pub fn phase(&self) -> Phase {
        self.status.lock().phase
    }

    pub fn absent(&self, problem: &str) -> LinkError {
        LinkError::Absent { address: self.config.address.clone(), problem: problem.to_owned() }
    }

    /// The error for a request that misses its deadline now. Until the script has answered the hello, also the error
    /// for a request that may have been performed on an earlier connection.
    pub fn reasons(&self) -> (LinkError, Option<LinkError>) {
        let status = self.status.lock();
        let address = || self.config.address.clone();
        let broken = |problem: &str| LinkError::Broken { address: address(), problem: problem.to_owned() };
        match status.phase {
            // The script has not sent anything on this connection, so it is not just late.
            Phase::Greeting => {
                let problem = "it accepts connections but does not answer; it is paused, or a menu is open";
                (LinkError::Stalled { address: address() }, Some(broken(problem)))
            }
            Phase::Ready if status.stalled => (LinkError::Stalled { address: address() }, None),
            Phase::Ready => (LinkError::Late { address: address() }, None),
            Phase::Connecting | Phase::Absent => {
                let problem = status.problem.as_deref().unwrap_or("still connecting");
                (self.absent(problem), Some(broken(problem)))
            }
        }
    }

    /// Passes the script's events on.
    pub fn deliver(&mut self, events: EventFrame) {
        let count = events.items.iter().filter(|item| !matches!(item, EventItem::Changed { .. })).count();
        self.events = self.events.map(|events| events.wrapping_add(count as u32));
        self.frame = events.frame;
        if events.items.contains(&EventItem::State) {
            self.frame_rate.clear(); // the frame counter of the state can be higher
        }
        (self.listen)(events.frame, Notice::Events(events));
    }

    /// Records which script answered the hello. Returns a notice if events were lost since the previous connection.
    pub fn note_welcome(&mut self, welcome: &Welcome) -> Option<Notice> {
        let events = std::mem::replace(&mut self.events, welcome.events);
        let boot = self.boot.replace(welcome.boot.clone())?;
        if boot != welcome.boot {
            return Some(Notice::Missed(None));
        }
        let missed = welcome.events?.wrapping_sub(events?);
        if missed > 0 { Some(Notice::Missed(Some(missed))) } else { None }
    }

    /// Reports that a script has answered the hello. Then passes on the notice about lost events, if there is one.
    pub fn connected(&mut self, script: Script, missed: Option<Notice>) {
        let frame = self.frame;
        let ready = Status { phase: Phase::Ready, script: Some(script), frame, ..Status::default() };
        self.update(|status| *status = ready);
        if let Some(missed) = missed {
            (self.listen)(frame, missed);
        }
    }

    /// Records that mGBA-http's script answered the hello. Returns a notice if Framewire's script ran before: what was
    /// begun there, such as lockstep, has ended.
    pub fn note_other_script(&mut self) -> Option<Notice> {
        self.events = None;
        self.boot.take().map(|_| Notice::Missed(None))
    }

    /// Records the emulator's frame counter, and that the emulator answers.
    pub fn note_frame(&mut self, frame: u32) {
        self.frame = frame;
        let rate = self.frame_rate.note(Instant::now(), frame);
        self.update(|status| {
            status.frame = frame;
            status.stalled = false;
            if let Some(rate) = rate {
                status.frames_per_second = rate;
            }
        });
    }

    /// Fails requests whose deadline has passed, and requests that their callers have given up on. Appends cancel
    /// frames for those that were sent.
    pub fn expire(&mut self, cancels: &mut Vec<u8>) {
        let now = Instant::now();
        if self.session.next_deadline().is_some_and(|deadline| deadline <= now) {
            let (reason, broken) = self.reasons();
            self.session.expire(now, &reason, broken.as_ref(), cancels);
        }
        self.drop_given_up(cancels);
    }

    /// Fails requests that their callers have given up on. Appends cancel frames for those that were sent.
    pub fn drop_given_up(&mut self, cancels: &mut Vec<u8>) {
        if self.session.may_be_given_up() {
            let (reason, _) = self.reasons();
            self.session.drop_given_up(&reason, cancels);
        }
    }

    /// Handles a silence: nothing has arrived for the time `silent`, although an answer is due. From
    /// [`Config::stalled_after`] on, reports that the emulator does not answer. Starts the check of the connection
    /// later, because the script answers only after it has received the `bytes` that were written before.
    pub fn note_silence(&mut self, silent: Duration, bytes: usize, check: &mut SilenceCheck) {
        let stalled_after = self.config.stalled_after;
        if silent < stalled_after {
            return;
        }
        self.frame_rate.clear();
        self.update(|status| {
            status.stalled = true;
            status.frames_per_second = 0.0;
        });
        if silent >= stalled_after + silence::upload_time(bytes) {
            check.start(&self.config.address);
        }
    }

    /// Accepts no more submissions, except those that are already in the queue.
    pub fn close_inbox(&mut self) {
        self.inbox.close();
        while let Ok(submission) = self.inbox.try_recv() {
            self.session.submit(submission);
        }
    }

    /// Waits for `future`, and meanwhile accepts requests and fails those whose deadline passes. In the phase `Absent`,
    /// new requests fail at once. Returns `None` if the link is asked to stop or is dropped.
    pub async fn wait_for<F: Future>(&mut self, future: F) -> Option<F::Output> {
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
                        (submission.respond)(Err(self.reasons().0));
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
