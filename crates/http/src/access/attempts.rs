//! Counts wrong tokens by address. After a few, a caller must wait before the next, and the log gets no more lines. The length
//! of a token makes guessing hopeless.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Wrong tokens that an address may show at once.
const BURST: u32 = 10;
/// Time after which it may show one more.
const REFILL: Duration = Duration::from_secs(6);
/// Addresses that are remembered at once.
const ADDRESSES: usize = 4096;

/// Recent wrong tokens, by address.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// For each address the time at which all its wrong tokens will be forgiven.
    forgiven: Mutex<HashMap<IpAddr, Instant>>,
}

impl Attempts {
    /// How long a caller from this address must wait before the next wrong token, if too many came.
    pub(crate) fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let forgiven = *self.forgiven.lock().get(&address)?;
        let debt = forgiven.saturating_duration_since(now);
        debt.checked_sub(REFILL * (BURST - 1)).filter(|wait| !wait.is_zero())
    }

    /// Notes a wrong token.
    pub(crate) fn failed(&self, address: IpAddr, now: Instant) {
        let mut forgiven = self.forgiven.lock();
        if forgiven.len() >= ADDRESSES && !forgiven.contains_key(&address) {
            forgiven.retain(|_, forgiven| *forgiven > now);
        }
        // An attacker with more addresses than this still has to guess a random word of 32 characters.
        if forgiven.len() >= ADDRESSES && !forgiven.contains_key(&address) {
            return;
        }
        let debt = forgiven.entry(address).or_insert(now);
        *debt = (*debt).max(now) + REFILL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn the_eleventh_wrong_token_has_to_wait() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(attempts.wait(address(1), start), None);
            attempts.failed(address(1), start);
        }
        assert_eq!(attempts.wait(address(1), start), Some(REFILL));
        assert_eq!(attempts.wait(address(2), start), None, "others do not wait with it");
        assert_eq!(attempts.wait(address(1), start + REFILL), None);
        attempts.failed(address(1), start + REFILL);
        assert_eq!(attempts.wait(address(1), start + REFILL), Some(REFILL));
        assert_eq!(attempts.wait(address(1), start + REFILL * 100), None);
    }

    #[test]
    fn the_memory_is_bounded_and_forgets_what_is_forgiven() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for number in 0..2 * ADDRESSES as u32 {
            attempts.failed(IpAddr::V4(number.into()), start);
        }
        assert_eq!(attempts.forgiven.lock().len(), ADDRESSES);
        attempts.failed(address(1), start + REFILL * 2);
        assert_eq!(attempts.forgiven.lock().len(), 1);
    }
}
