//! The feeds there are, found by id or by what they watch.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use framewire_emulator::WatchRequest;
use framewire_protocol::{Batch, Value};

use super::collect::{Collector, UNREAD, UNREAD_KEPT};
use super::definition::{Definition, Subjects};
use super::feed::{Feed, Reader};
use super::memory::Memory;
use super::ring::Snapshot;
use crate::app::Site;
use crate::emulators::Served;
use crate::failure::Failure;
use crate::v1::Problem;

/// The feeds of a server.
#[derive(Debug)]
pub(crate) struct Live {
    feeds: Mutex<Vec<Listed>>,
    /// Keeps the ids of this run of the server apart from those of others.
    run: String,
    ids: AtomicU64,
}

/// A feed in the list.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) feed: Arc<Feed>,
    /// Name of its emulator.
    pub(super) emulator: String,
    /// Made by `POST /v1/watches`, and not shared by what it watches.
    pub(super) kept: bool,
}

impl std::fmt::Debug for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.feed.id, self.emulator)
    }
}

impl Live {
    pub(crate) fn new() -> Live {
        let run = format!("{:06x}", fastrand::u32(..1 << 24));
        Live { feeds: Mutex::default(), run, ids: AtomicU64::new(1) }
    }

    /// Reads what is watched, together with all others who watch the same.
    pub(super) async fn read(
        &self,
        site: &Arc<Site>,
        served: &Served,
        definition: Definition,
        last_id: Option<&str>,
    ) -> Result<Reader, Problem> {
        let is_it = |listed: &&Listed| {
            !listed.kept && listed.emulator == served.name && listed.feed.definition == definition
        };
        if let Some(listed) = self.feeds().iter().find(is_it) {
            return Ok(listed.feed.read(last_id));
        }
        let collector = self.begin(site, served, definition.clone()).await?;
        let mut feeds = self.feeds();
        // Another client may have been quicker.
        if let Some(listed) = feeds.iter().find(is_it) {
            return Ok(listed.feed.read(last_id));
        }
        self.start(&mut feeds, site, served, collector, false).map(|listed| listed.feed.read(last_id))
    }

    /// Makes a feed that is read by its id.
    pub(super) async fn create(
        &self,
        site: &Arc<Site>,
        served: &Served,
        definition: Definition,
    ) -> Result<Listed, Problem> {
        let collector = self.begin(site, served, definition).await?;
        self.start(&mut self.feeds(), site, served, collector, true)
    }

    /// The feeds of an emulator.
    pub(super) fn list(&self, emulator: &str) -> Vec<Listed> {
        self.feeds().iter().filter(|listed| listed.emulator == emulator).cloned().collect()
    }

    /// The feed of this id.
    pub(super) fn get(&self, id: &str) -> Result<Listed, Problem> {
        let found = self.feeds().iter().find(|listed| listed.feed.id == id).cloned();
        found.ok_or_else(|| {
            Problem::not_found(format!(
                "no watch has the id {id:?}; GET /v1/watches lists them, and one that nobody reads for {} minutes ends",
                UNREAD_KEPT.as_secs() / 60
            ))
        })
    }

    /// Ends the feed of this id; whoever reads it is told so.
    pub(super) fn delete(&self, id: &str) -> Result<(), Problem> {
        self.get(id)?.feed.end("it was deleted");
        self.remove(id);
        Ok(())
    }

    /// Takes a feed off the list.
    pub(super) fn remove(&self, id: &str) {
        self.feeds().retain(|listed| listed.feed.id != id);
    }

    fn feeds(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch.
    async fn begin(
        &self,
        site: &Site,
        served: &Served,
        definition: Definition,
    ) -> Result<Collector, Problem> {
        let subjects = definition.compile(&*served.symbols)?;
        // From before the first values on, so that nothing falls between.
        let events = definition.events.then(|| served.emulator.events());
        let patience = (!definition.watch.is_empty()).then_some(UNREAD);
        let (watch, frame, memory) = match subjects.all.is_empty() {
            true => (None, served.emulator.state().frame, Memory::new(subjects, &[])),
            false => {
                let (watch, frame, memory) = watch(site, served, subjects, 0).await?;
                (Some(watch), frame, memory)
            }
        };
        let values = memory.values(frame, definition.encoding);
        let id = format!("w{}-{}", self.run, self.ids.fetch_add(1, Relaxed));
        let feed = Arc::new(Feed::new(id, definition, Snapshot { frame, values: values.clone() }));
        Ok(Collector { feed, memory, values, watch, events, patience })
    }

    fn start(
        &self,
        feeds: &mut Vec<Listed>,
        site: &Arc<Site>,
        served: &Served,
        mut collector: Collector,
        kept: bool,
    ) -> Result<Listed, Problem> {
        let most = site.app.limits.max_watches;
        if feeds.len() >= most {
            let message = format!("there are {most} watches, and more are not accepted; delete some");
            return Err(Failure::busy(message).into());
        }
        if kept {
            collector.patience = Some(UNREAD_KEPT);
        }
        let listed = Listed { feed: collector.feed.clone(), emulator: served.name.clone(), kept };
        feeds.push(listed.clone());
        tokio::spawn(collector.run(site.clone()));
        Ok(listed)
    }
}

/// Begins a watch: it, the frame in which it began, and what the memory was then. It has an event at least every
/// `every` frames, if that is not 0.
pub(super) async fn watch(
    site: &Site,
    served: &Served,
    subjects: Subjects,
    every: u32,
) -> Result<(framewire_emulator::Watch, u32, Memory), Problem> {
    let every = if subjects.uses_frame { 1 } else { every };
    let request = WatchRequest { ranges: subjects.ranges.clone(), every, keys: false, hashes: false };
    let watch = served.emulator.watch(request);
    let deadline = Instant::now() + site.app.deadline;
    let outcome = served.emulator.submit(Batch::new(vec![watch.op()]), deadline).await?;
    let frame = outcome.frame;
    match outcome.single()? {
        Value::Bytes(bytes) => Ok((watch, frame, Memory::new(subjects, &bytes))),
        _ => Err(Failure::new(
            axum::http::StatusCode::BAD_GATEWAY,
            "the emulator answered with something else than memory",
        )
        .into()),
    }
}
