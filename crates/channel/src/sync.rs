//! Atomics and fences: the processor's, or loom's when its models run.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Stands between publishing something and looking whether somebody sleeps: keeps the compiler from exchanging the two. The
/// processor is kept from it by the barrier that the sleeper sends to all processes before it looks a last time.
pub fn light_fence() {
    #[cfg(not(loom))]
    compiler_fence(Ordering::SeqCst);
    // loom has no barriers that reach other threads; two full fences are what the pair amounts to.
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Watches accesses to bytes for races in loom's models; nothing otherwise.
#[derive(Debug, Default)]
pub struct Shadow {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<()>,
}

impl Shadow {
    pub fn read(&self) {
        #[cfg(loom)]
        self.cell.with(|_| ());
    }

    pub fn write(&self) {
        #[cfg(loom)]
        self.cell.with_mut(|_| ());
    }
}
