//! A simple model of a console's memory: plain bytes.

/// A place in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The memory domain; `None` is the bus.
    pub domain: Option<&'static str>,
    /// The address on the bus, or the offset in the domain.
    pub address: u32,
}

impl Place {
    pub fn plus(&self, bytes: u32) -> Place {
        Place { address: self.address + bytes, ..*self }
    }
}

/// The selected bank of each type of memory of a Game Boy Color.
#[derive(Debug, Clone, Copy)]
pub struct Banks {
    pub rom: u32,
    pub vram: u32,
    pub sram: u32,
    pub wram: u32,
    /// Whether the game has unlocked the cartridge RAM.
    pub unlocked: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum Console {
    Gba,
    Gbc(Banks),
}

/// A byte of the model: at an offset in a memory domain, or with a fixed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    At(&'static str, usize),
    Fixed(u8),
}

pub struct Model {
    pub console: Console,
    domains: Vec<(&'static str, Vec<u8>)>,
}

/// All domains that the model stores. The bytes of other domains, such as `cart1`, are in one of these.
pub const GBA_DOMAINS: [&str; 8] = ["bios", "wram", "iwram", "palette", "vram", "oam", "cart0", "sram"];
pub const GBC_DOMAINS: [&str; 6] = ["cart0", "vram", "sram", "wram", "oam", "hram"];
/// The parts of the bus that the model covers.
const GBA_BUS: [(u32, u32); 7] = [
    (0x0200_0000, 0x0300_0000),
    (0x0300_0000, 0x0400_0000),
    (0x0500_0000, 0x0600_0000),
    (0x0600_0000, 0x0700_0000),
    (0x0700_0000, 0x0800_0000),
    (0x0800_0000, 0x0E00_0000),
    (0x0E00_0000, 0x1000_0000),
];
const GBC_BUS: [(u32, u32); 9] = [
    (0, 0x4000),
    (0x4000, 0x8000),
    (0x8000, 0xA000),
    (0xA000, 0xC000),
    (0xC000, 0xD000),
    (0xD000, 0xE000),
    (0xE000, 0xFE00),
    (0xFE00, 0xFEA0),
    (0xFF80, 0xFFFF),
];

impl Model {
    pub fn new(console: Console) -> Model {
        Model { console, domains: Vec::new() }
    }

    /// The names of all domains that the model stores.
    pub fn names(&self) -> &'static [&'static str] {
        match self.console {
            Console::Gba => &GBA_DOMAINS,
            Console::Gbc(_) => &GBC_DOMAINS,
        }
    }

    pub fn put(&mut self, name: &'static str, bytes: Vec<u8>) {
        self.domains.retain(|(each, _)| *each != name);
        self.domains.push((name, bytes));
    }

    pub fn domain(&self, name: &str) -> Option<&[u8]> {
        let found = self.domains.iter().find(|(each, _)| *each == name);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    /// The size of a memory domain. For the domains of a GBA cartridge, this is the largest possible size of a ROM.
    pub fn size(&self, name: &str) -> u32 {
        match (name, self.console) {
            ("cart0" | "cart1" | "cart2", Console::Gba) => 0x200_0000,
            _ => self.domain(name).expect("a domain").len() as u32,
        }
    }

    /// The parts of the bus that the model covers, each from its first address to its end (exclusive).
    pub fn bus(&self) -> &'static [(u32, u32)] {
        match self.console {
            Console::Gba => &GBA_BUS,
            Console::Gbc(_) => &GBC_BUS,
        }
    }

    /// The byte at this place; `None` if the model does not have it.
    pub fn cell(&self, place: &Place) -> Option<Cell> {
        let address = place.address;
        let (name, offset) = match (place.domain, self.console) {
            (Some("cart1" | "cart2"), _) => ("cart0", address as usize),
            (Some(name), _) => (name, address as usize),
            (None, Console::Gba) => on_advance_bus(address)?,
            (None, Console::Gbc(banks)) => on_color_bus(address, banks)?,
        };
        let size = self.domain(name)?.len();
        if offset < size {
            Some(Cell::At(name, offset))
        } else if name == "cart0" && place.domain.is_none_or(|name| address < self.size(name)) {
            Some(Cell::Fixed(match self.console {
                // Past the end of the ROM, a read returns the index of the halfword, because that address is still on
                // the cartridge's pins.
                Console::Gba => ((address >> 1) >> (8 * (address & 1))) as u8,
                Console::Gbc(_) => 0xFF,
            }))
        } else {
            None
        }
    }

    pub fn byte(&self, place: &Place) -> Option<u8> {
        match self.cell(place)? {
            Cell::Fixed(value) => Some(value),
            Cell::At(name, offset) => Some(self.domain(name)?[offset]),
        }
    }

    /// The bytes from this place on; `None` if the model does not have all of them.
    pub fn read(&self, place: &Place, length: u32) -> Option<Vec<u8>> {
        place.address.checked_add(length)?;
        (0..length).map(|index| self.byte(&place.plus(index))).collect()
    }

    /// Whether all of these bytes can be written.
    pub fn is_writable(&self, place: &Place, length: u32) -> bool {
        (0..length).all(|index| match self.cell(&place.plus(index)) {
            Some(Cell::At(name, _)) => name != "bios" && (name != "cart0" || place.domain.is_some()),
            _ => false,
        })
    }

    pub fn write(&mut self, place: &Place, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            let Some(Cell::At(name, offset)) = self.cell(&place.plus(index as u32)) else { continue };
            let domain = self.domains.iter_mut().find(|(each, _)| *each == name).expect("a domain");
            domain.1[offset] = *byte;
        }
    }
}

fn on_advance_bus(address: u32) -> Option<(&'static str, usize)> {
    let offset = address as usize;
    Some(match address >> 24 {
        2 => ("wram", offset & 0x3_FFFF),
        3 => ("iwram", offset & 0x7FFF),
        5 => ("palette", offset & 0x3FF),
        // The last quarter of each 128 KiB is a mirror of the third quarter.
        6 if offset & 0x1_8000 == 0x1_8000 => ("vram", offset & 0x1_7FFF),
        6 => ("vram", offset & 0x1_FFFF),
        7 => ("oam", offset & 0x3FF),
        0x8..=0xD => ("cart0", offset & 0x1FF_FFFF),
        0xE | 0xF => ("sram", offset & 0x7FFF),
        _ => return None,
    })
}

fn on_color_bus(address: u32, banks: Banks) -> Option<(&'static str, usize)> {
    let banked = |bank: u32, size: u32| (bank * size + address % size) as usize;
    Some(match address {
        0..0x4000 => ("cart0", address as usize),
        0x4000..0x8000 => ("cart0", banked(banks.rom, 0x4000)),
        0x8000..0xA000 => ("vram", banked(banks.vram, 0x2000)),
        0xA000..0xC000 if banks.unlocked => ("sram", banked(banks.sram, 0x2000)),
        0xC000..0xD000 | 0xE000..0xF000 => ("wram", banked(0, 0x1000)),
        0xD000..0xE000 | 0xF000..0xFE00 => ("wram", banked(banks.wram, 0x1000)),
        0xFE00..0xFEA0 => ("oam", address as usize - 0xFE00),
        0xFF80..0xFFFF => ("hram", address as usize - 0xFF80),
        _ => return None,
    })
}
