//! Reports when the core's thread is stuck, for example in a script that does not end, and when it continues.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::shared::EmbeddedState;
use crate::Happening;

/// Time between two checks.
const CHECK: Duration = Duration::from_millis(250);

/// Checks the thread until it has `ended` or is to end.
pub(super) fn run(shared: &Arc<EmbeddedState>, ended: &Receiver<()>) {
    let mut stuck = false;
    while ended.recv_timeout(CHECK) == Err(RecvTimeoutError::Timeout) && !shared.stop.load(Relaxed) {
        let (silent, stopped, frame) = {
            let report = shared.report.lock();
            (report.is_silent(), report.run_state.stopped, report.frame)
        };
        if silent == stuck {
            continue;
        }
        stuck = silent;
        let what = match (stuck, stopped) {
            (true, _) => Happening::Stalled,
            (false, true) => Happening::Paused,
            (false, false) => Happening::Running,
        };
        shared.events.send(frame, what);
    }
}
