//! Searches for the address in memory where a game keeps a value, such as the number of lives. At first, every address
//! is a candidate. Each step reads memory again and keeps only the candidates whose value passes a test.
//!
//! - [`Plan`]: which memory to search, and for which type of number;
//! - [`Test`]: the condition that a candidate's value must meet;
//! - [`Search`]: the candidates after each step; steps can be undone;
//! - [`Searches`]: the searches that clients have open, each for a limited time.

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

/// The largest number of steps that can be undone.
pub const UNDO: usize = 8;

/// A search for the address of a value.
#[derive(Debug)]
pub struct Search {
    plan: Plan,
    now: Step,
    /// The earlier steps that can be undone, the oldest first.
    past: VecDeque<Step>,
    /// The number of times that the search was narrowed, not counting undone steps.
    steps: usize,
}

/// The memory and the candidates after a step.
#[derive(Debug)]
struct Step {
    /// The frame after which memory was read.
    frame: u32,
    /// The content of the plan's areas, one after another.
    memory: Vec<u8>,
    /// The places that are still candidates. A place is the index of a number in the plan's areas.
    alive: Bits,
}

/// A number in memory that may be the value that the client searches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The memory domain; `None` is the bus.
    pub domain: Option<&'a str>,
    /// The number's offset in the domain, or its address on the bus.
    pub address: u32,
    /// The number's bank and address on the bus, if they are known.
    pub on_bus: Option<OnBus>,
    /// The value when memory was last read.
    pub value: i64,
    /// The value when memory was read before that; `None` if there is no earlier step, or it is no longer stored.
    pub previous: Option<i64>,
}

/// The memory that was read does not have the size of the plan's areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{found} bytes of memory were read, but the search covers {wanted}")]
pub struct OtherSize {
    /// The number of bytes that were read.
    pub found: usize,
    /// The number of bytes in the plan's areas.
    pub wanted: usize,
}

impl Search {
    /// Begins a search in which every number of the plan's areas is a candidate. `memory` is the content of the areas,
    /// one after another, at the end of `frame`.
    ///
    /// # Errors
    /// If `memory` does not have the size of the plan's areas.
    pub fn begin(plan: Plan, memory: Vec<u8>, frame: u32) -> Result<Search, OtherSize> {
        check(&plan, &memory)?;
        let alive = Bits::ones(plan.places());
        Ok(Search { now: Step { frame, memory, alive }, plan, past: VecDeque::new(), steps: 0 })
    }

    /// Keeps only the candidates that pass `test`. `memory` is the present content of the areas.
    ///
    /// # Errors
    /// If `memory` does not have the size of the plan's areas. Then the search is unchanged.
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

    /// Undoes the last step. Returns `false` if there is no earlier step, or it is no longer stored.
    pub fn undo(&mut self) -> bool {
        let Some(before) = self.past.pop_back() else { return false };
        self.now = before;
        self.steps -= 1;
        true
    }

    /// Which memory is searched, and for which type of number.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many candidates there are.
    pub fn count(&self) -> usize {
        self.now.alive.count()
    }

    /// The number of times that the search was narrowed, not counting undone steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// How many steps can be undone.
    pub fn undoable(&self) -> usize {
        self.past.len()
    }

    /// The frame after which memory was last read.
    pub fn frame(&self) -> u32 {
        self.now.frame
    }

    /// The candidates in the order of areas and addresses, without the first `skip` of them.
    pub fn candidates(&self, skip: usize) -> impl Iterator<Item = Candidate<'_>> {
        self.now.alive.iter_from(skip).map(|place| {
            let at = self.plan.byte_of(place);
            let (area, address) = self.plan.area_at(at);
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
    fn a_search_narrows_and_undoes_steps() {
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
        // After an undo, the candidates are those of the earlier step.
        search.narrow(Test::Equal(5), vec![5; 8], 4).unwrap();
        assert_eq!(addresses(&search), [0x10, 0x12, 0x14, 0x16]);
        assert!(search.undo() && search.undo() && !search.undo());
        assert_eq!((search.count(), search.steps()), (8, 0));
    }

    #[test]
    fn wide_numbers_do_not_cross_the_end_of_an_area() {
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
    fn memory_of_the_wrong_size_is_refused() {
        let plan = Plan::new(vec![area("wram", 0, 4)], Type::U32, None).unwrap();
        let mut search = Search::begin(plan.clone(), vec![0; 4], 0).unwrap();
        assert_eq!(search.narrow(Test::Changed, vec![0; 5], 0), Err(OtherSize { found: 5, wanted: 4 }));
        assert!(Search::begin(plan, vec![], 0).is_err());
        assert_eq!((search.count(), search.steps()), (1, 0));
    }

    #[test]
    fn only_the_last_steps_can_be_undone() {
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
