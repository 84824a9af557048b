//! The frames that lockstep's clients have asked for. The script answers no request of its link while they run, which takes as
//! long as mGBA's window needs for them: so what is asked meanwhile has its time after them.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::board::Board;

/// The advances under way.
#[derive(Debug, Default)]
pub(super) struct Advances(Mutex<UnderWay>);

#[derive(Debug, Default)]
struct UnderWay {
    count: usize,
    /// The latest of their deadlines; `None` where there are none.
    until: Option<Instant>,
}

/// An advance under way, until this is dropped.
pub(super) struct Advance(Arc<Board>);

impl Advances {
    /// Notes an advance that is over by `deadline`.
    pub fn begin(board: &Arc<Board>, deadline: Instant) -> Advance {
        let under_way = &mut *board.advances.0.lock();
        under_way.count += 1;
        under_way.until = under_way.until.max(Some(deadline));
        Advance(board.clone())
    }

    /// The deadline of a request that begins now: later by the time that the advances under way may still take.
    pub fn after(&self, deadline: Instant) -> Instant {
        let until = self.0.lock().until;
        until.map_or(deadline, |until| deadline + until.saturating_duration_since(Instant::now()))
    }
}

impl Drop for Advance {
    fn drop(&mut self) {
        let under_way = &mut *self.0.advances.0.lock();
        under_way.count -= 1;
        if under_way.count == 0 {
            under_way.until = None;
        }
    }
}
