/// A part of a console's work RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkRam {
    /// The memory domain that it fills; `None` for the bus.
    pub domain: Option<&'static str>,
    /// Its address there.
    pub address: u32,
    /// In bytes.
    pub length: u32,
}

/// The work RAM of a console that is hashed (0 is the Game Boy Advance, 1 the Game Boy): the two work RAMs of the Game Boy
/// Advance, or what the bus of the Game Boy shows of its work RAM and its high RAM.
pub fn work_ram(console: u8) -> [WorkRam; 2] {
    let domain = |name, length| WorkRam { domain: Some(name), address: 0, length };
    let bus = |address, length| WorkRam { domain: None, address, length };
    match console {
        0 => [domain("wram", 0x40000), domain("iwram", 0x8000)],
        _ => [bus(0xC000, 0x2000), bus(0xFF80, 0x7F)],
    }
}
