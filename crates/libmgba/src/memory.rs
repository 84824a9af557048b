use std::ffi::CString;

use crate::core::Core;
use crate::error::Error;
use crate::limits::MAX_RANGE;

/// The bus, as the game's own processor sees it: every address answers, and
/// reads and writes of hardware registers have their effects. A Game Boy has 16
/// address bits; the rest is dropped.
///
/// A number means the bytes from its address on, least significant first. An
/// aligned one is one access of its width; any other is made of bytes, and so is
/// each in the GBA's memory for saves, which has 8 bits. Bytes in the GBA's video
/// memory, which takes none by themselves, are written together with their
/// neighbour.
impl Core {
    /// Reads a byte.
    pub fn read8(&mut self, address: u32) -> u8 {
        self.handle.read8(address) as u8
    }

    /// Reads 16 bits, least significant byte first.
    pub fn read16(&mut self, address: u32) -> u16 {
        self.handle.read16(address) as u16
    }

    /// Reads 32 bits, least significant byte first.
    pub fn read32(&mut self, address: u32) -> u32 {
        self.handle.read32(address)
    }

    /// Writes a byte.
    pub fn write8(&mut self, address: u32, value: u8) {
        self.handle.write8(address, value);
    }

    /// Writes 16 bits.
    pub fn write16(&mut self, address: u32, value: u16) {
        self.handle.write16(address, value);
    }

    /// Writes 32 bits.
    pub fn write32(&mut self, address: u32, value: u32) {
        self.handle.write32(address, value);
    }

    /// Reads `len` bytes one after another; past the last address it goes on
    /// from 0.
    ///
    /// # Errors
    ///
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
    ///
    /// [`Error::RangeTooLong`].
    pub fn write_range(&mut self, address: u32, data: &[u8]) -> Result<(), Error> {
        check_range(data.len())?;
        self.handle.write_range(address, data);
        Ok(())
    }
}

/// The processor's registers.
impl Core {
    /// Their names: "r0" to "r12", "sp", "lr", "pc", "cpsr" and so on for a GBA.
    pub fn registers(&self) -> Vec<String> {
        (0..).map_while(|index| self.handle.register_name(index)).collect()
    }

    /// The value of a register, or `None` if there is none of that name.
    /// libmgba knows more names than [`registers`](Core::registers) lists, such
    /// as "r13" for "sp".
    pub fn read_register(&self, name: &str) -> Option<i32> {
        self.handle.read_register(&CString::new(name).ok()?)
    }

    /// Sets a register; `false` if there is none of that name. What does not fit
    /// a narrow register is cut off.
    pub fn write_register(&mut self, name: &str, value: i32) -> bool {
        match CString::new(name) {
            Ok(name) => self.handle.write_register(&name, value),
            Err(_) => false,
        }
    }
}

pub(crate) fn check_range(len: usize) -> Result<(), Error> {
    if len > MAX_RANGE {
        return Err(Error::RangeTooLong { len });
    }
    Ok(())
}
