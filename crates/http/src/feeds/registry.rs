//! All feeds, found by id or by what they watch.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use axum::http::StatusCode;
use framewire_emulator::{Watch, WatchRequest};
use framewire_protocol::Value;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;

use super::collect::{Collector, OTHER_NAMES, UNREAD, UNREAD_KEPT, WatchedNames};
use super::definition::{Definition, Subjects, WatchedMemory};
use super::feed::{Feed, Reader};
use super::ring::Values;
use crate::access::caller::Owner;
use crate::failure::Failure;
use crate::operations::Operations;
use crate::operations::emulators::Served;
use crate::problem::Problem;

/// The reason why a feed without readers ended early.
const NO_ROOM: &str = "nobody read it, and others needed its place";

/// The divisor for the limit of read-only callers: all of them together can have at most `limit / READ_ONLY_PART` of
/// the feeds that `POST /v1/watches` creates.
const READ_ONLY_PART: usize = 4;

pub(crate) struct Feeds {
    operations: Arc<Operations>,
    /// Counts events that readers did not take in time.
    events_missed: Counter,
    /// The largest number of feeds at the same time.
    limit: usize,
    feeds: Mutex<Vec<Listed>>,
    /// A part of the ids, which distinguishes them from ids of other runs of the server.
    run: String,
    ids: AtomicU64,
}

/// A feed in the registry.
#[derive(Clone)]
pub(crate) struct Listed {
    pub(crate) feed: Arc<Feed>,
    /// Name of its emulator.
    pub(crate) emulator: String,
    /// The caller that created it with `POST /v1/watches`; `None` for a feed that all readers with the same definition
    /// share.
    pub(crate) owner: Option<Owner>,
    /// What its definition was compiled to.
    subjects: Arc<Subjects>,
    /// Closes when the feed's watch is over.
    over: watch::Receiver<()>,
}

impl Listed {
    /// Whether the feed has no readers, and is kept only for readers that may come back. A feed with an owner and the
    /// feed of `GET /v1/events` are never spare.
    fn is_spare(&self) -> bool {
        self.owner.is_none()
            && self.feed.definition != Definition::only_events()
            && self.feed.readers().borrow().count == 0
    }

    /// Waits until the feed's watch is over.
    async fn wait_for_end(&self) {
        // The collector's task drops the sender; then `changed` returns an error.
        let _ = self.over.clone().changed().await;
    }
}

impl Feeds {
    /// A registry without feeds, for at most `limit` of them.
    pub(crate) fn new(operations: Arc<Operations>, events_missed: Counter, limit: usize) -> Feeds {
        let run = format!("{:06x}", fastrand::u32(..1 << 24));
        Feeds { operations, events_missed, limit, feeds: Mutex::default(), run, ids: AtomicU64::new(1) }
    }

    /// Returns a reader for this definition. Readers with the same definition and emulator share one feed. A feed ends
    /// if its names now have another meaning. `last_id` is the id of the last event that the client got, if it comes
    /// back.
    pub(crate) async fn read(
        self: &Arc<Feeds>,
        served: &Served,
        definition: Definition,
        last_id: Option<&str>,
    ) -> Result<Reader, Problem> {
        let is_it = |listed: &Listed| {
            listed.owner.is_none() && listed.emulator == served.name && listed.feed.definition == definition
        };
        loop {
            let names = WatchedNames::compile(served, &definition).await?;
            let subjects = names.subjects.clone();
            let find = |feeds: &[Listed]| {
                let found = feeds.iter().find(|listed| is_it(listed) && listed.subjects == subjects)?;
                Some(found.feed.read(last_id))
            };
            if let Some(reader) = find(&self.feeds.lock()) {
                return Ok(reader);
            }
            let collector = self.begin(served, definition.clone(), names).await?;
            let mut feeds = self.feeds.lock();
            // Another client may have created the feed in the meantime.
            if let Some(reader) = find(&feeds) {
                return Ok(reader);
            }
            // A game was loaded or a symbol file was read again in the meantime, so a feed in the list may have newer
            // names.
            if collector.names.are_outdated(&definition) {
                continue;
            }
            for outdated in feeds.extract_if(.., |listed| is_it(listed)) {
                outdated.feed.end(OTHER_NAMES);
            }
            return self.start(&mut feeds, served, collector, None).map(|listed| listed.feed.read(last_id));
        }
    }

    /// Creates a feed that clients read by its id.
    pub(crate) async fn create(
        self: &Arc<Feeds>,
        served: &Served,
        definition: Definition,
        owner: Owner,
    ) -> Result<Listed, Problem> {
        loop {
            let names = WatchedNames::compile(served, &definition).await?;
            let collector = self.begin(served, definition.clone(), names).await?;
            if !collector.names.are_outdated(&definition) {
                return self.start(&mut self.feeds.lock(), served, collector, Some(owner));
            }
        }
    }

    pub(crate) fn list(&self, emulator: &str) -> Vec<Listed> {
        self.feeds.lock().iter().filter(|listed| listed.emulator == emulator).cloned().collect()
    }

    /// The number of feeds, and the number of their readers.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let feeds = self.feeds.lock();
        (feeds.len(), feeds.iter().map(|listed| listed.feed.readers().borrow().count).sum())
    }

    pub(crate) fn get(&self, id: &str) -> Result<Listed, Problem> {
        let found = self.feeds.lock().iter().find(|listed| listed.feed.id == id).cloned();
        found.ok_or_else(|| {
            Problem::not_found(format!(
                "no watch has the id {id:?}; GET /v1/watches lists all watches. A watch ends when another game is \
                 loaded, when a changed symbol file gives its names another meaning, or when nobody reads it: after \
                 {} s, or after {} s if POST /v1/watches created it",
                UNREAD.as_secs(),
                UNREAD_KEPT.as_secs()
            ))
        })
    }

    /// Ends the feed of this id; its readers learn why. Waits until its watch is over, so that another watch can take
    /// its place in the emulator. A read-only caller may end only the feeds that it created.
    pub(crate) async fn delete(&self, id: &str, caller: Owner) -> Result<(), Problem> {
        let listed = self.get(id)?;
        match &listed.owner {
            Some(owner) => caller.check_change(owner, id)?,
            None if caller.is_read_only() => {
                let message =
                    format!("the token of this request is read-only, and other clients may read {id} too");
                return Err(Problem::new(StatusCode::FORBIDDEN, message));
            }
            None => {}
        }
        self.remove(id);
        listed.feed.end("it was deleted");
        listed.wait_for_end().await;
        Ok(())
    }

    pub(crate) fn remove(&self, id: &str) {
        self.feeds.lock().retain(|listed| listed.feed.id != id);
    }

    /// Ends the watch of a feed and removes the feed from the list, unless it has a reader. Returns whether it has no
    /// reader. The watch ends first, because [`Feeds::end_spare`] waits only for the watches of feeds in the list.
    pub(crate) fn remove_unread(&self, feed: &Feed, watch: &mut Option<Watch>) -> bool {
        let mut feeds = self.feeds.lock();
        let unread = feed.readers().borrow().count == 0;
        if unread {
            *watch = None;
            feeds.retain(|listed| listed.feed.id != feed.id);
        }
        unread
    }

    /// Begins a watch. Returns it, the frame in which it began, and the bytes of the memory at that time. If `every` is
    /// not 0, the watch also reports an event once per `every` frames, even if nothing has changed. If a subject uses
    /// the frame counter, the watch reports an event in every frame. If the emulator has no room for the watch, the
    /// emulator's spare feeds are ended to make room.
    pub(crate) async fn watch(
        &self,
        served: &Served,
        subjects: Arc<Subjects>,
        every: u32,
    ) -> Result<(Watch, u32, WatchedMemory), Problem> {
        let every = if subjects.uses_frame { 1 } else { every };
        let (watch, frame, bytes) = match self.begin_watch(served, &subjects, every).await {
            Err(problem) if problem.status() == StatusCode::SERVICE_UNAVAILABLE => {
                // Even if there is no spare feed, a feed may have ended since the refusal.
                self.end_spare(&served.name).await;
                self.begin_watch(served, &subjects, every).await?
            }
            begun => begun?,
        };
        Ok((watch, frame, WatchedMemory::new(subjects, &bytes)))
    }

    /// Ends the [spare](Listed::is_spare) feeds of an emulator, and waits until their watches are over.
    async fn end_spare(&self, emulator: &str) {
        let is_it = |listed: &mut Listed| listed.emulator == emulator && listed.is_spare();
        let spare: Vec<Listed> = self.feeds.lock().extract_if(.., is_it).collect();
        for listed in &spare {
            listed.feed.end(NO_ROOM);
        }
        for listed in &spare {
            listed.wait_for_end().await;
        }
    }

    /// Creates a feed and begins its watch. [`Feeds::start`] then adds the feed to the registry.
    async fn begin(
        &self,
        served: &Served,
        definition: Definition,
        names: WatchedNames,
    ) -> Result<Collector, Problem> {
        let subjects = names.subjects.clone();
        // Subscribe to events before the first values are read, so that no event is lost.
        let events = if definition.events { Some(served.emulator.events()) } else { None };
        let constant = subjects.ranges.is_empty() && !subjects.uses_frame;
        let (watch, frame, memory) = if constant {
            (None, served.emulator.state().frame, WatchedMemory::new(subjects, &[]))
        } else {
            let (watch, frame, memory) = self.watch(served, subjects, 0).await?;
            (Some(watch), frame, memory)
        };
        let values = memory.values(frame, definition.encoding);
        let id = format!("w{}-{}", self.run, self.ids.fetch_add(1, Relaxed));
        let base = Values { frame, values: values.clone() };
        let feed = Arc::new(Feed::new(id, definition, base, self.events_missed.clone()));
        Ok(Collector { feed, names, memory, values, watch, events, over: watch::Sender::new(()) })
    }

    /// Adds a feed to the registry, and starts the task that fills it. If the registry is full, ends a spare feed to
    /// make room. Fails if there is no spare feed, or if the owner is read-only and such owners have too many feeds.
    fn start(
        self: &Arc<Feeds>,
        feeds: &mut Vec<Listed>,
        served: &Served,
        collector: Collector,
        owner: Option<Owner>,
    ) -> Result<Listed, Problem> {
        let most = self.limit;
        let is_read_only = |owner: &Option<Owner>| owner.as_ref().is_some_and(Owner::is_read_only);
        let share = most / READ_ONLY_PART;
        if is_read_only(&owner) && feeds.iter().filter(|listed| is_read_only(&listed.owner)).count() >= share
        {
            let message = format!(
                "there are {share} watches of read-only callers, and more are not accepted; delete some"
            );
            return Err(Failure::busy(message).into());
        }
        if feeds.len() >= most
            && let Some(spare) = feeds.iter().position(Listed::is_spare)
        {
            feeds.remove(spare).feed.end(NO_ROOM);
        }
        if feeds.len() >= most {
            let message = format!("there are {most} watches, and more are not accepted; delete some");
            return Err(Failure::busy(message).into());
        }
        let unread_limit = match owner {
            Some(_) => Some(UNREAD_KEPT),
            None if collector.feed.definition == Definition::only_events() => None,
            None => Some(UNREAD),
        };
        let (feed, over) = (collector.feed.clone(), collector.over.subscribe());
        let subjects = collector.names.subjects.clone();
        let listed = Listed { feed, emulator: served.name.clone(), owner, subjects, over };
        feeds.push(listed.clone());
        tokio::spawn(collector.run(self.clone(), self.operations.stopping.clone(), unread_limit));
        Ok(listed)
    }

    /// Begins a watch. Returns it, the frame in which it began, and the bytes of its ranges at that time.
    async fn begin_watch(
        &self,
        served: &Served,
        subjects: &Subjects,
        every: u32,
    ) -> Result<(Watch, u32, Vec<u8>), Problem> {
        let request = WatchRequest { ranges: subjects.ranges.clone(), every, ..WatchRequest::default() };
        let watch = served.emulator.watch(request);
        let outcome = self.operations.perform(served, watch.op().into()).await?;
        let frame = outcome.frame;
        match outcome.single().map_err(|error| subjects.refused(error))? {
            Value::Bytes(bytes) => Ok((watch, frame, bytes)),
            _ => Err(Problem::new(
                StatusCode::BAD_GATEWAY,
                "the emulator answered with something other than memory",
            )),
        }
    }
}
