//! Lockstep ends with the WebSocket that began it: no client is left that would ask for frames. HTTP requests have no lasting
//! connection, so lockstep that one of them began ends by its time-out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use framewire_protocol::Op;
use tokio::task_local;

task_local! {
    /// The number of the WebSocket whose request this task does.
    static CONNECTION: u64;
}

/// Number of the WebSocket that began an emulator's lockstep last; 0 if that was another client, or it was ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockstepHolder(Arc<AtomicU64>);

impl LockstepHolder {
    /// Notes what operations do to lockstep.
    pub(crate) fn note(&self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Lockstep { timeout: 0 } | Op::Resume {} => self.0.store(0, Relaxed),
                Op::Lockstep { .. } => {
                    self.0.store(CONNECTION.try_with(|number| *number).unwrap_or(0), Relaxed)
                }
                _ => {}
            }
        }
    }

    /// Whether this WebSocket had begun the lockstep, which has no holder from now on.
    pub(crate) fn is_left_by(&self, connection: u64) -> bool {
        self.0.compare_exchange(connection, 0, Relaxed, Relaxed).is_ok()
    }
}

/// A number for a WebSocket.
pub(crate) fn number() -> u64 {
    fastrand::u64(1..)
}

/// Does `work` for the WebSocket of this number.
pub(crate) async fn for_connection<F: Future>(number: u64, work: F) -> F::Output {
    CONNECTION.scope(number, work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn begin(holder: &LockstepHolder, connection: u64) {
        for_connection(connection, async { holder.note(&[Op::Lockstep { timeout: 1000 }]) }).await;
    }

    #[tokio::test]
    async fn lockstep_that_another_client_took_over_stays() {
        let holder = LockstepHolder::default();
        begin(&holder, 1).await;
        begin(&holder, 2).await;
        assert!(!holder.is_left_by(1));
        assert!(holder.is_left_by(2) && !holder.is_left_by(2));
        begin(&holder, 1).await;
        holder.note(&[Op::Lockstep { timeout: 1000 }]);
        assert!(!holder.is_left_by(1), "an HTTP client has it");
        begin(&holder, 1).await;
        holder.note(&[Op::Pause {}, Op::Resume {}]);
        assert!(!holder.is_left_by(1), "it is over");
    }
}
