//! The hash of a console's work RAM in recordings.

use crc32fast::Hasher;
use framewire_emulator::{WorkRam, work_ram};
use framewire_protocol::{Op, OpError, Value};

/// The operations that read the work RAM. They must be in one batch.
pub fn read(console: u8) -> Vec<Op> {
    let read = |WorkRam { domain, address, length }| match domain {
        Some(domain) => Op::DomainReadRange { domain: domain.to_owned(), address, length },
        None => Op::ReadRange { address, length },
    };
    work_ram(console).map(read).to_vec()
}

/// The CRC-32 of the results of the operations from [`read`].
pub fn hash(results: &[Result<Value, OpError>]) -> Result<u32, OpError> {
    let mut hash = Hasher::new();
    for result in results {
        match result {
            Ok(Value::Bytes(bytes)) => hash.update(bytes),
            Ok(_) => return Err(OpError::failed("the emulator did not answer with memory")),
            Err(error) => return Err(error.clone()),
        }
    }
    Ok(hash.finalize())
}
