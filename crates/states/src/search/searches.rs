use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Search;

/// Searches under way, by number. One that nobody has asked for in a while is forgotten, or when others need its room.
#[derive(Debug)]
pub struct Searches<T> {
    limit: usize,
    idle: Duration,
    held: Mutex<Held<T>>,
}

#[derive(Debug)]
struct Held<T> {
    last: u64,
    searches: BTreeMap<u64, Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    used: Instant,
    search: Arc<Mutex<Search>>,
    owner: T,
}

impl<T: Clone> Searches<T> {
    /// At most `limit`, which is not 0, each kept until nobody has asked for it for `idle`.
    pub fn new(limit: usize, idle: Duration) -> Searches<T> {
        let held = Held { last: 0, searches: BTreeMap::new() };
        Searches { limit, idle, held: Mutex::new(held) }
    }

    /// How long a search is kept that nobody asks for.
    pub fn idle(&self) -> Duration {
        self.idle
    }

    /// Keeps a search that belongs to `owner`; returns its number, and itself. Where there is no room for it, the one that
    /// was not asked for the longest is forgotten, of those whose owners are `replaceable`. `None` if there is no such one.
    pub fn add(
        &self,
        search: Search,
        owner: T,
        now: Instant,
        replaceable: impl Fn(&T) -> bool,
    ) -> Option<(u64, Arc<Mutex<Search>>)> {
        let mut held = self.held(now);
        while held.searches.len() >= self.limit {
            let entries = held.searches.iter().filter(|(_, entry)| replaceable(&entry.owner));
            let oldest = entries.min_by_key(|(_, entry)| entry.used).map(|(id, _)| *id)?;
            held.searches.remove(&oldest);
        }
        held.last += 1;
        let (id, search) = (held.last, Arc::new(Mutex::new(search)));
        held.searches.insert(id, Entry { used: now, search: search.clone(), owner });
        Some((id, search))
    }

    /// The search of this number, which is in use now.
    pub fn get(&self, id: u64, now: Instant) -> Option<(Arc<Mutex<Search>>, T)> {
        let mut held = self.held(now);
        let entry = held.searches.get_mut(&id)?;
        entry.used = now;
        Some((entry.search.clone(), entry.owner.clone()))
    }

    /// Forgets a search; `false` if there is none of this number.
    pub fn remove(&self, id: u64, now: Instant) -> bool {
        self.held(now).searches.remove(&id).is_some()
    }

    /// All searches by number, without counting that as use.
    pub fn list(&self, now: Instant) -> Vec<(u64, Arc<Mutex<Search>>, T)> {
        let held = self.held(now);
        let listed = |(id, entry): (&u64, &Entry<T>)| (*id, entry.search.clone(), entry.owner.clone());
        held.searches.iter().map(listed).collect()
    }

    fn held(&self, now: Instant) -> MutexGuard<'_, Held<T>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = self.idle;
        held.searches.retain(|_, entry| now.saturating_duration_since(entry.used) < idle);
        held
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
        // The first was asked for before the third was begun.
        assert_eq!(add("d", second(17)), 4);
        assert_eq!(ids(second(17)), [3, 4]);
        assert!(searches.add(search(), "e", second(17), |owner| *owner == "b").is_none());
        assert!(searches.remove(3, second(18)) && !searches.remove(3, second(18)));
    }
}
