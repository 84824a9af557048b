//! The frames that clients have asked for in lockstep. While these frames run, the script answers no request of its link.
//! That takes as long as mGBA's window needs, so the deadlines of requests that are made meanwhile move by that time.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::shared::AttachedState;

/// The advances that have not ended.
#[derive(Debug, Default)]
pub(super) struct Advances(Mutex<OpenAdvances>);

#[derive(Debug, Default)]
struct OpenAdvances {
    count: usize,
    /// The latest of their deadlines; `None` if there are none.
    until: Option<Instant>,
}

/// An advance that ends when this is dropped.
pub(super) struct Advance(Arc<AttachedState>);

impl Advances {
    /// Notes an advance that ends by `deadline`.
    pub fn begin(shared: &Arc<AttachedState>, deadline: Instant) -> Advance {
        let open = &mut *shared.advances.0.lock();
        open.count += 1;
        open.until = open.until.max(Some(deadline));
        Advance(shared.clone())
    }

    /// The deadline of a request that is made now: `deadline`, plus the time that the open advances may still take.
    pub fn after(&self, deadline: Instant) -> Instant {
        let until = self.0.lock().until;
        until.map_or(deadline, |until| deadline + until.saturating_duration_since(Instant::now()))
    }
}

impl Drop for Advance {
    fn drop(&mut self) {
        let open = &mut *self.0.advances.0.lock();
        open.count -= 1;
        if open.count == 0 {
            open.until = None;
        }
    }
}
