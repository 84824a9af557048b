//! Atomics and fences: the processor's, or loom's when its models run.

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Separates two steps: publishing something, and then checking whether the other side sleeps. It keeps the compiler
/// from reordering them. If the processor reorders them, nothing is missed, because a side that is about to sleep sends
/// a memory barrier to all processes before its last check.
pub fn light_fence() {
    #[cfg(not(loom))]
    compiler_fence(Ordering::SeqCst);
    // loom has no barriers that reach other threads. A full fence on each side has the same effect.
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Detects races between accesses to bytes in loom's models. Does nothing otherwise.
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
