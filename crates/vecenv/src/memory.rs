//! Reads numbers from a core's memory quickly.

use framewire_expression::{Place, Range, Type};
use framewire_libmgba::{Core, Platform};
use framewire_protocol::{Access, Bus};

/// The places in memory where formulas find their numbers, resolved for one game.
#[derive(Debug, Clone)]
pub struct Memory {
    places: Vec<(Source, Type)>,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// Plain memory without banks or side effects: the bytes of a domain from this offset on. They are copied directly.
    Bytes { domain: usize, offset: usize },
    /// A memory domain that may have banks or side effects. libmgba reads it.
    Domain { domain: usize, offset: u32 },
    /// An address on the bus.
    Bus(u32),
}

impl Memory {
    /// Resolves these places for the game in `core`.
    ///
    /// # Errors
    /// If a place is in a domain that the game does not have, goes beyond the end of its domain, or is not on the bus.
    pub fn new(core: &Core, places: &[Place]) -> Result<Memory, String> {
        let places = places.iter().map(|place| {
            let source = source(core, place.domain.as_deref(), place.address, place.kind.size().into())?;
            Ok((source, place.kind))
        });
        Ok(Memory { places: places.collect::<Result<_, String>>()? })
    }

    /// Reads the numbers at the places into `values`, in order.
    pub fn read(&self, core: &mut Core, values: &mut Vec<i64>) {
        values.clear();
        for (source, kind) in &self.places {
            let mut bytes = [0; 4];
            let size = usize::from(kind.size());
            read_bytes(core, *source, &mut bytes[..size]);
            values.push(kind.read(&bytes));
        }
    }
}

/// A range of bytes, resolved for one game.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes {
    source: Source,
    pub(crate) len: usize,
}

impl Bytes {
    pub(crate) fn new(core: &Core, range: &Range) -> Result<Bytes, String> {
        let len = usize::from(range.length);
        Ok(Bytes { source: source(core, range.domain.as_deref(), range.address, len)?, len })
    }

    /// Fills `bytes`, which has the range's length.
    pub(crate) fn read(&self, core: &mut Core, bytes: &mut [u8]) {
        read_bytes(core, self.source, bytes);
    }
}

/// The index of the memory domain with this name.
///
/// # Errors
/// If the game does not have this domain.
pub fn find_domain(core: &Core, name: &str) -> Result<usize, String> {
    core.domain_index(name).ok_or_else(|| {
        let names: Vec<&str> = core.domains().iter().map(|domain| domain.name.as_str()).collect();
        format!("there is no memory domain {name:?}; this game has {}", names.join(", "))
    })
}

fn source(core: &Core, domain: Option<&str>, address: u32, len: usize) -> Result<Source, String> {
    if let Some(name) = domain {
        let domain = find_domain(core, name)?;
        let size = core.domains()[domain].size;
        if u64::from(address) + len as u64 > u64::from(size) {
            return Err(format!(
                "{len} bytes at {name}:{address:#x} go beyond its end; it has {size:#x} bytes"
            ));
        }
        return Ok(Source::Domain { domain, offset: address });
    }
    if core.platform() == Platform::Gba {
        // The GBA's working memory has no banks, and reading it has no side effects.
        let found = core.domains().iter().position(|domain| {
            matches!(domain.name.as_str(), "wram" | "iwram")
                && domain.base <= address
                && u64::from(address) + len as u64 <= u64::from(domain.base) + u64::from(domain.size)
        });
        if let Some(domain) = found {
            let offset = (address - core.domains()[domain].base) as usize;
            return Ok(Source::Bytes { domain, offset });
        }
    }
    let bus = if core.platform() == Platform::Gba { Bus::Gba } else { Bus::Gb };
    let length = u32::try_from(len).unwrap_or(u32::MAX);
    let access = Access { domain: None, address, length, write: false };
    access.on(bus).map_err(|error| error.message)?;
    Ok(Source::Bus(address))
}

fn read_bytes(core: &mut Core, source: Source, bytes: &mut [u8]) {
    match source {
        Source::Bytes { domain, offset } => {
            let from = core.domain_bytes(domain).and_then(|all| all.get(offset..offset + bytes.len()));
            match from {
                Some(from) => bytes.copy_from_slice(from),
                None => bytes.fill(0),
            }
        }
        Source::Domain { domain, offset } => {
            // This does not fail, because the domain was found when the place was resolved.
            if core.domain_read_into(domain, offset, bytes).is_err() {
                bytes.fill(0);
            }
        }
        Source::Bus(address) => core.read_into(address, bytes),
    }
}
