/// A part of a console's work RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkRam {
    /// The memory domain that it is all of; `None` for the bus.
    pub domain: Option<&'static str>,
    /// Where it begins there.
    pub address: u32,
    /// In bytes.
    pub length: u32,
}

/// The work RAM of a console (0 is the Game Boy Advance, 1 the Game Boy), of which hashes are taken: the two work RAMs of
/// the Game Boy Advance; of the Game Boy what its work RAM and its high RAM show on the bus.
pub fn work_ram(console: u8) -> [WorkRam; 2] {
    let domain = |name, length| WorkRam { domain: Some(name), address: 0, length };
    let bus = |address, length| WorkRam { domain: None, address, length };
    match console {
        0 => [domain("wram", 0x40000), domain("iwram", 0x8000)],
        _ => [bus(0xC000, 0x2000), bus(0xFF80, 0x7F)],
    }
}
