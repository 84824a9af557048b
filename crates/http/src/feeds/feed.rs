//! A feed: the events of one watch, kept for a while and read by any number of readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value as Json, json};
use tokio::sync::watch;

use super::definition::Definition;
use super::ring::{FeedEvent, Next, Ring, Values};
use crate::reading::fields::Object;

/// How many bytes of events a feed keeps at most, even if its definition allows more events.
const MAX_BYTES: usize = 1024 * 1024;

pub(crate) struct Feed {
    /// Its id for clients.
    pub(crate) id: String,
    /// What is watched.
    pub(crate) definition: Definition,
    ring: Mutex<Ring>,
    /// Wakes readers when there is something new to read. `Some` means that the feed has ended, and contains the
    /// reason.
    updates: watch::Sender<Option<&'static str>>,
    readers: watch::Sender<Readers>,
    /// How many events the readers of this feed did not take in time.
    missed: AtomicU64,
    /// The same count for all feeds together.
    all_missed: Counter,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readers {
    pub(crate) count: usize,
    /// Whether the reader that left last will not return.
    pub(crate) given_up: bool,
}

/// An event as a reader gets it.
#[derive(Debug, Clone)]
pub(crate) struct ReaderEvent {
    /// Its id. A reader that sends this id when it reconnects continues after this event.
    pub(crate) id: String,
    pub(crate) name: &'static str,
    /// A JSON object.
    pub(crate) data: Arc<str>,
}

/// A reader of a feed, and its position there.
pub(crate) struct Reader {
    feed: Arc<Feed>,
    /// The number of the last event that the reader got.
    seen: u64,
    /// The event that the reader gets first.
    opening: Option<ReaderEvent>,
    updates: watch::Receiver<Option<&'static str>>,
    /// Whether the reader has got the event `end`.
    over: bool,
    /// Whether the reader will not come back: the value for [`Readers::given_up`].
    gives_up: bool,
}

impl Feed {
    pub(crate) fn new(id: String, definition: Definition, base: Values, all_missed: Counter) -> Feed {
        let ring = Mutex::new(Ring::new(definition.buffer, MAX_BYTES, base));
        let (updates, readers) = (watch::Sender::new(None), watch::Sender::default());
        Feed { id, definition, ring, updates, readers, missed: AtomicU64::new(0), all_missed }
    }

    /// Adds an event for all readers, without waiting for any of them. `values` has the new values of the
    /// expressions that changed, each with the expression's index in the definition's `watch`.
    pub(crate) fn publish(&self, name: &'static str, data: Json, frame: u32, values: Vec<(usize, Json)>) {
        let entry = FeedEvent { name, data: data.to_string().into() };
        self.ring.lock().push(entry, frame, values);
        self.updates.send_modify(|_| {});
    }

    /// Ends the feed. Readers get the remaining events and then the reason.
    pub(crate) fn end(&self, reason: &'static str) {
        self.updates.send_modify(|end| *end = end.or(Some(reason)));
    }

    /// Returns a receiver that is notified of new events. Its value becomes `Some` when the feed ends.
    pub(crate) fn updates(&self) -> watch::Receiver<Option<&'static str>> {
        self.updates.subscribe()
    }

    /// Returns a receiver that is notified when a reader comes or leaves.
    pub(crate) fn readers(&self) -> watch::Receiver<Readers> {
        self.readers.subscribe()
    }

    /// The frame of the latest event, and an object with the value of each expression after this event.
    pub(crate) fn values(&self) -> (u32, Json) {
        let ring = self.ring.lock();
        (ring.now().frame, self.named(ring.now()))
    }

    /// How many events are kept, how many there have been, and how many were not taken in time.
    pub(crate) fn counts(&self) -> (usize, u64, u64) {
        let ring = self.ring.lock();
        (ring.len(), ring.last(), self.missed.load(Relaxed))
    }

    /// Adds a reader. It begins after the event `last_id`, which the client got last. If this is not an event of the
    /// feed, it begins with the event `missed`. Without `last_id`, it begins with the current values, if the feed has
    /// any.
    pub(crate) fn read(self: &Arc<Feed>, last_id: Option<&str>) -> Reader {
        let updates = self.updates.subscribe();
        self.readers.send_modify(|readers| readers.count += 1);
        let ring = self.ring.lock();
        let resumed = last_id.and_then(|id| self.number(id)).filter(|number| *number <= ring.last());
        let opening = match (resumed, last_id) {
            (Some(_), _) => None,
            // No event of this feed has this id. It may come from an earlier feed that has ended, for example. So the
            // number of missed events is unknown.
            (None, Some(_)) => Some(("missed", self.missed_text(Json::Null, ring.now()))),
            (None, None) if self.definition.watch.is_empty() => None,
            (None, None) => Some(("values", self.values_text(ring.now()))),
        };
        let seen = resumed.unwrap_or(ring.last());
        let opening =
            opening.map(|(name, data)| ReaderEvent { id: self.event_id(seen), name, data: data.into() });
        drop(ring);
        Reader { feed: self.clone(), seen, opening, updates, over: false, gives_up: false }
    }

    fn event_id(&self, number: u64) -> String {
        format!("{}.{number}", self.id)
    }

    /// The number of an event of this feed.
    fn number(&self, event_id: &str) -> Option<u64> {
        let (feed, number) = event_id.rsplit_once('.')?;
        if feed == self.id { number.parse().ok() } else { None }
    }

    fn named(&self, snapshot: &Values) -> Json {
        let mut named = Object::new();
        named.extend(self.definition.watch.iter().cloned().zip(snapshot.values.iter().cloned()));
        Json::Object(named)
    }

    fn values_text(&self, snapshot: &Values) -> String {
        json!({"frame": snapshot.frame, "values": self.named(snapshot)}).to_string()
    }

    fn missed_text(&self, count: Json, then: &Values) -> String {
        let mut data = json!({"missed": count});
        if !self.definition.watch.is_empty() {
            data["frame"] = then.frame.into();
            data["values"] = self.named(then);
        }
        data.to_string()
    }
}

impl Reader {
    /// Waits for the next event. Returns `None` after the event that says why the feed ended.
    pub(crate) async fn next(&mut self) -> Option<ReaderEvent> {
        loop {
            if self.over {
                return None;
            }
            if let Some(opening) = self.opening.take() {
                return Some(opening);
            }
            // From here on, a new event wakes the reader.
            let end = *self.updates.borrow_and_update();
            if let Some(event) = self.take() {
                return Some(event);
            }
            if let Some(reason) = end {
                self.over = true;
                return Some(self.end(reason));
            }
            let _ = self.updates.changed().await;
        }
    }

    /// The last event of a reader, with the reason.
    pub(crate) fn end(&self, reason: &str) -> ReaderEvent {
        let data = json!({"detail": reason}).to_string().into();
        ReaderEvent { id: self.feed.event_id(self.seen), name: "end", data }
    }

    /// Removes the reader and notes that it will not come back.
    pub(crate) fn give_up(mut self) {
        self.gives_up = true;
    }

    pub(crate) fn feed_id(&self) -> &str {
        &self.feed.id
    }

    fn take(&mut self) -> Option<ReaderEvent> {
        let next = self.feed.ring.lock().next(self.seen);
        let (number, name, data) = match next {
            Next::Nothing => return None,
            Next::Event(number, entry) => (number, entry.name, entry.data),
            Next::Missed { count, number, then } => {
                self.feed.missed.fetch_add(count, Relaxed);
                self.feed.all_missed.inc_by(count);
                (number, "missed", self.feed.missed_text(count.into(), &then).into())
            }
        };
        self.seen = number;
        Some(ReaderEvent { id: self.feed.event_id(number), name, data })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.feed.readers.send_modify(|readers| {
            readers.count -= 1;
            readers.given_up = self.gives_up;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(buffer: usize) -> Arc<Feed> {
        let definition = Definition { watch: vec!["score".into()], buffer, ..Definition::default() };
        let base = Values { frame: 1, values: vec![10.into()] };
        Arc::new(Feed::new("w1".into(), definition, base, Counter::default()))
    }

    fn publish(feed: &Feed, value: u32) {
        feed.publish("change", json!({"new": value}), value, vec![(0, value.into())]);
    }

    async fn next(reader: &mut Reader) -> (String, String, Json) {
        let event = reader.next().await.expect("an event");
        (event.id, event.name.to_owned(), serde_json::from_str(&event.data).unwrap())
    }

    #[tokio::test]
    async fn a_reader_gets_the_values_first_and_then_the_changes() {
        let feed = feed(8);
        let mut reader = feed.read(None);
        publish(&feed, 11);
        let expected = json!({"frame": 1, "values": {"score": 10}});
        assert_eq!(next(&mut reader).await, ("w1.0".into(), "values".into(), expected));
        assert_eq!(next(&mut reader).await, ("w1.1".into(), "change".into(), json!({"new": 11})));
        feed.end("for a test");
        assert_eq!(next(&mut reader).await.1, "end");
        assert!(reader.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_returns_continues_where_it_was() {
        let feed = feed(8);
        (11..=13).for_each(|value| publish(&feed, value));
        let mut reader = feed.read(Some("w1.1"));
        assert_eq!(next(&mut reader).await.0, "w1.2");
        assert_eq!(next(&mut reader).await.0, "w1.3");
        assert_eq!(feed.readers().borrow().count, 1);
        drop(reader);
        assert_eq!(feed.readers().borrow().count, 0);
    }

    #[tokio::test]
    async fn a_reader_that_returns_too_late_learns_how_much_it_missed() {
        let feed = feed(2);
        (11..=15).for_each(|value| publish(&feed, value));
        let mut reader = feed.read(Some("w1.1"));
        let missed = json!({"missed": 2, "frame": 13, "values": {"score": 13}});
        assert_eq!(next(&mut reader).await, ("w1.3".into(), "missed".into(), missed));
        assert_eq!(next(&mut reader).await.0, "w1.4");
        assert_eq!(feed.counts(), (2, 5, 2));
        for unknown in ["w2.1", "w1.9", "w1.", "", "nonsense"] {
            let (_, name, data) = next(&mut feed.read(Some(unknown))).await;
            assert_eq!((name.as_str(), &data["missed"]), ("missed", &Json::Null), "{unknown}");
        }
    }

    /// Each event wakes every waiting reader. Each reader must get all events, or learn how many it missed.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_readers_account_for_every_event() {
        const EVENTS: u32 = 2000;
        let feed = feed(64);
        let readers: Vec<_> = (0..20)
            .map(|_| {
                let mut reader = feed.read(None);
                tokio::spawn(async move {
                    let mut seen = 0;
                    while let Some(event) = reader.next().await {
                        match event.name {
                            "change" => seen += 1,
                            "missed" => {
                                let data: Json = serde_json::from_str(&event.data).unwrap();
                                seen += data["missed"].as_u64().unwrap();
                            }
                            _ => {}
                        }
                    }
                    seen
                })
            })
            .collect();
        for value in 0..EVENTS {
            publish(&feed, value);
            tokio::task::yield_now().await;
        }
        feed.end("for a test");
        for reader in readers {
            assert_eq!(reader.await.unwrap(), u64::from(EVENTS));
        }
    }
}
