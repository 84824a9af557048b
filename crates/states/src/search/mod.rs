//! Places of memory that hold a value which is searched for: all are candidates at first, and each test of what memory holds
//! now leaves fewer.
//!
//! - [`Plan`]: where to look, and for numbers of which type;
//! - [`Test`]: what a candidate must hold;
//! - [`Search`]: the candidates, with the way back;
//! - [`Searches`]: the open searches, by number, each for a limited time.

mod bits;
mod plan;
mod searches;
mod test;

use std::collections::VecDeque;

use crate::OnBus;

use bits::Bits;
pub use plan::{Area, MAX_AREAS, MAX_BYTES, Plan, PlanError};
pub use searches::Searches;
pub use test::Test;

/// Steps that can be undone.
pub const UNDO: usize = 8;

/// A search.
#[derive(Debug)]
pub struct Search {
    plan: Plan,
    now: Step,
    /// The steps before, the oldest first.
    past: VecDeque<Step>,
    /// How often it was narrowed, what was undone not counted.
    steps: usize,
}

/// What is known after a step.
#[derive(Debug)]
struct Step {
    /// The frame at whose end memory was read.
    frame: u32,
    /// What the areas held, joined.
    memory: Vec<u8>,
    /// Which places are candidates.
    alive: Bits,
}

/// A place that may be the one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The memory domain; `None` is the bus.
    pub domain: Option<&'a str>,
    /// Its offset in the domain, or its address on the bus.
    pub address: u32,
    /// Where it is on the bus, as far as that is known.
    pub on_bus: Option<OnBus>,
    /// What it held when memory was read last.
    pub value: i64,
    /// What it held the time before that.
    pub previous: Option<i64>,
}

/// Memory that does not have the plan's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{found} bytes of memory were read where the search has {wanted}")]
pub struct OtherSize {
    /// Bytes that were read.
    pub found: usize,
    /// Bytes of the plan's areas.
    pub wanted: usize,
}

impl Search {
    /// A search among all places of the plan, whose areas hold `memory`, joined, at the end of `frame`.
    ///
    /// # Errors
    ///
    /// If `memory` is not an image of the plan's areas.
    pub fn begin(plan: Plan, memory: Vec<u8>, frame: u32) -> Result<Search, OtherSize> {
        check(&plan, &memory)?;
        let alive = Bits::ones(plan.places());
        Ok(Search { now: Step { frame, memory, alive }, plan, past: VecDeque::new(), steps: 0 })
    }

    /// Keeps the candidates that pass `test`, given what the areas hold now.
    ///
    /// # Errors
    ///
    /// If `memory` is not an image of the plan's areas. The search is unchanged then.
    pub fn narrow(&mut self, test: Test, memory: Vec<u8>, frame: u32) -> Result<(), OtherSize> {
        check(&self.plan, &memory)?;
        let mut alive = Bits::zeros(self.plan.places());
        for place in self.now.alive.iter() {
            let at = self.plan.byte_of(place);
            let (before, now) = (self.number(&self.now.memory, at), self.number(&memory, at));
            if test.passes(before, now) {
                alive.set(place);
            }
        }
        let before = std::mem::replace(&mut self.now, Step { frame, memory, alive });
        self.past.push_back(before);
        if self.past.len() > UNDO {
            self.past.pop_front();
        }
        self.steps += 1;
        Ok(())
    }

    /// Undoes a step; `false` if there is none, or it is no longer remembered.
    pub fn undo(&mut self) -> bool {
        let Some(before) = self.past.pop_back() else { return false };
        self.now = before;
        self.steps -= 1;
        true
    }

    /// Where it looks, and for what.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many candidates there are.
    pub fn count(&self) -> usize {
        self.now.alive.count()
    }

    /// How often it was narrowed.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// How many steps can be undone.
    pub fn undoable(&self) -> usize {
        self.past.len()
    }

    /// The frame at whose end memory was read last.
    pub fn frame(&self) -> u32 {
        self.now.frame
    }

    /// The candidates in order of areas and addresses, without the first `skip`.
    pub fn candidates(&self, skip: usize) -> impl Iterator<Item = Candidate<'_>> {
        self.now.alive.iter_from(skip).map(|place| {
            let at = self.plan.byte_of(place);
            let (area, address) = self.plan.place(at);
            Candidate {
                domain: area.domain.as_deref(),
                address,
                on_bus: self.plan.on_bus(area.domain.as_deref(), address),
                value: self.number(&self.now.memory, at),
                previous: self.past.back().map(|step| self.number(&step.memory, at)),
            }
        })
    }

    fn number(&self, memory: &[u8], at: usize) -> i64 {
        self.plan.number.read(&memory[at..])
    }
}

fn check(plan: &Plan, memory: &[u8]) -> Result<(), OtherSize> {
    let wanted = plan.bytes();
    if memory.len() == wanted { Ok(()) } else { Err(OtherSize { found: memory.len(), wanted }) }
}

#[cfg(test)]
mod tests {
    use framewire_expression::Type;

    use super::*;

    fn area(domain: &str, address: u32, length: u32) -> Area {
        Area { domain: Some(domain.to_owned()), address, length }
    }

    fn addresses(search: &Search) -> Vec<u32> {
        search.candidates(0).map(|candidate| candidate.address).collect()
    }

    #[test]
    fn a_search_narrows_and_goes_back() {
        let plan = Plan::new(vec![area("wram", 0x10, 8)], Type::U8, None).unwrap();
        let mut search = Search::begin(plan, vec![0, 1, 2, 3, 4, 5, 6, 7], 1).unwrap();
        assert_eq!((search.count(), search.steps()), (8, 0));
        search.narrow(Test::Increased, vec![1, 1, 3, 2, 5, 5, 200, 7], 2).unwrap();
        assert_eq!(addresses(&search), [0x10, 0x12, 0x14, 0x16]);
        let fourth = search.candidates(3).next().unwrap();
        assert_eq!((fourth.value, fourth.previous, search.frame()), (200, Some(6), 2));
        search.narrow(Test::IncreasedBy(1), vec![2, 0, 4, 0, 9, 0, 201, 0], 3).unwrap();
        assert_eq!(addresses(&search), [0x10, 0x12, 0x16]);
        assert!(search.undo());
        // The step back compares with what was read then.
        search.narrow(Test::Equal(5), vec![5; 8], 4).unwrap();
        assert_eq!(addresses(&search), [0x10, 0x12, 0x14, 0x16]);
        assert!(search.undo() && search.undo() && !search.undo());
        assert_eq!((search.count(), search.steps()), (8, 0));
    }

    #[test]
    fn wide_numbers_stay_within_their_area() {
        let areas = vec![area("wram", 0, 5), area("iwram", 0, 3)];
        let plan = Plan::new(areas.clone(), Type::U16, Some(1)).unwrap();
        let search = Search::begin(plan, vec![0; 8], 0).unwrap();
        let all: Vec<_> = search.candidates(0).map(|found| (found.domain.unwrap(), found.address)).collect();
        assert_eq!(all, [("wram", 0), ("wram", 1), ("wram", 2), ("wram", 3), ("iwram", 0), ("iwram", 1)]);
        let aligned = Plan::new(areas, Type::U16, None).unwrap();
        let search = Search::begin(aligned, vec![0; 8], 0).unwrap();
        assert_eq!(addresses(&search), [0, 2, 0]);
        assert_eq!(search.candidates(2).count(), 1);
        assert_eq!(search.candidates(99).count(), 0);
    }

    #[test]
    fn memory_of_another_size_is_refused() {
        let plan = Plan::new(vec![area("wram", 0, 4)], Type::U32, None).unwrap();
        let mut search = Search::begin(plan.clone(), vec![0; 4], 0).unwrap();
        assert_eq!(search.narrow(Test::Changed, vec![0; 5], 0), Err(OtherSize { found: 5, wanted: 4 }));
        assert!(Search::begin(plan, vec![], 0).is_err());
        assert_eq!((search.count(), search.steps()), (1, 0));
    }

    #[test]
    fn only_the_last_steps_are_remembered() {
        let plan = Plan::new(vec![area("wram", 0, 4)], Type::I8, None).unwrap();
        let mut search = Search::begin(plan, vec![0; 4], 0).unwrap();
        for frame in 1..=20 {
            search.narrow(Test::Unchanged, vec![0; 4], frame).unwrap();
        }
        assert_eq!((search.steps(), search.undoable()), (20, UNDO));
        while search.undo() {}
        assert_eq!((search.steps(), search.frame()), (12, 12));
    }
}
