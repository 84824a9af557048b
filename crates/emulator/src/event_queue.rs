//! The bounded queue of a watch's events. Adding an event never blocks.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{WatchEnd, WatchEvent};

/// The largest number of events in the queue. With one event per frame, this is enough for about 17 seconds.
const KEPT: usize = 1024;
/// The largest total size of the changes in the queue, in bytes. A single event may have more.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// The queue of a watch: events that its reader has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    queue: Mutex<Queue>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<WatchEvent>,
    bytes: usize,
    /// How many events were dropped since the reader last took one.
    missed: u64,
    /// Why there will be no more events; `None` while there may be more.
    end: Option<WatchEnd>,
}

impl EventQueue {
    pub fn new() -> Arc<EventQueue> {
        Arc::default()
    }

    /// Adds an event. If the queue is full, the oldest events are dropped, and the oldest event that is left also reports
    /// their changes.
    pub fn put(&self, event: WatchEvent) {
        {
            let queue = &mut *self.queue.lock();
            queue.bytes += event.bytes();
            queue.events.push_back(event);
            while queue.events.len() > KEPT || queue.bytes > KEPT_BYTES && queue.events.len() > 1 {
                if let Some(dropped) = queue.events.pop_front() {
                    queue.bytes -= dropped.bytes();
                    queue.missed += 1;
                    // Otherwise, the reader would keep the old bytes of a range that does not change again.
                    if let Some(next) = queue.events.front_mut() {
                        queue.bytes -= next.bytes();
                        next.add_earlier(dropped.changes);
                        queue.bytes += next.bytes();
                    }
                }
            }
        }
        self.filled.notify_one();
    }

    /// Marks the end: there will be no more events. If the end was already marked, the first reason is kept.
    pub fn close(&self, end: WatchEnd) {
        self.queue.lock().end.get_or_insert(end);
        self.filled.notify_one();
    }

    /// Why there will be no more events; `None` while there may be more.
    pub fn end(&self) -> Option<WatchEnd> {
        self.queue.lock().end
    }

    /// Waits for the next event. Returns `None` after the last one. Only one caller may wait at a time.
    pub async fn next(&self) -> Option<WatchEvent> {
        loop {
            {
                let queue = &mut *self.queue.lock();
                if let Some(mut event) = queue.events.pop_front() {
                    queue.bytes -= event.bytes();
                    event.missed = std::mem::take(&mut queue.missed);
                    return Some(event);
                }
                if queue.end.is_some() {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Change;

    fn event(frame: u32, bytes: usize) -> WatchEvent {
        let change = Change { range: 0, old: vec![0; bytes], new: vec![1; bytes] };
        WatchEvent { frame, ticks: frame.into(), changes: vec![change], ..WatchEvent::default() }
    }

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest_events_and_learns_how_many() {
        let queue = EventQueue::new();
        for frame in 0..KEPT as u32 + 5 {
            queue.put(event(frame, 1));
        }
        let first = queue.next().await.expect("an event");
        assert_eq!((first.frame, first.missed), (5, 5));
        let second = queue.next().await.expect("an event");
        assert_eq!((second.frame, second.missed), (6, 0));
    }

    #[tokio::test]
    async fn the_changes_of_dropped_events_are_in_the_next_event() {
        let queue = EventQueue::new();
        let change = |range, old, new| Change { range, old: vec![old], new: vec![new] };
        let event = |ticks, changes: &[Change]| WatchEvent {
            ticks,
            changes: changes.to_vec(),
            ..WatchEvent::default()
        };
        queue.put(event(1, &[change(0, 1, 2), change(2, 5, 6)]));
        queue.put(event(2, &[change(1, 3, 4)]));
        for ticks in 3..KEPT as u64 + 3 {
            queue.put(event(ticks, &[change(0, 2, 9)]));
        }
        let first = queue.next().await.expect("an event");
        assert_eq!((first.ticks, first.missed), (3, 2));
        assert_eq!(first.changes, [change(0, 1, 9), change(1, 3, 4), change(2, 5, 6)]);
        assert_eq!(queue.next().await.expect("an event").changes, [change(0, 2, 9)]);
    }

    #[tokio::test]
    async fn the_total_size_of_the_events_is_limited() {
        let queue = EventQueue::new();
        for frame in 0..4 {
            queue.put(event(frame, KEPT_BYTES / 4));
        }
        let left = queue.next().await.expect("an event");
        assert_eq!((left.frame, left.missed), (2, 2));
    }

    #[tokio::test]
    async fn the_end_comes_after_the_last_event() {
        let queue = EventQueue::new();
        queue.put(event(1, 1));
        queue.close(WatchEnd::OtherGame);
        queue.close(WatchEnd::EmulatorGone);
        assert!(queue.next().await.is_some());
        assert_eq!(queue.next().await, None);
        assert_eq!(queue.next().await, None);
        assert_eq!(queue.end(), Some(WatchEnd::OtherGame), "the first reason stays");
    }
}
