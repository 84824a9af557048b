use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::Search;

/// The open searches, each with a number as its id. A search is dropped if it is not used for a while, or to make room
/// for a new search.
#[derive(Debug)]
pub struct Searches<T> {
    limit: usize,
    idle: Duration,
    open: Mutex<Open<T>>,
}

#[derive(Debug)]
struct Open<T> {
    /// The number of the newest search.
    last: u64,
    searches: BTreeMap<u64, OpenSearch<T>>,
}

#[derive(Debug)]
struct OpenSearch<T> {
    /// When the search was last used.
    used: Instant,
    search: Arc<Mutex<Search>>,
    owner: T,
}

impl<T: Clone> Searches<T> {
    /// Keeps at most `limit` searches, and drops each search that has not been used for `idle`. `limit` must be at
    /// least 1.
    pub fn new(limit: usize, idle: Duration) -> Searches<T> {
        let open = Open { last: 0, searches: BTreeMap::new() };
        Searches { limit, idle, open: Mutex::new(open) }
    }

    /// The time after which an unused search is dropped.
    pub fn idle(&self) -> Duration {
        self.idle
    }

    /// Adds a search that belongs to `owner`. Returns the number and the search. If there is no room, this drops the
    /// least recently used search among those whose owner is `replaceable`. Returns `None` if there is no such search.
    pub fn add(
        &self,
        search: Search,
        owner: T,
        now: Instant,
        replaceable: impl Fn(&T) -> bool,
    ) -> Option<(u64, Arc<Mutex<Search>>)> {
        let mut open = self.open(now);
        while open.searches.len() >= self.limit {
            let entries = open.searches.iter().filter(|(_, entry)| replaceable(&entry.owner));
            let oldest = entries.min_by_key(|(_, entry)| entry.used).map(|(id, _)| *id)?;
            open.searches.remove(&oldest);
        }
        open.last += 1;
        let (id, search) = (open.last, Arc::new(Mutex::new(search)));
        open.searches.insert(id, OpenSearch { used: now, search: search.clone(), owner });
        Some((id, search))
    }

    /// The search with this number, and its owner. This counts as a use of the search.
    pub fn get(&self, id: u64, now: Instant) -> Option<(Arc<Mutex<Search>>, T)> {
        let mut open = self.open(now);
        let entry = open.searches.get_mut(&id)?;
        entry.used = now;
        Some((entry.search.clone(), entry.owner.clone()))
    }

    /// Drops a search. Returns `false` if there is no search with this number.
    pub fn remove(&self, id: u64, now: Instant) -> bool {
        self.open(now).searches.remove(&id).is_some()
    }

    /// All searches in the order of their numbers. This does not count as a use.
    pub fn list(&self, now: Instant) -> Vec<(u64, Arc<Mutex<Search>>, T)> {
        let open = self.open(now);
        let listed = |(id, entry): (&u64, &OpenSearch<T>)| (*id, entry.search.clone(), entry.owner.clone());
        open.searches.iter().map(listed).collect()
    }

    /// Locks the table, and drops the searches that were unused for too long.
    fn open(&self, now: Instant) -> MutexGuard<'_, Open<T>> {
        let mut open = self.open.lock();
        let idle = self.idle;
        open.searches.retain(|_, entry| now.saturating_duration_since(entry.used) < idle);
        open
    }
}

#[cfg(test)]
mod tests {
    use framewire_expression::Type;

    use super::super::{Area, Plan};
    use super::*;

    fn search() -> Search {
        let area = Area { domain: None, address: 0, length: 4 };
        Search::begin(Plan::new(vec![area], Type::U8, None).unwrap(), vec![0; 4], 0).unwrap()
    }

    #[test]
    fn searches_are_bounded_and_end_when_idle() {
        let start = Instant::now();
        let second = |count| start + Duration::from_secs(count);
        let searches = Searches::new(2, Duration::from_secs(10));
        let add = |owner, now| searches.add(search(), owner, now, |_| true).unwrap().0;
        let ids = |now| searches.list(now).into_iter().map(|(id, ..)| id).collect::<Vec<_>>();
        assert_eq!(add("a", start), 1);
        assert_eq!(add("b", second(5)), 2);
        assert!(searches.get(1, second(9)).is_some_and(|(_, owner)| owner == "a"));
        assert_eq!(ids(second(14)), [1, 2]);
        assert_eq!(ids(second(15)), [1]);
        assert!(searches.get(2, second(16)).is_none());
        assert_eq!(add("c", second(16)), 3);
        // Search 1 was last used before search 3 was added, so search 1 makes room for search 4.
        assert_eq!(add("d", second(17)), 4);
        assert_eq!(ids(second(17)), [3, 4]);
        assert!(searches.add(search(), "e", second(17), |owner| *owner == "b").is_none());
        assert!(searches.remove(3, second(18)) && !searches.remove(3, second(18)));
    }
}
