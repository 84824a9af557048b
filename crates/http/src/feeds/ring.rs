//! The last events of a feed. Each reader goes through them at its own pace: it remembers only the number of the last
//! event that it got. So a slow reader delays no other reader and takes no memory here. It learns how many events it
//! missed.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value as Json;

/// The memory of an event in addition to its text and values, in bytes.
const OVERHEAD: usize = 96;

/// An event, encoded once for all readers.
#[derive(Debug, Clone)]
pub(crate) struct FeedEvent {
    /// Its name, such as `change`.
    pub(crate) name: &'static str,
    /// A JSON object.
    pub(crate) data: Arc<str>,
}

/// The values of the subjects (the expressions that a watch observes) at one time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Values {
    /// The emulator's frame counter at that time.
    pub(crate) frame: u32,
    /// The values in the order of the subjects.
    pub(crate) values: Vec<Json>,
}

/// How an event changes the values.
#[derive(Debug)]
struct Update {
    frame: u32,
    values: Vec<(usize, Json)>,
}

/// The next step of a reader.
#[derive(Debug)]
pub(crate) enum Next {
    /// The event with this number.
    Event(u64, FeedEvent),
    /// This many events are gone. `number` is the number of the last lost event, and `then` has the values of the
    /// subjects after it.
    Missed { count: u64, number: u64, then: Values },
    /// Nothing: the reader has got all events.
    Nothing,
}

/// The last events, limited in number and bytes.
#[derive(Debug)]
pub(crate) struct Ring {
    entries: VecDeque<(FeedEvent, Update)>,
    /// Number of the latest event. The first is 1.
    last: u64,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
    /// The values before the oldest event that is kept.
    then: Values,
    /// The values after the latest event.
    now: Values,
}

impl Ring {
    /// Keeps at most `max_entries` events, with about `max_bytes` bytes in total, but always at least one event. `base`
    /// has the values before the first event.
    pub(crate) fn new(max_entries: usize, max_bytes: usize, base: Values) -> Ring {
        let (then, now) = (base.clone(), base);
        Ring { entries: VecDeque::new(), last: 0, bytes: 0, max_entries, max_bytes, then, now }
    }

    /// Adds an event, and sets the subjects with the indices in `values` to the new values.
    pub(crate) fn push(&mut self, entry: FeedEvent, frame: u32, values: Vec<(usize, Json)>) {
        let update = Update { frame, values };
        update.apply(&mut self.now);
        self.bytes += cost(&entry, &update);
        self.entries.push_back((entry, update));
        self.last += 1;
        while self.entries.len() > 1 && (self.entries.len() > self.max_entries || self.bytes > self.max_bytes)
        {
            let Some((entry, update)) = self.entries.pop_front() else { break };
            self.bytes -= cost(&entry, &update);
            update.apply(&mut self.then);
        }
    }

    /// Number of the latest event; 0 before the first.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The number of events that are kept.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn now(&self) -> &Values {
        &self.now
    }

    /// The next step of a reader that last got the event number `seen`.
    pub(crate) fn next(&self, seen: u64) -> Next {
        // Number of the last event that is gone.
        let gone = self.last - self.entries.len() as u64;
        if seen < gone {
            return Next::Missed { count: gone - seen, number: gone, then: self.then.clone() };
        }
        match self.entries.get((seen - gone) as usize) {
            Some((entry, _)) => Next::Event(seen + 1, entry.clone()),
            None => Next::Nothing,
        }
    }
}

impl Update {
    fn apply(&self, snapshot: &mut Values) {
        snapshot.frame = self.frame;
        for (index, value) in &self.values {
            if let Some(place) = snapshot.values.get_mut(*index) {
                place.clone_from(value);
            }
        }
    }
}

fn cost(entry: &FeedEvent, update: &Update) -> usize {
    let of_value = |value: &Json| size_of::<(usize, Json)>() + value.as_str().map_or(0, str::len);
    OVERHEAD + entry.data.len() + update.values.iter().map(|(_, value)| of_value(value)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(max_entries: usize, max_bytes: usize) -> Ring {
        Ring::new(max_entries, max_bytes, Values { frame: 0, values: vec![0.into(), 0.into()] })
    }

    /// Adds an event of this frame, which sets the first value to the frame's number.
    fn push(ring: &mut Ring, frame: u32) {
        let entry = FeedEvent { name: "change", data: frame.to_string().into() };
        ring.push(entry, frame, vec![(0, frame.into())]);
    }

    #[test]
    fn a_reader_sees_each_event_once_and_in_order() {
        let mut ring = ring(8, 1 << 20);
        assert!(matches!(ring.next(0), Next::Nothing));
        (1..=5).for_each(|frame| push(&mut ring, frame));
        for seen in 0..5 {
            let Next::Event(number, entry) = ring.next(seen) else { panic!("no event after {seen}") };
            assert_eq!((number, &*entry.data), (seen + 1, (seen + 1).to_string().as_str()));
        }
        assert!(matches!(ring.next(5), Next::Nothing));
    }

    #[test]
    fn a_late_reader_learns_how_much_is_gone_and_the_values_then() {
        let mut ring = ring(3, 1 << 20);
        ring.push(FeedEvent { name: "change", data: "second".into() }, 1, vec![(1, 7.into())]);
        (2..=10).for_each(|frame| push(&mut ring, frame));
        let Next::Missed { count, number, then } = ring.next(2) else { panic!("nothing was missed") };
        assert_eq!((count, number), (5, 7));
        assert_eq!(then, Values { frame: 7, values: vec![7.into(), 7.into()] });
        assert!(matches!(ring.next(number), Next::Event(8, _)));
        assert_eq!(ring.now(), &Values { frame: 10, values: vec![10.into(), 7.into()] });
        assert_eq!((ring.last(), ring.len()), (10, 3));
    }

    #[test]
    fn bytes_are_limited_too_and_the_latest_event_always_stays() {
        let mut ring = ring(1000, 4096);
        let large = |frame| FeedEvent { name: "change", data: format!("{frame:01000}").into() };
        (1..=100).for_each(|frame| ring.push(large(frame), frame, vec![]));
        assert_eq!(ring.len(), 3);
        ring.push(FeedEvent { name: "change", data: "x".repeat(10_000).into() }, 101, vec![]);
        assert_eq!((ring.len(), ring.last()), (1, 101));
        push(&mut ring, 102);
        assert_eq!(ring.len(), 1);
        assert!(ring.bytes < 4096);
    }
}
