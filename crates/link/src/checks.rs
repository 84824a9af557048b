//! Checks of operations for mGBA-http's script, which does not check them itself.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use framewire_protocol::{Access, Bus, Op, OpError, Status, Value};

/// How long the sizes of domains are kept. They can become wrong: the script does not report when mGBA loads another
/// game.
const LIFE: Duration = Duration::from_secs(5);
/// Addresses from here on exist only on the Game Boy Advance.
const PAST_GAME_BOY: u32 = 0x1_0000;
/// The save memory starts here. Its bus has 8 bits. So mGBA reads only one byte of a number there and repeats it, and
/// writes the lowest byte of a number to each of the number's addresses.
const SAVE: u32 = 0x0E00_0000;

/// The sizes of the game's memory domains.
#[derive(Debug)]
pub(crate) struct DomainSizes {
    /// `None` for a domain whose size the script did not return.
    sizes: HashMap<String, Option<u32>>,
    since: Instant,
}

impl Default for DomainSizes {
    fn default() -> DomainSizes {
        DomainSizes { sizes: HashMap::new(), since: Instant::now() }
    }
}

impl DomainSizes {
    /// Stores the answer to [`Op::DomainSize`].
    pub fn learn(&mut self, domain: String, answer: &Result<Value, OpError>) {
        let size = match answer {
            Ok(Value::Int(size)) => u32::try_from(*size).ok(),
            _ => None,
        };
        self.sizes.insert(domain, size);
    }

    /// Forgets all sizes, because another game may be loaded.
    pub fn forget(&mut self) {
        *self = DomainSizes::default();
    }

    /// Forgets sizes that may be out of date. Call this only between batches. Calls within a batch could make the link
    /// ask for the sizes again and again.
    pub fn forget_old(&mut self) {
        if self.since.elapsed() >= LIFE {
            self.forget();
        }
    }

    /// The first domain of these operations whose size is unknown.
    pub fn unknown(&self, ops: &[Op]) -> Option<String> {
        let mut domains = ops.iter().filter_map(|op| Access::of(op)?.domain);
        domains.find(|domain| !self.sizes.contains_key(*domain)).map(str::to_owned)
    }

    /// Refuses accesses to memory that does not exist or cannot be written. Also refuses to write a number that mGBA
    /// does not write correctly at this address: see [`is_one_access`].
    ///
    /// # Errors
    /// If the operation is refused. The error says what is accepted.
    pub fn check(&self, op: &Op) -> Result<(), OpError> {
        let Some(access) = Access::of(op) else { return Ok(()) };
        match access.domain {
            Some(domain) => {
                if let Some(Some(size)) = self.sizes.get(domain) {
                    access.within(*size, true)?;
                }
            }
            None if access.address >= PAST_GAME_BOY => access.on(Bus::Gba)?,
            None => {}
        }
        let number = access.write && !matches!(op, Op::WriteRange { .. });
        if number && !is_one_access(&access) {
            let Access { address, length, .. } = access;
            return Err(OpError::new(
                Status::Unsupported,
                format!(
                    "mGBA-http's script writes {} bits only at multiples of {length}, and on the bus only below {SAVE:#x}; \
                     address is {address:#x}: write each byte by itself, or load Framewire's script (`framewire script`)",
                    8 * length
                ),
            ));
        }
        Ok(())
    }
}

/// Whether mGBA reads or writes these bytes as one number. For other numbers, mGBA swaps or repeats bytes, or ignores
/// the lowest bits of the address.
fn is_one_access(access: &Access<'_>) -> bool {
    let Access { domain, address, length, .. } = *access;
    length == 1 || address.is_multiple_of(length) && (domain.is_some() || address < SAVE)
}

/// If `op` reads a number that mGBA does not read in one access, returns the operation that reads the number's bytes.
/// Returns `None` for all other operations.
pub(crate) fn as_bytes(op: &Op) -> Option<Op> {
    let number = |access: &Access<'_>| !access.write && !is_one_access(access);
    let access = Access::of(op).filter(number)?;
    let (address, length) = (access.address, access.length);
    match op {
        Op::Read16 { .. } | Op::Read32 { .. } => Some(Op::ReadRange { address, length }),
        Op::DomainRead16 { domain, .. } | Op::DomainRead32 { domain, .. } => {
            Some(Op::DomainReadRange { domain: domain.clone(), address, length })
        }
        _ => None,
    }
}

/// Combines bytes into a number. The first byte is the least significant one.
pub(crate) fn number(value: Value) -> Result<Value, OpError> {
    match value {
        Value::Bytes(bytes) if bytes.len() <= 4 => {
            Ok(Value::Int(bytes.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte))))
        }
        other => Err(OpError::failed(format!("the script answered with {other:?} in place of bytes"))),
    }
}

/// Refuses a path that would block or crash mGBA: a folder, a pipe, a device, or a file of the kernel. A relative path
/// is not checked, because mGBA's working directory is unknown.
///
/// # Errors
/// If the path is refused. The error says what is accepted.
pub(crate) fn check_path(op: &Op) -> Result<(), OpError> {
    if !op.info().args.iter().any(|argument| argument.name == "path") {
        return Ok(());
    }
    op.clone().try_for_each_path(|path| {
        if Path::new(path).is_relative() {
            return Ok(());
        }
        framewire_files::check_regular(Path::new(path)).map_err(|error| {
            OpError::bad_argument(format!("path is {path:?}: {error}; use a regular file or a new one"))
        })
    })
}
