//! Tells when the core's thread is stuck, such as in a script that does not end, and when it goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::shared::Shared;
use crate::Happening;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(250);

/// Watches over the thread until it has `ended`, or is to end.
pub(super) fn run(shared: &Arc<Shared>, ended: &Receiver<()>) {
    let mut stuck = false;
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && !shared.stop.load(Relaxed) {
        let (silent, stopped, frame) = {
            let report = shared.report.lock();
            (report.is_silent(), report.going.stopped, report.frame)
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
        shared.teller.tell(frame, what);
    }
}
