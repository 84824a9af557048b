//! Finds out how much of what was sent over a WebSocket has been read.
//!
//! After each message the server sends a ping. Every WebSocket library answers a ping by itself, as soon as it has read what
//! came before. So the server knows what was read, whatever lies in buffers on the way, and notices a slow reader early.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How much longer than the best round trip a ping may be under way before nothing more is sent.
const SLACK: Duration = Duration::from_millis(100);
/// The same before any ping has come back.
const FIRST: Duration = Duration::from_secs(1);
/// Most pings under way.
const MOST: usize = 128;
/// The best round trip is that of the last one to two of these: the way may change.
const WINDOW: Duration = Duration::from_secs(10);

/// The pings under way.
#[derive(Debug)]
pub(crate) struct PingWindow {
    /// Number of the next ping.
    next: u64,
    /// Those that were not answered, with when they were sent.
    out: VecDeque<(u64, Instant)>,
    /// The best round trip of this window and of the one before.
    best: [Option<Duration>; 2],
    /// When this window began.
    window: Instant,
}

impl PingWindow {
    pub(crate) fn new(now: Instant) -> PingWindow {
        PingWindow { next: 0, out: VecDeque::new(), best: [None; 2], window: now }
    }

    /// Whether more may be sent at `now`.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        let best = self.best.iter().flatten().min();
        let patience = best.map_or(FIRST, |best| *best + SLACK);
        self.out.len() < MOST && self.silence(now) <= patience
    }

    /// For how long the oldest ping has waited for its answer.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        self.out.front().map_or(Duration::ZERO, |(_, sent)| now.saturating_duration_since(*sent))
    }

    /// The payload of a ping that is sent at `now`.
    pub(crate) fn ping(&mut self, now: Instant) -> [u8; 8] {
        let number = self.next;
        self.next += 1;
        self.out.push_back((number, now));
        number.to_le_bytes()
    }

    /// A ping came back. Pings before it need no answers of their own (RFC 6455, 5.5.3). Data that was never sent is
    /// ignored.
    pub(crate) fn answered(&mut self, payload: &[u8], now: Instant) {
        let Ok(number) = payload.try_into().map(u64::from_le_bytes) else { return };
        if number >= self.next {
            return;
        }
        while let Some((first, sent)) = self.out.front().copied()
            && first <= number
        {
            self.out.pop_front();
            self.round_trip(now.saturating_duration_since(sent), now);
        }
    }

    fn round_trip(&mut self, taken: Duration, now: Instant) {
        if now.saturating_duration_since(self.window) > WINDOW {
            self.best = [None, self.best[0]];
            self.window = now;
        }
        let best = &mut self.best[0];
        *best = Some(best.map_or(taken, |best| best.min(taken)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_reader_who_stops_is_sent_no_more_until_it_reads_again() {
        let start = Instant::now();
        let mut pings = PingWindow::new(start);
        let ping = pings.ping(start);
        pings.answered(&ping, start + 3 * MS);

        let stopped = start + 20 * MS;
        let ping = pings.ping(stopped);
        assert!(pings.is_open(stopped + 100 * MS));
        assert!(!pings.is_open(stopped + 104 * MS));
        assert_eq!(pings.silence(stopped + 5000 * MS), 5000 * MS);
        pings.answered(&ping, stopped + 5000 * MS);
        assert!(pings.is_open(stopped + 5000 * MS));
        assert_eq!(pings.silence(stopped + 5000 * MS), Duration::ZERO);
    }

    #[test]
    fn a_long_way_is_no_slow_reader() {
        let start = Instant::now();
        let mut pings = PingWindow::new(start);
        let mut sent: VecDeque<(Instant, [u8; 8])> = VecDeque::new();
        for frame in 0..600 {
            let now = start + frame * 17 * MS;
            while let Some((_, ping)) = sent.front().filter(|(at, _)| *at + 300 * MS <= now) {
                pings.answered(ping, now);
                sent.pop_front();
            }
            assert!(pings.is_open(now), "frame {frame}");
            sent.push_back((now, pings.ping(now)));
        }
    }

    #[test]
    fn one_answer_stands_for_those_before_and_inventions_for_none() {
        let start = Instant::now();
        let mut pings = PingWindow::new(start);
        pings.ping(start);
        let second = pings.ping(start);
        pings.answered(b"nonsense", start + MS);
        pings.answered(b"", start + MS);
        assert_eq!(pings.silence(start + 9 * MS), 9 * MS);
        pings.answered(&second, start + MS);
        assert_eq!(pings.silence(start + 9 * MS), Duration::ZERO);
    }
}
