//! The memory that operations read and write, and the memory that each console has.
//!
//! `lua/src/memory.lua` has the same rules for the script.

use std::fmt;

use crate::batch::Outcome;
use crate::error::{OpError, Status};
use crate::op::Op;
use crate::watch::MemoryRange;

/// A console's bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bus {
    /// Game Boy Advance: BIOS, memory, and a cartridge, all below 0x10000000.
    Gba,
    /// Game Boy and Game Boy Color: all 16-bit addresses.
    Gb,
}

/// A range of addresses: its first address, and the first one after its end.
type AddressRange = (u64, u64);

/// The GBA's BIOS, which is read only.
const GBA_BIOS: AddressRange = (0, 0x4000);
/// The GBA's memory from work RAM to the cartridge's save. The memory of each region is mirrored up to the start of the
/// next region. Unused registers, and the ROM past its end, read as open bus.
const GBA_MEMORY: AddressRange = (0x0200_0000, 0x1000_0000);
const GBA_ROM: AddressRange = (0x0800_0000, 0x0E00_0000);
/// The registers of a GBA cartridge's I/O port, for clocks and sensors. In the range of the ROM, only they can be
/// written.
const GBA_PINS: AddressRange = (0x0800_00C4, 0x0800_00CA);
const GB_MEMORY: AddressRange = (0, 0x1_0000);

impl Bus {
    /// The addresses that can be read.
    fn memory(self) -> &'static [AddressRange] {
        match self {
            Bus::Gba => &[GBA_BIOS, GBA_MEMORY],
            Bus::Gb => &[GB_MEMORY],
        }
    }

    /// The addresses that can be written.
    fn writable(self) -> &'static [AddressRange] {
        match self {
            Bus::Gba => &[(GBA_MEMORY.0, GBA_ROM.0), GBA_PINS, (GBA_ROM.1, GBA_MEMORY.1)],
            Bus::Gb => &[GB_MEMORY],
        }
    }

    /// Whether all of these bytes can be read.
    pub fn has(self, address: u32, length: u32) -> bool {
        lies_in(self.memory(), address, length)
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bus::Gba => "Game Boy Advance",
            Bus::Gb => "Game Boy",
        })
    }
}

fn lies_in(ranges: &[AddressRange], address: u32, length: u32) -> bool {
    let (start, end) = (u64::from(address), u64::from(address) + u64::from(length));
    ranges.iter().any(|(first, past)| *first <= start && start < *past && end <= *past)
}

/// Bytes that an operation reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access<'a> {
    /// The memory domain; `None` is the bus.
    pub domain: Option<&'a str>,
    /// Bus address, or offset in the domain.
    pub address: u32,
    /// Number of bytes.
    pub length: u32,
    /// Whether the operation writes the bytes.
    pub write: bool,
}

impl<'a> Access<'a> {
    /// The memory that this operation reads or writes, if its arguments give one range of addresses. `None` for other
    /// operations, such as `read_at`, for which an expression gives the address.
    pub fn of(op: &'a Op) -> Option<Access<'a>> {
        let (domain, address, length, write) = match op {
            Op::Read8 { address } => (None, *address, 1, false),
            Op::Read16 { address } => (None, *address, 2, false),
            Op::Read32 { address } => (None, *address, 4, false),
            Op::ReadRange { address, length } => (None, *address, *length, false),
            Op::Write8 { address, .. } => (None, *address, 1, true),
            Op::Write16 { address, .. } => (None, *address, 2, true),
            Op::Write32 { address, .. } => (None, *address, 4, true),
            Op::WriteRange { address, data } => {
                (None, *address, u32::try_from(data.len()).unwrap_or(u32::MAX), true)
            }
            Op::DomainRead8 { domain, address } => (Some(domain), *address, 1, false),
            Op::DomainRead16 { domain, address } => (Some(domain), *address, 2, false),
            Op::DomainRead32 { domain, address } => (Some(domain), *address, 4, false),
            Op::DomainReadRange { domain, address, length } => (Some(domain), *address, *length, false),
            Op::DomainWrite8 { domain, address, .. } => (Some(domain), *address, 1, true),
            Op::DomainWrite16 { domain, address, .. } => (Some(domain), *address, 2, true),
            Op::DomainWrite32 { domain, address, .. } => (Some(domain), *address, 4, true),
            _ => return None,
        };
        Some(Access { domain: domain.map(String::as_str), address, length, write })
    }

    /// The memory that a watch of this range reads.
    pub fn of_range(range: &'a MemoryRange) -> Access<'a> {
        let MemoryRange { domain, address, length, .. } = range;
        Access { domain: domain.as_deref(), address: *address, length: u32::from(*length), write: false }
    }

    /// Refuses addresses that this bus does not have, and writes that would have no effect there.
    ///
    /// # Errors
    /// If the access is refused. The error says which addresses are accepted.
    pub fn on(&self, bus: Bus) -> Result<(), OpError> {
        let Access { address, length, .. } = *self;
        if !bus.has(address, length) {
            let problem = match length {
                0 | 1 => format!("which is not on the bus of the {bus}"),
                _ => format!("and {length} bytes from there go beyond what the {bus} has on its bus"),
            };
            return Err(self.refused(&problem, &accepted(bus.memory())));
        }
        if self.write && !lies_in(bus.writable(), address, length) {
            let what = if u64::from(address) < GBA_BIOS.1 { "the BIOS" } else { "the cartridge's ROM" };
            let problem = match length {
                0 | 1 => format!("where {what} is, which cannot be written on the bus"),
                _ => {
                    format!("and {length} bytes from there reach {what}, which cannot be written on the bus")
                }
            };
            let accepts = format!("{}; the domain cart0 accepts writes to the ROM", accepted(bus.writable()));
            return Err(self.refused(&problem, &accepts));
        }
        Ok(())
    }

    /// Refuses offsets that a domain of `size` bytes does not have, and writes to a domain that takes no writes.
    ///
    /// # Errors
    /// If the access is refused. The error says which offsets are accepted.
    pub fn within(&self, size: u32, writable: bool) -> Result<(), OpError> {
        let Access { domain, address, length, write } = *self;
        let domain = domain.unwrap_or_default();
        if !lies_in(&[(0, size.into())], address, length) {
            let problem = format!(
                "and an access of {} goes beyond the domain {domain:?}, which has {size} bytes",
                bytes(length)
            );
            let accepts = match size.checked_sub(length.max(1)) {
                Some(last) => format!("0 to {last} for {}", bytes(length)),
                None => format!("at most {size} bytes"),
            };
            return Err(self.refused(&problem, &accepts));
        }
        if write && !writable {
            let problem = format!("in the domain {domain:?}, which takes no writes");
            return Err(self.refused(&problem, "a write on the bus, if the bus accepts writes there"));
        }
        Ok(())
    }

    fn refused(&self, problem: &str, accepts: &str) -> OpError {
        let address = match self.domain {
            Some(_) => self.address.to_string(),
            None => format!("{:#x}", self.address),
        };
        OpError::bad_argument(format!("{ADDRESS}is {address}, {problem}{ACCEPTED}{accepts}"))
    }
}

/// How the message about refused memory begins.
const ADDRESS: &str = "address ";
/// What separates the problem from what is accepted, in the message about refused memory.
const ACCEPTED: &str = "; accepted is ";

impl Outcome {
    /// If the batch was refused as a whole, before any of its operations `ops` was performed: the index of the refused
    /// operation, and the refusal. An error of the first operation counts as such a refusal only if it is about the
    /// memory that the operation reads or writes. After any other error, the operation may have been performed and have
    /// failed.
    pub fn refused_whole(&self, ops: &[Op]) -> Option<(usize, &OpError)> {
        let (index, error) = self.refusal()?;
        // An index above 0 always means that the batch was refused. Index 0 can also mean that the first operation was
        // performed and failed.
        let is_for_memory = ops.get(index).is_some_and(|op| Access::of(op).is_some());
        let is_whole = index > 0 || is_for_memory && error.status == Status::BadArgument;
        if is_whole { Some((index, error)) } else { None }
    }
}

impl OpError {
    /// The problem with the address and what is accepted, if this is a refusal by [`Access::on`] or [`Access::within`],
    /// in this program or in the script.
    pub fn address_problem(&self) -> Option<(&str, &str)> {
        self.message.strip_prefix(ADDRESS)?.split_once(ACCEPTED)
    }
}

fn bytes(length: u32) -> String {
    match length {
        1 => "1 byte".to_owned(),
        _ => format!("{length} bytes"),
    }
}

/// The addresses of these ranges, as text for error messages.
fn accepted(ranges: &[AddressRange]) -> String {
    let all: Vec<String> =
        ranges.iter().map(|(first, past)| format!("{first:#x} to {:#x}", past - 1)).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn on(bus: Bus, address: u32, length: u32, write: bool) -> Option<String> {
        let access = Access { domain: None, address, length, write };
        access.on(bus).err().map(|error| error.message)
    }

    #[test]
    fn addresses_that_the_console_does_not_have_are_refused() {
        for (bus, address, length, has) in [
            (Bus::Gb, 0xFFFF, 1, true),
            (Bus::Gb, 0xFFFF, 2, false),
            (Bus::Gb, 0x1_0000, 1, false),
            (Bus::Gb, 0, 0x1_0000, true),
            (Bus::Gba, 0x3FFF, 1, true),
            (Bus::Gba, 0x3FFF, 2, false),
            (Bus::Gba, 0x01FF_FFFF, 1, false),
            (Bus::Gba, 0x0200_0000, 0x0100_0000, true),
            (Bus::Gba, 0x0FFF_FFFC, 4, true),
            (Bus::Gba, 0x0FFF_FFFD, 4, false),
            (Bus::Gba, 0x1000_0000, 1, false),
            (Bus::Gba, u32::MAX, 4, false),
        ] {
            assert_eq!(on(bus, address, length, false).is_none(), has, "{bus} {address:#x} {length}");
        }
        let error = on(Bus::Gba, 0x1000_0000, 1, false).unwrap();
        let expected = "address is 0x10000000, which is not on the bus of the Game Boy Advance; accepted is 0x0 to \
                        0x3fff, 0x2000000 to 0xfffffff";
        assert_eq!(error, expected);
    }

    #[test]
    fn writes_without_an_effect_are_refused() {
        for (bus, address, length, takes) in [
            (Bus::Gba, 0, 1, false),
            (Bus::Gba, 0x07FF_FFFF, 1, true),
            (Bus::Gba, 0x07FF_FFFF, 2, false),
            (Bus::Gba, 0x0800_0000, 4, false),
            (Bus::Gba, 0x0800_00C4, 2, true),
            (Bus::Gba, 0x0800_00C8, 4, false),
            (Bus::Gba, 0x0DFF_FFFF, 1, false),
            (Bus::Gba, 0x0E00_0000, 4, true),
            // The cartridge's memory controller.
            (Bus::Gb, 0x2000, 1, true),
        ] {
            assert_eq!(on(bus, address, length, true).is_none(), takes, "{bus} {address:#x} {length}");
        }
        assert!(on(Bus::Gba, 0x0800_0000, 1, true).unwrap().contains("cart0"));
    }

    #[test]
    fn offsets_outside_of_a_domain_are_refused() {
        let access = |address, length| Access { domain: Some("wram"), address, length, write: true };
        for (address, length, has) in [
            (0, 0x8000, true),
            (0x7FFF, 1, true),
            (0x7FFD, 4, false),
            (0x8000, 1, false),
            (u32::MAX, 4, false),
        ] {
            assert_eq!(access(address, length).within(0x8000, true).is_ok(), has, "{address:#x} {length}");
        }
        assert!(access(0, 1).within(0, true).is_err());
        let refusal = access(0x8000, 1).within(0x8000, true).unwrap_err();
        let problem =
            "is 32768, and an access of 1 byte goes beyond the domain \"wram\", which has 32768 bytes";
        assert_eq!(refusal.address_problem(), Some((problem, "0 to 32767 for 1 byte")));
        assert_eq!(OpError::bad_argument("something else").address_problem(), None);
        assert!(access(0, 1).within(0x8000, false).unwrap_err().message.contains("takes no writes"));
    }

    #[test]
    fn a_refusal_of_a_whole_batch_names_its_operation() {
        let ops = [Op::Reset {}, Op::Read8 { address: 0x1000_0000 }, Op::Checksum {}];
        let refused = |ops: &[Op], index, error| {
            Outcome::refused(7, index, error).refused_whole(ops).map(|(index, _)| index)
        };
        let bad = || OpError::bad_argument("address is 0x10000000");
        assert_eq!(refused(&ops, 1, bad()), Some(1));
        assert_eq!(refused(&ops, 2, OpError::new(Status::Unsupported, "not here")), Some(2));
        // The first operation may have been performed, unless it was refused because of its memory.
        assert_eq!(refused(&ops[1..], 0, bad()), Some(0));
        assert_eq!(refused(&ops, 0, bad()), None);
        assert_eq!(refused(&ops[1..], 0, OpError::failed("no game")), None);
        // Here an operation failed after another one had been performed.
        let done = Outcome { frame: 7, results: vec![Ok(Value::None), Err(bad())] };
        assert_eq!(done.refused_whole(&ops), None);
    }
}
