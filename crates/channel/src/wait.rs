//! Waiting for the other side: spin briefly, then sleep in the kernel.
//!
//! Before a side sleeps, it sets its sleep word in shared memory, issues a memory barrier that reaches every process of
//! the channel, and checks once more whether there is something for it. The other side publishes first and reads that
//! word afterwards. So at least one of the two notices the other, and the side that publishes needs no barrier of its
//! own. If the kernel does not have this barrier, a side can miss a wake-up, so it sleeps for 1 ms at most.

use std::time::{Duration, Instant};

use crate::Error;
use crate::memory::{Memory, Side, Sleeper};
use crate::sync::Ordering;

/// How many checks `spin` makes between two readings of the clock.
#[cfg(not(loom))]
const ROUND: u32 = 16;

/// Waits for the time between two checks: about 50 ns, as in the code for LuaJIT (`luajit/framewire/channel/wait.lua`).
/// Checking more often would be slower, because it takes the cache line away from the other side while that side is
/// still writing. With 35 ns, messages between two Rust programs are faster, but messages between Rust and LuaJIT are a
/// quarter slower.
#[cfg(not(loom))]
#[inline(always)]
pub fn pause() {
    use std::hint::spin_loop;
    use std::sync::OnceLock;

    const TARGET_NS: u128 = 48;
    const SAMPLE: u32 = 1000;
    static COUNT: OnceLock<u32> = OnceLock::new();
    // One hint takes between 3 and 60 ns, depending on the processor.
    let count = *COUNT.get_or_init(|| {
        let start = Instant::now();
        (0..SAMPLE).for_each(|_| spin_loop());
        let taken = start.elapsed().as_nanos().max(1);
        ((TARGET_NS * u128::from(SAMPLE) + taken / 2) / taken).clamp(1, 50) as u32
    });
    (0..count).for_each(|_| spin_loop());
}

/// Calls `is_ready` repeatedly, for at most `time`; returns whether it returned true.
#[cfg(not(loom))]
#[inline]
pub fn spin(time: Duration, mut is_ready: impl FnMut() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..ROUND {
            if is_ready() {
                return true;
            }
            pause();
        }
        if start.get_or_insert_with(Instant::now).elapsed() >= time {
            return is_ready();
        }
    }
}

/// In loom's models, waiting has no effect.
#[cfg(loom)]
pub fn pause() {}

/// Makes one check. In loom's models, more checks would only add states to explore.
#[cfg(loom)]
pub fn spin(_: Duration, mut is_ready: impl FnMut() -> bool) -> bool {
    is_ready()
}

/// When a wait with this time limit ends; `None` without a limit, or if the end is too late for an `Instant`.
pub fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// Sleeps until `is_ready` returns true. `damage` checks the memory for a value that the protocol does not allow, and
/// describes this value.
///
/// # Errors
/// [`Error::Timeout`], [`Error::Closed`], [`Error::Died`] or [`Error::Damaged`].
pub fn sleep<M: Memory>(
    memory: &M,
    side: Side,
    sleeper: Sleeper,
    timeout: Option<Duration>,
    damage: impl Fn() -> Option<&'static str>,
    mut is_ready: impl FnMut() -> bool,
) -> Result<(), Error> {
    let deadline = deadline(timeout);
    let mut checked: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let problem = if memory.peer_closed(side) {
            Some(Error::Closed)
        } else if checked.is_none_or(|checked| now - checked >= memory.check_interval()) {
            checked = Some(now);
            let died = || (!memory.peer_lives(side)).then_some(Error::Died);
            memory.damage().or_else(&damage).map(Error::Damaged).or_else(died)
        } else {
            None
        };
        // A message that was published before the other side ended still counts.
        if is_ready() {
            return Ok(());
        }
        if let Some(problem) = problem {
            return Err(problem);
        }
        let rest = match deadline {
            Some(deadline) if deadline <= now => return Err(Error::Timeout),
            Some(deadline) => deadline - now,
            None => Duration::MAX,
        };
        let word = memory.sleeps(sleeper);
        word.store(1, Ordering::Relaxed);
        // SYNC POINT (sleep): pairs with the `light_fence` that follows each publication.
        memory.barrier();
        if !is_ready() && !memory.peer_closed(side) {
            memory.sleep(sleeper, rest.min(memory.check_interval()));
        }
        word.store(0, Ordering::Relaxed);
    }
}

/// Wakes this reader or writer if its word says that it sleeps.
#[inline]
pub fn wake<M: Memory>(memory: &M, sleeper: Sleeper) {
    let word = memory.sleeps(sleeper);
    if word.load(Ordering::Relaxed) != 0 {
        word.store(0, Ordering::Relaxed);
        memory.wake(sleeper);
    }
}
