//! Checks that the core has the memory that operations access.

use framewire_libmgba::{Core, Platform};
use framewire_protocol::{Access, Bus, Op, OpError};

use super::expressions;

/// The bus of the core's console.
pub(super) fn bus(core: &Core) -> Bus {
    match core.platform() {
        Platform::Gba => Bus::Gba,
        Platform::Gb => Bus::Gb,
    }
}

/// The index of the memory domain with this name. If the game has no such domain, the error lists its domains.
pub(super) fn find_domain(core: &Core, name: &str) -> Result<usize, OpError> {
    core.domain_index(name).ok_or_else(|| {
        let names: Vec<_> = core.domains().iter().map(|domain| domain.name.as_str()).collect();
        OpError::bad_argument(format!("there is no memory domain {name:?}; there are {}", names.join(", ")))
    })
}

/// Refuses an access to memory that the core does not have, and a write to memory that cannot be written.
///
/// # Errors
/// If the access is refused; the error says what is accepted.
pub fn check(core: &Core, access: &Access<'_>) -> Result<(), OpError> {
    let Some(name) = access.domain else { return access.on(bus(core)) };
    let domain = &core.domains()[find_domain(core, name)?];
    access.within(domain.size, domain.writable)
}

/// Fills `bytes` with memory from the bus or from a domain. Returns false if the core does not have this memory.
pub(super) fn read(core: &mut Core, domain: Option<&str>, address: u32, bytes: &mut [u8]) -> bool {
    let length = bytes.len() as u32;
    let Some(name) = domain else {
        let is_there = bus(core).has(address, length);
        if is_there {
            core.read_into(address, bytes);
        }
        return is_there;
    };
    let Some(domain) = core.domain_index(name) else { return false };
    let end = u64::from(address) + u64::from(length);
    end <= u64::from(core.domains()[domain].size) && core.domain_read_into(domain, address, bytes).is_ok()
}

/// Refuses an operation whose memory access [`check`] refuses.
///
/// # Errors
/// Those of [`check`].
pub(super) fn check_op(core: &Core, op: &Op) -> Result<(), OpError> {
    Access::of(op).map_or(Ok(()), |access| check(core, &access))
}

/// Checks operations before any of them is performed. The error contains the index of the first refused operation.
pub(super) fn check_ops(core: &Core, ops: &[Op]) -> Result<(), (usize, OpError)> {
    ops.iter().enumerate().try_for_each(|(index, op)| {
        // An operation checks its own expressions when it is performed. If it is the only one, that is early enough.
        let expressions = || if ops.len() == 1 { Ok(()) } else { expressions::check_op(core, op) };
        check_op(core, op).and_then(|()| expressions()).map_err(|error| (index, error))
    })
}

/// The operations of a batch that can be checked before the batch starts: all up to and including the first one that
/// loads another game.
pub(super) fn checkable(ops: &[Op]) -> &[Op] {
    let end = ops.iter().position(Op::loads_game).map_or(ops.len(), |index| index + 1);
    &ops[..end]
}
