//! The task that fills a feed: it receives the emulator's events, computes the values, and adds events to the feed.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use framewire_emulator::{Event, EventKind, Watch, WatchEnd, WatchEvent};
use serde_json::{Map, Value as Json, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::definition::{Definition, Subjects, WatchedMemory};
use super::feed::Feed;
use super::registry::Feeds;
use crate::failure::STOPPING;
use crate::operations::emulators::Served;
use crate::problem::Problem;
use crate::transport::{Stopping, or_never};

/// How long a feed continues without a reader, so that readers can come back.
pub(crate) const UNREAD: Duration = Duration::from_secs(60);
/// How long a feed that a client created with `POST /v1/watches` continues without a reader.
pub(crate) const UNREAD_KEPT: Duration = Duration::from_secs(600);

/// The reason why a feed ended: the names in its definition have another meaning now.
pub(crate) const OTHER_NAMES: &str =
    "a symbol file was read again, and names of the watch have another meaning there; watch again";

pub(crate) struct Collector {
    pub(crate) feed: Arc<Feed>,
    pub(crate) names: WatchedNames,
    pub(crate) memory: WatchedMemory,
    pub(crate) values: Vec<Json>,
    /// `None` if the values depend on neither memory nor the frame counter.
    pub(crate) watch: Option<Watch>,
    /// `None` if the feed reports only changes of memory.
    pub(crate) events: Option<Receiver<Event>>,
    /// Dropped last, after `watch`. The receivers learn from this that the emulator's watch has ended.
    pub(crate) over: watch::Sender<()>,
}

impl Collector {
    /// Runs until the feed is deleted or has had no reader for the time `unread_limit`, until its emulator or its game
    /// is gone, until its names have another meaning, or until the server stops.
    pub(crate) async fn run(mut self, feeds: Arc<Feeds>, stopping: Stopping, unread_limit: Option<Duration>) {
        let feed = self.feed.clone();
        let mut deleted = feed.updates();
        let reason = loop {
            tokio::select! {
                reason = self.collect() => break reason,
                // `remove_unread` checks again, because a reader may have come in the meantime.
                () = or_never(unread_limit.map(|limit| unread(&feed, limit))) => {
                    if feeds.remove_unread(&feed, &mut self.watch) {
                        break "nobody read it for a while";
                    }
                }
                // If the feed has ended for another reason, `Feed::end` keeps that reason.
                _ = deleted.wait_for(Option::is_some) => break "it was deleted",
                () = stopping.wait() => break STOPPING,
            }
        };
        feeds.remove(&feed.id);
        feed.end(reason);
    }

    /// Takes events until no more will come, and returns the reason why.
    async fn collect(&mut self) -> &'static str {
        loop {
            tokio::select! {
                biased;
                () = self.names.wait_for_change(&self.feed.definition) => return OTHER_NAMES,
                event = or_never(self.watch.as_mut().map(Watch::next)) => match event {
                    Some(event) => {
                        self.changed(event);
                        // Lets other tasks run, in case the next event is there already.
                        yield_now().await;
                    }
                    None => return self.end(),
                },
                event = or_never(self.events.as_mut().map(Receiver::recv)) => match event {
                    Ok(event) => self.happened(event),
                    Err(RecvError::Lagged(count)) => {
                        let frame = self.feed.values().0;
                        self.feed.publish("missed", self.missed(count.into(), frame), frame, Vec::new());
                    }
                    // The feed watches no memory either, so it ends.
                    Err(RecvError::Closed) if self.watch.is_none() => return "the emulator is gone",
                    Err(RecvError::Closed) => self.events = None,
                },
            }
        }
    }

    /// The reason why there are no more changes.
    fn end(&self) -> &'static str {
        match self.watch.as_ref().and_then(Watch::end) {
            Some(WatchEnd::OtherGame) => {
                "another game was loaded, where the same addresses mean something else; watch again for that game"
            }
            _ => "the emulator is gone",
        }
    }

    /// Applies an event of the watch. Publishes an event with the changed values, if any value has changed or if
    /// events may be missing.
    fn changed(&mut self, event: WatchEvent) {
        let WatchEvent { frame, ticks, changes, gap, missed, .. } = event;
        self.memory.apply(changes);
        let values = self.memory.values(frame, self.feed.definition.encoding);
        let before = std::mem::replace(&mut self.values, values);
        let mut changes = Map::new();
        let mut changed = Vec::new();
        for (index, (old, new)) in before.into_iter().zip(&self.values).enumerate() {
            if old != *new {
                changes.insert(self.feed.definition.watch[index].clone(), json!({"old": old, "new": new}));
                changed.push((index, new.clone()));
            }
        }
        if changed.is_empty() && !gap && missed == 0 {
            return;
        }
        let mut data = json!({"frame": frame, "tick": ticks, "changes": changes});
        if gap || missed > 0 {
            data["gap"] = true.into();
        }
        self.feed.publish("change", data, frame, changed);
    }

    /// The event that readers get in place of lost events. It has the number of lost events and the current values.
    fn missed(&self, count: Json, frame: u32) -> Json {
        let mut data = json!({"missed": count, "frame": frame});
        if !self.feed.definition.watch.is_empty() {
            data["values"] = self.feed.values().1;
        }
        data
    }

    /// Publishes an event of the emulator.
    fn happened(&self, event: Event) {
        let Event { frame, kind } = event;
        let (name, mut data) = match kind {
            EventKind::Reset => ("reset", json!({})),
            EventKind::State => ("state", json!({})),
            EventKind::Game { title, code, checksum } => {
                let checksum = checksum.map(|checksum| format!("{checksum:08x}"));
                ("game", json!({"title": title, "code": code, "checksum": checksum}))
            }
            EventKind::Connected => ("connected", json!({})),
            EventKind::Missed { count } => ("missed", self.missed(count.into(), frame)),
            EventKind::Disconnected { problem } => ("disconnected", json!({"problem": problem})),
            EventKind::Stalled => ("stalled", json!({})),
            EventKind::Running => ("running", json!({})),
            EventKind::Paused => ("paused", json!({})),
            EventKind::TimelineOver { id, cancelled } => ("input", json!({"id": id, "cancelled": cancelled})),
            EventKind::Save { problem } => ("save", json!({"problem": problem})),
            EventKind::Rumble { on } => ("rumble", json!({"on": on})),
            EventKind::LockstepOver => ("lockstep", json!({})),
        };
        data["frame"] = frame.into();
        self.feed.publish(name, data, frame, Vec::new());
    }
}

/// The meaning of the names in a feed's definition.
pub(crate) struct WatchedNames {
    served: Served,
    /// The checksum of the game to which the names belong. After another game was loaded, the watch itself ends.
    checksum: Option<u32>,
    /// The subjects that the names led to.
    pub(crate) subjects: Arc<Subjects>,
    /// Is notified after symbol files were read again.
    read: watch::Receiver<()>,
}

impl WatchedNames {
    /// The names as they are now, with the subjects of this definition.
    pub(crate) async fn compile(served: &Served, definition: &Definition) -> Result<WatchedNames, Problem> {
        // The receiver is created first, so that it notices each later change.
        let (read, checksum) = (served.symbols_read(), served.emulator.checksum());
        let symbols = served.symbols().await;
        let subjects = Arc::new(definition.compile(&symbols)?);
        Ok(WatchedNames { served: served.clone(), checksum, subjects, read })
    }

    /// Whether another game was loaded, or the names have another meaning now.
    pub(crate) fn are_outdated(&self, definition: &Definition) -> bool {
        !self.are_of_current_game() || self.have_changed(definition)
    }

    fn are_of_current_game(&self) -> bool {
        self.served.emulator.checksum() == self.checksum
    }

    /// Whether the symbols that were read last give the names another meaning.
    fn have_changed(&self, definition: &Definition) -> bool {
        let Some(symbols) = self.served.known_symbols() else { return false };
        !definition.compile(&symbols).is_ok_and(|subjects| subjects == *self.subjects)
    }

    /// Waits until the names have another meaning in the same game.
    async fn wait_for_change(&mut self, definition: &Definition) {
        while self.read.changed().await.is_ok() {
            if self.are_of_current_game() && self.have_changed(definition) {
                return;
            }
        }
        pending().await
    }
}

/// Waits until the feed has had no reader for the time `unread_limit`. If the last reader said that it will not come
/// back, the wait ends when that reader leaves.
async fn unread(feed: &Feed, unread_limit: Duration) {
    let mut readers = feed.readers();
    // If a reader comes back within `unread_limit`, the wait begins again.
    while let Ok(left) = readers.wait_for(|readers| readers.count == 0).await.map(|left| *left) {
        let back = readers.wait_for(|readers| readers.count > 0);
        if left.given_up || timeout(unread_limit, back).await.is_err() {
            return;
        }
    }
}
