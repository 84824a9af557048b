//! The work RAM of a console, which recordings keep a hash of.

use crc32fast::Hasher;
use framewire_protocol::{Op, OpError, Value};

/// The operations that read it, to be done in one batch: the GBA's two work RAMs; of the Game Boy what its work RAM and
/// its high RAM show on the bus.
pub fn read(console: u8) -> Vec<Op> {
    match console {
        0 => [("wram", 0x40000), ("iwram", 0x8000)]
            .map(|(domain, length)| Op::DomainReadRange { domain: domain.to_owned(), address: 0, length })
            .to_vec(),
        _ => [(0xC000, 0x2000), (0xFF80, 0x7F)]
            .map(|(address, length)| Op::ReadRange { address, length })
            .to_vec(),
    }
}

/// The CRC-32 of what those operations gave.
pub fn hash(results: &[Result<Value, OpError>]) -> Result<u32, OpError> {
    let mut hash = Hasher::new();
    for result in results {
        match result {
            Ok(Value::Bytes(bytes)) => hash.update(bytes),
            Ok(_) => return Err(OpError::failed("the emulator answered with something else than memory")),
            Err(error) => return Err(error.clone()),
        }
    }
    Ok(hash.finalize())
}
