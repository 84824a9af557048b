use framewire_protocol::EventFrame;

use crate::{Phase, Status};

/// What a link tells of itself and of its emulator, unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Requests are answered from now on; the script knows nothing of watches that were begun before.
    Connected,
    /// The connection is gone, for this reason; it is being made again.
    Disconnected(String),
    /// Events of the script were lost with the connection before: how many, or `None` where that cannot be known, as the script
    /// was loaded again.
    Missed(Option<u32>),
    /// Connected, but nothing was heard for a while.
    Stalled,
    /// The emulator answers again.
    Running,
    /// The script tells what happened.
    Events(EventFrame),
}

/// Called on the link's task with the emulator's frame counter, as far as it is known, and what there is to tell: in the
/// order in which it happened, answers to requests included. It must not wait.
pub type Listen = Box<dyn FnMut(u32, Notice) + Send>;

impl Notice {
    /// What there is to tell when a status changes.
    pub(crate) fn of_change(before: (Phase, bool), now: &Status) -> Option<Notice> {
        let stalled = now.stalled;
        match (before, now.phase) {
            ((Phase::Ready, before), Phase::Ready) if before != stalled => {
                Some(if stalled { Notice::Stalled } else { Notice::Running })
            }
            ((Phase::Ready, _), Phase::Ready) => None,
            (_, Phase::Ready) => Some(Notice::Connected),
            ((Phase::Ready, _), _) => Some(Notice::Disconnected(now.problem.clone().unwrap_or_default())),
            _ => None,
        }
    }
}
