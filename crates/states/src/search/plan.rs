use framewire_expression::Type;

use crate::{Console, OnBus};

/// The largest number of bytes that one search can cover.
pub const MAX_BYTES: usize = 1 << 20;

/// The largest number of areas of one search.
pub const MAX_AREAS: usize = 16;

/// A range of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// The memory domain; `None` is the bus.
    pub domain: Option<String>,
    /// The first byte's address on the bus, or its offset in the domain.
    pub address: u32,
    /// The number of bytes.
    pub length: u32,
}

/// Which memory is searched, and for which type of number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    areas: Vec<Area>,
    pub(super) number: Type,
    alignment: u32,
    console: Option<Console>,
}

/// Why a plan is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There are no areas, or too many.
    #[error("{0} areas; 1 to {MAX_AREAS} are accepted")]
    Areas(usize),
    /// The areas have more bytes than a search can cover.
    #[error("the areas have {0} bytes; at most {MAX_BYTES} are accepted in all, so search a smaller range")]
    Bytes(u64),
    /// An area is too small for a number, or it extends beyond the last address.
    #[error(
        "an area of {length} bytes at {address:#x} is too small for a number, or goes beyond the last address"
    )]
    Area {
        /// The area's first address.
        address: u32,
        /// The area's number of bytes.
        length: u32,
    },
    /// Numbers cannot be this many bytes apart.
    #[error("numbers cannot be {0} bytes apart; 1, 2 and 4 are accepted")]
    Alignment(u32),
}

impl Plan {
    /// Plans a search in `areas` for numbers of the type `number`. In each area, the numbers are `alignment` bytes
    /// apart, beginning with the first address. The default for `alignment` is the number's size.
    ///
    /// # Errors
    /// If the plan is not accepted. The error says why.
    pub fn new(areas: Vec<Area>, number: Type, alignment: Option<u32>) -> Result<Plan, PlanError> {
        if !(1..=MAX_AREAS).contains(&areas.len()) {
            return Err(PlanError::Areas(areas.len()));
        }
        let alignment = alignment.unwrap_or(number.size().into());
        if !matches!(alignment, 1 | 2 | 4) {
            return Err(PlanError::Alignment(alignment));
        }
        let wrong = |area: &&Area| {
            (area.length as usize) < usize::from(number.size())
                || area.address.checked_add(area.length - 1).is_none()
        };
        if let Some(Area { address, length, .. }) = areas.iter().find(wrong) {
            return Err(PlanError::Area { address: *address, length: *length });
        }
        let bytes: u64 = areas.iter().map(|area| u64::from(area.length)).sum();
        if bytes > MAX_BYTES as u64 {
            return Err(PlanError::Bytes(bytes));
        }
        Ok(Plan { areas, number, alignment, console: None })
    }

    /// Adds the console, so that candidates get their addresses on its bus.
    pub fn of(self, console: Console) -> Plan {
        Plan { console: Some(console), ..self }
    }

    /// The bank and address on the bus of a byte at `address` in `domain`, if they are known.
    pub fn on_bus(&self, domain: Option<&str>, address: u32) -> Option<OnBus> {
        match domain {
            None => Some(OnBus { bank: None, address }),
            Some(domain) => self.console?.on_bus(domain, address),
        }
    }

    /// The memory that is searched.
    pub fn areas(&self) -> &[Area] {
        &self.areas
    }

    /// The type of the numbers.
    pub fn number(&self) -> Type {
        self.number
    }

    /// The distance between numbers, in bytes.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// The number of bytes in all areas.
    pub(super) fn bytes(&self) -> usize {
        self.areas.iter().map(|area| area.length as usize).sum()
    }

    /// How many numbers the areas contain. Their indexes are called places.
    pub(super) fn places(&self) -> usize {
        self.areas.iter().map(|area| self.places_of(area)).sum()
    }

    fn places_of(&self, area: &Area) -> usize {
        (area.length as usize - usize::from(self.number.size())) / self.alignment as usize + 1
    }

    /// The offset of the number at index `place`, counted as if all areas followed one another without gaps.
    pub(super) fn byte_of(&self, mut place: usize) -> usize {
        let mut before = 0;
        for area in &self.areas {
            match place.checked_sub(self.places_of(area)) {
                None => break,
                Some(left) => place = left,
            }
            before += area.length as usize;
        }
        before + place * self.alignment as usize
    }

    /// The area that contains the byte at offset `at`, and the byte's address in that area. The offset is counted as if
    /// all areas followed one another without gaps.
    pub(super) fn area_at(&self, mut at: usize) -> (&Area, u32) {
        let mut areas = self.areas.iter().peekable();
        while let Some(area) = areas.next() {
            match at.checked_sub(area.length as usize) {
                Some(left) if areas.peek().is_some() => at = left,
                _ => return (area, area.address + at as u32),
            }
        }
        unreachable!("a plan has an area")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(address: u32, length: u32) -> Area {
        Area { domain: None, address, length }
    }

    #[test]
    fn plans_have_limits() {
        let plan = |areas: &[Area], alignment| Plan::new(areas.to_vec(), Type::U32, alignment);
        assert_eq!(plan(&[], None), Err(PlanError::Areas(0)));
        assert!(matches!(plan(&vec![area(0, 4); MAX_AREAS + 1], None), Err(PlanError::Areas(_))));
        for wrong in [area(0, 0), area(0, 3), area(u32::MAX - 2, 4)] {
            assert!(
                matches!(plan(std::slice::from_ref(&wrong), None), Err(PlanError::Area { .. })),
                "{wrong:?}"
            );
        }
        let half = area(0, MAX_BYTES as u32 / 2);
        assert!(plan(&[half.clone(), half.clone()], None).is_ok());
        assert!(matches!(plan(&[half.clone(), half, area(0, 4)], None), Err(PlanError::Bytes(_))));
        for alignment in [0, 3, 8] {
            assert_eq!(plan(&[area(0, 4)], Some(alignment)), Err(PlanError::Alignment(alignment)));
        }
        assert!(plan(&[area(u32::MAX - 3, 4)], Some(1)).is_ok());
    }
}
