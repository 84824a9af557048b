//! Waiting for the other side: spin briefly, then sleep in the kernel.
//!
//! Whoever sleeps says so in a word, passes a barrier that reaches every process of the channel, and looks once more. The
//! other side publishes first and reads that word afterwards. So one of the two sees the other, and the side that does not
//! sleep needs no barrier of its own.

use std::time::{Duration, Instant};

use crate::Error;
use crate::memory::{Memory, Side, Sleeper};
use crate::sync::Ordering;

/// Looks between two looks at the clock.
#[cfg(not(loom))]
const ROUND: u32 = 16;

/// Takes the time to wait between two looks, about 50 ns as in LuaJIT. Looking more often would be slower: it takes the
/// cache line away from the other side while that is still writing to it. With 35 ns Rust talks faster to Rust, and to
/// LuaJIT a quarter slower.
#[cfg(not(loom))]
#[inline(always)]
pub fn pause() {
    use std::hint::spin_loop;
    use std::sync::OnceLock;

    const TARGET_NS: u128 = 48;
    const SAMPLE: u32 = 1000;
    static COUNT: OnceLock<u32> = OnceLock::new();
    // What one hint takes is between 3 and 60 ns, by processor.
    let count = *COUNT.get_or_init(|| {
        let start = Instant::now();
        (0..SAMPLE).for_each(|_| spin_loop());
        let taken = start.elapsed().as_nanos().max(1);
        ((TARGET_NS * u128::from(SAMPLE) + taken / 2) / taken).clamp(1, 50) as u32
    });
    (0..count).for_each(|_| spin_loop());
}

/// Looks again and again for a while; returns whether `is_ready` said so.
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

/// In a model, time adds nothing.
#[cfg(loom)]
pub fn pause() {}

/// One look: in a model, spinning adds nothing but states.
#[cfg(loom)]
pub fn spin(_: Duration, mut is_ready: impl FnMut() -> bool) -> bool {
    is_ready()
}

/// Spins, then sleeps.
pub fn wait<M: Memory>(
    memory: &M,
    side: Side,
    sleeper: Sleeper,
    spin_time: Duration,
    timeout: Option<Duration>,
    damage: impl Fn() -> Option<&'static str>,
    mut is_ready: impl FnMut() -> bool,
) -> Result<(), Error> {
    if spin(spin_time.min(timeout.unwrap_or(spin_time)), &mut is_ready) {
        return Ok(());
    }
    sleep(memory, side, sleeper, timeout.map(|timeout| timeout.saturating_sub(spin_time)), damage, is_ready)
}

/// Sleeps until something is ready. `damage` says what the other side cannot have written, if there is any of it.
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
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut looked: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let problem = if memory.peer_closed(side) {
            Some(Error::Closed)
        } else if looked.is_none_or(|looked| now - looked >= memory.look()) {
            looked = Some(now);
            let died = || (!memory.peer_lives(side)).then_some(Error::Died);
            memory.damage().or_else(&damage).map(Error::Damaged).or_else(died)
        } else {
            None
        };
        // What was published before the end counts.
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
        // SYNC POINT (sleep): pairs with the light fences after each publishing.
        memory.barrier();
        if !is_ready() && !memory.peer_closed(side) {
            memory.sleep(sleeper, rest.min(memory.look()));
        }
        word.store(0, Ordering::Relaxed);
    }
}

/// Wakes the side that has announced that it sleeps there.
#[inline]
pub fn wake<M: Memory>(memory: &M, sleeper: Sleeper) {
    let word = memory.sleeps(sleeper);
    if word.load(Ordering::Relaxed) != 0 {
        word.store(0, Ordering::Relaxed);
        memory.wake(sleeper);
    }
}
