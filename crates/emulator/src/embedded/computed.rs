//! Reads and writes memory at addresses that expressions compute, and keeps *frozen* values: values that are written
//! again after each frame.

use framewire_expression::Code;
use framewire_libmgba::Core;
use framewire_protocol::hex::hex_pairs;
use framewire_protocol::{Access, OpError, Status, Value};

use super::bounds;
use super::expressions::{self, CoreMemory};

/// The largest number of frozen values.
const MAX_FROZEN: usize = 256;
/// The largest number of bytes of a frozen value.
const MAX_FROZEN_LENGTH: usize = 64;
/// The largest number of bytes of the name of a frozen value.
const MAX_FROZEN_NAME: usize = 1024;

/// Evaluates the expression `address`, and reads memory at its value. Returns the four bytes of the address, and then
/// the bytes that were read.
///
/// # Errors
/// If `address` is not an expression, if it has no value, or if there is no memory at its value.
pub(super) fn read_at(core: &mut Core, address: &[u8], length: u32) -> Result<Vec<u8>, OpError> {
    let address = address_now(core, &expressions::decode(core, address, "address")?, length, false)?;
    let mut bytes = address.to_le_bytes().to_vec();
    let failed = |error| OpError::failed(format!("the memory cannot be read: {error}"));
    bytes.extend(core.read_range(address, length as usize).map_err(failed)?);
    Ok(bytes)
}

/// Evaluates the expression `address`, writes `data` at its value, and returns this value.
///
/// # Errors
/// If `address` is not an expression, if it has no value, or if there is no writable memory at its value.
pub(super) fn write_at(core: &mut Core, address: &[u8], data: &[u8]) -> Result<u32, OpError> {
    let code = expressions::decode(core, address, "address")?;
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let address = address_now(core, &code, length, true)?;
    write(core, address, data)?;
    Ok(address)
}

/// Evaluates `code` as an address, and checks that the console has `length` bytes of memory there. With `write`, also
/// checks that they can be written.
fn address_now(core: &mut Core, code: &Code, length: u32, write: bool) -> Result<u32, OpError> {
    let value = code.value(&mut CoreMemory(core));
    let Some(address) = value.and_then(|value| u32::try_from(value).ok()) else {
        let problem = value.map_or_else(|| "has no value".to_owned(), |value| format!("is {value}"));
        return Err(OpError::bad_argument(format!(
            "address {problem} at the moment: a pointer in it leads to no memory, or its value is not a number from 0 \
             to 4294967295"
        )));
    };
    bounds::check(core, &Access { domain: None, address, length, write })?;
    Ok(address)
}

/// Writes bytes. One, two or four bytes are written as one number.
fn write(core: &mut Core, address: u32, data: &[u8]) -> Result<(), OpError> {
    match *data {
        [value] => core.write8(address, value),
        [low, high] => core.write16(address, u16::from_le_bytes([low, high])),
        [a, b, c, d] => core.write32(address, u32::from_le_bytes([a, b, c, d])),
        _ => {
            let failed = |error| OpError::failed(format!("the memory cannot be written: {error}"));
            core.write_range(address, data).map_err(failed)?;
        }
    }
    Ok(())
}

/// The error for a recording that cannot begin because the value with this name is frozen. The script for a stock
/// mGBA uses the same text.
pub(super) fn not_recorded(name: &str) -> String {
    format!(
        "the value at {name} is frozen, but a replay would not write it and would therefore differ; unfreeze it \
         before you record"
    )
}

/// Checks the lengths of the name and of the bytes of a frozen value.
///
/// # Errors
/// If one of them is not accepted.
pub(super) fn check_lengths(name: &str, data: &[u8]) -> Result<(), OpError> {
    let lengths = [("name", name.len(), MAX_FROZEN_NAME), ("data", data.len(), MAX_FROZEN_LENGTH)];
    for (what, length, most) in lengths {
        if !(1..=most).contains(&length) {
            return Err(OpError::bad_argument(format!("{what} has {length} bytes; use 1 to {most}")));
        }
    }
    Ok(())
}

/// The frozen values, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Frozen {
    all: Vec<FrozenValue>,
}

#[derive(Debug)]
struct FrozenValue {
    name: String,
    kind: String,
    address: Code,
    data: Vec<u8>,
    /// The checksum of the game to which the value belongs.
    game: u32,
}

impl Frozen {
    /// Freezes a value: writes `data` now and after each frame. Replaces a frozen value with the same name. `address`
    /// is an encoded expression. `kind` is the name of the value's type; only [`list`](Self::list) uses it.
    ///
    /// # Errors
    /// If an argument is not accepted, if there is no writable memory at the address now, or if too many values are
    /// frozen.
    pub fn add(
        &mut self,
        core: &mut Core,
        name: String,
        kind: String,
        address: &[u8],
        data: Vec<u8>,
    ) -> Result<(), OpError> {
        check_lengths(&name, &data)?;
        let others = self.all.iter().filter(|other| other.name != name).count();
        if others >= MAX_FROZEN {
            let message =
                format!("{MAX_FROZEN} values are frozen already, which is the limit; unfreeze one first");
            return Err(OpError::new(Status::Busy, message));
        }
        let address = expressions::decode(core, address, "address")?;
        let length = data.len() as u32;
        let now = address_now(core, &address, length, true)?;
        write(core, now, &data)?;
        self.all.retain(|other| other.name != name);
        self.all.push(FrozenValue { name, kind, address, data, game: core.crc32() });
        Ok(())
    }

    /// The name of the first frozen value.
    pub(super) fn first(&self) -> Option<&str> {
        self.all.first().map(|value| value.name.as_str())
    }

    /// Why no recording or replay can begin: a value is frozen. `None` if no value is frozen.
    pub fn recording_problem(&self) -> Option<String> {
        let name = self.first()?;
        Some(format!("the value at {name} is frozen, so a replay would differ; unfreeze it first"))
    }

    /// Unfreezes a value, or all values if `name` is `*`. Returns whether there was such a value.
    pub fn remove(&mut self, name: &str) -> bool {
        let count = self.all.len();
        self.all.retain(|value| name != "*" && value.name != name);
        self.all.len() < count
    }

    /// Three texts for each value: its name, its type, and its bytes as pairs of hex digits. The script uses the same
    /// format.
    pub fn list(&self) -> Value {
        let texts = |value: &FrozenValue| [value.name.clone(), value.kind.clone(), hex_pairs(&value.data)];
        Value::List(self.all.iter().flat_map(texts).map(Value::Text).collect())
    }

    /// Removes the values of another game. Returns whether there were such values.
    pub fn drop_others(&mut self, core: &Core) -> bool {
        if self.all.is_empty() {
            return false;
        }
        let (game, count) = (core.crc32(), self.all.len());
        self.all.retain(|value| value.game == game);
        self.all.len() < count
    }

    /// Writes all values again. Called after each frame.
    pub fn write_all(&self, core: &mut Core) {
        for value in &self.all {
            // If the expression has no value in this frame, or there is no memory at its value, nothing is written.
            if let Ok(address) = address_now(core, &value.address, value.data.len() as u32, true) {
                let _ = write(core, address, &value.data);
            }
        }
    }
}
