use std::ffi::CString;

use crate::MAX_RANGE;
use crate::core::Core;
use crate::error::Error;

/// The bus, as the game's own processor sees it. Every address can be used, and reads and writes of hardware registers
/// have their effects. A Game Boy has 16 address bits; higher bits are dropped.
///
/// A number consists of the bytes from its address on, least significant first. An aligned number is read or written in
/// one access of its width, any other number byte by byte. The GBA's memory for saves is 8 bits wide, so numbers there
/// are read and written byte by byte too. The GBA's video memory does not accept single bytes, so a byte is written
/// there together with its neighbour.
impl Core {
    /// Reads `len` bytes one after another. Continues at address 0 after the last address.
    ///
    /// # Errors
    /// [`Error::RangeTooLong`].
    pub fn read_range(&mut self, address: u32, len: usize) -> Result<Vec<u8>, Error> {
        check_range(len)?;
        let mut bytes = vec![0; len];
        self.read_into(address, &mut bytes);
        Ok(bytes)
    }

    /// Fills `bytes` as [`read_range`](Core::read_range) does.
    pub fn read_into(&mut self, address: u32, bytes: &mut [u8]) {
        self.handle.read_range(address, bytes);
    }

    /// Writes bytes one after another, each as `write8` does.
    ///
    /// # Errors
    /// [`Error::RangeTooLong`].
    pub fn write_range(&mut self, address: u32, data: &[u8]) -> Result<(), Error> {
        check_range(data.len())?;
        self.handle.write_range(address, data);
        Ok(())
    }
}

/// The processor's registers.
impl Core {
    /// The names of the registers, such as "r0" to "r12", "sp", "lr", "pc" and "cpsr" for a GBA. libmgba also lists a
    /// GBA's saved status registers, such as "spsr", but cannot read or write them.
    pub fn registers(&self) -> Vec<String> {
        (0..).map_while(|index| self.handle.register_name(index)).collect()
    }

    /// The value of a register, or `None` if libmgba cannot read a register with that name. libmgba accepts more names
    /// than [`registers`](Core::registers) lists, such as "r13" for "sp".
    pub fn read_register(&self, name: &str) -> Option<i32> {
        self.handle.read_register(&CString::new(name).ok()?)
    }

    /// Sets a register; `false` if libmgba cannot write a register with that name. Bits that do not fit a narrow
    /// register are dropped.
    pub fn write_register(&mut self, name: &str, value: i32) -> bool {
        CString::new(name).is_ok_and(|name| self.handle.write_register(&name, value))
    }
}

pub(crate) fn check_range(len: usize) -> Result<(), Error> {
    if len > MAX_RANGE {
        return Err(Error::RangeTooLong { len });
    }
    Ok(())
}
