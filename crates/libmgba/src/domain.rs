use crate::core::Core;
use crate::error::Error;
use crate::memory::check_range;
use crate::sys::Block;

/// A memory domain: a part of the console's memory that can be accessed without the
/// bus, with offsets from 0. Domains are the entries of `emu.memory` in Lua.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its key in `emu.memory`, such as "wram" or "cart0".
    pub name: String,
    /// The name that `name()` returns in Lua, such as "EWRAM".
    pub short_name: String,
    /// The bus address of its first byte.
    pub base: u32,
    /// The end of its range on the bus: the first address after it, as `bound()` returns it in Lua. A domain with banks
    /// is larger than this range.
    pub bound: u32,
    /// Its size in bytes, including all banks.
    pub size: u32,
    /// Whether writes have an effect. A write to a cartridge patches the ROM in
    /// memory, never its file. Hardware registers can be written only on the bus.
    pub writable: bool,
    pub(crate) block: Block,
}

/// Memory domains. An offset past a domain's range on the bus is in its next bank. On the GBA, only saves can have
/// banks; in other domains, such an offset wraps around. A read past the end of a Game Boy's ROM, video RAM or work RAM,
/// or past the end of a save of either console, returns 0xFF. Every offset is safe.
///
/// Lua's domains have bugs that these domains do not have. Here, the banks of a Game Boy's video RAM follow each other.
/// The second bank of the work RAM of a Game Boy without colour does not repeat the first. Cartridge RAM can be
/// accessed while the game has it locked. A number at an unaligned offset consists of the bytes from there on.
///
/// # Errors
/// The methods return [`Error::UnknownDomain`] if there is no domain with this index. `domain_read_range` and
/// `domain_write_range` also return [`Error::RangeTooLong`].
impl Core {
    /// The memory domains at the last load or reset.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// The index of the domain with this name, for the methods below.
    pub fn domain_index(&self, name: &str) -> Option<usize> {
        self.domains.iter().position(|d| d.name == name)
    }

    /// Reads a byte.
    pub fn domain_read8(&mut self, index: usize, offset: u32) -> Result<u8, Error> {
        Ok(self.domain_read(index, offset, 1)? as u8)
    }

    /// Reads 16 bits, least significant byte first.
    pub fn domain_read16(&mut self, index: usize, offset: u32) -> Result<u16, Error> {
        Ok(self.domain_read(index, offset, 2)? as u16)
    }

    /// Reads 32 bits, least significant byte first.
    pub fn domain_read32(&mut self, index: usize, offset: u32) -> Result<u32, Error> {
        self.domain_read(index, offset, 4)
    }

    /// Writes a byte.
    pub fn domain_write8(&mut self, index: usize, offset: u32, value: u8) -> Result<(), Error> {
        self.domain_write(index, offset, 1, value.into())
    }

    /// Writes 16 bits.
    pub fn domain_write16(&mut self, index: usize, offset: u32, value: u16) -> Result<(), Error> {
        self.domain_write(index, offset, 2, value.into())
    }

    /// Writes 32 bits.
    pub fn domain_write32(&mut self, index: usize, offset: u32, value: u32) -> Result<(), Error> {
        self.domain_write(index, offset, 4, value)
    }

    /// Reads `len` bytes one after another.
    pub fn domain_read_range(&mut self, index: usize, offset: u32, len: usize) -> Result<Vec<u8>, Error> {
        check_range(len)?;
        let mut bytes = vec![0; len];
        self.domain_read_into(index, offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Fills `bytes` as [`domain_read_range`](Core::domain_read_range) does.
    pub fn domain_read_into(&mut self, index: usize, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        let block = self.block(index)?;
        self.handle.domain_read_range(&block, offset, bytes);
        Ok(())
    }

    /// The whole memory of a domain, with its banks one after another, without a copy. `None` if there is no such
    /// domain, or it has no memory.
    pub fn domain_bytes(&self, index: usize) -> Option<&[u8]> {
        self.handle.domain_memory(&self.domains.get(index)?.block)
    }

    /// Writes bytes one after another.
    pub fn domain_write_range(&mut self, index: usize, offset: u32, data: &[u8]) -> Result<(), Error> {
        check_range(data.len())?;
        let block = self.block(index)?;
        for (i, byte) in data.iter().enumerate() {
            let offset = offset.wrapping_add(i as u32);
            self.handle.domain_write(&block, offset, 1, u32::from(*byte));
        }
        Ok(())
    }

    fn domain_read(&mut self, index: usize, offset: u32, width: u32) -> Result<u32, Error> {
        let block = self.block(index)?;
        Ok(self.handle.domain_read(&block, offset, width))
    }

    fn domain_write(&mut self, index: usize, offset: u32, width: u32, value: u32) -> Result<(), Error> {
        let block = self.block(index)?;
        self.handle.domain_write(&block, offset, width, value);
        Ok(())
    }

    fn block(&self, index: usize) -> Result<Block, Error> {
        self.domains.get(index).map(|domain| domain.block).ok_or(Error::UnknownDomain { index })
    }

    pub(crate) fn list_domains(&mut self) {
        self.domains = (0..).map_while(|index| self.handle.domain(index)).collect();
    }
}
