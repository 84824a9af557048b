//! Where the bytes of memory domains are on the bus: the address space that the console's processor sees.

use crate::Console;

/// Where a byte of a memory domain is on the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnBus {
    /// The byte's bank, if the domain has banks. The bus shows only some of a domain's banks at a time.
    pub bank: Option<u32>,
    /// The byte's address. If the domain has banks, this is its address while its bank is mapped.
    pub address: u32,
}

/// The addresses at which the bus shows a memory domain.
struct Window {
    domain: &'static str,
    /// The address of the domain's first byte.
    base: u32,
    /// If the domain has banks: the size of a bank in bytes, and the address that all banks except the first share.
    banks: Option<(u32, u32)>,
}

const fn whole(domain: &'static str, base: u32) -> Window {
    Window { domain, base, banks: None }
}

const fn banked(domain: &'static str, base: u32, size: u32, others: u32) -> Window {
    Window { domain, base, banks: Some((size, others)) }
}

const GBA: [Window; 10] = [
    whole("wram", 0x0200_0000),
    whole("iwram", 0x0300_0000),
    whole("io", 0x0400_0000),
    whole("palette", 0x0500_0000),
    whole("vram", 0x0600_0000),
    whole("oam", 0x0700_0000),
    whole("cart0", 0x0800_0000),
    whole("cart1", 0x0A00_0000),
    whole("cart2", 0x0C00_0000),
    banked("sram", 0x0E00_0000, 0x1_0000, 0x0E00_0000),
];

const GB: [Window; 7] = [
    banked("cart0", 0, 0x4000, 0x4000),
    banked("vram", 0x8000, 0x2000, 0x8000),
    banked("sram", 0xA000, 0x2000, 0xA000),
    banked("wram", 0xC000, 0x1000, 0xD000),
    whole("oam", 0xFE00),
    whole("io", 0xFF00),
    whole("hram", 0xFF80),
];

impl Console {
    fn window(self, domain: &str) -> Option<&'static Window> {
        let windows: &'static [Window] = match self {
            Console::Gba => &GBA,
            Console::Gb => &GB,
        };
        windows.iter().find(|window| window.domain == domain)
    }

    /// Where the byte at this offset of a domain is on the bus; `None` if the bus does not show it.
    pub fn on_bus(self, domain: &str, offset: u32) -> Option<OnBus> {
        let Window { base, banks, .. } = self.window(domain)?;
        let Some((size, others)) = banks else {
            return Some(OnBus { bank: None, address: base.checked_add(offset)? });
        };
        let bank = offset / size;
        let start = if bank == 0 { base } else { others };
        Some(OnBus { bank: Some(bank), address: start + offset % size })
    }

    /// The offset of the end (exclusive) of the bank that contains `offset`.
    pub(crate) fn bank_end(self, domain: &str, offset: u32) -> Option<u32> {
        let (size, _) = self.window(domain)?.banks?;
        Some((offset / size + 1).saturating_mul(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bank_has_its_address_on_the_bus() {
        let at = |console: Console, domain, offset| {
            let OnBus { bank, address } = console.on_bus(domain, offset).unwrap();
            (bank, address)
        };
        assert_eq!(at(Console::Gba, "wram", 0x123), (None, 0x0200_0123));
        for (domain, offset, expected) in [
            ("wram", 0xFFF, (Some(0), 0xCFFF)),
            ("wram", 0x1000, (Some(1), 0xD000)),
            ("wram", 0x5123, (Some(5), 0xD123)),
            ("vram", 0x3FFF, (Some(1), 0x9FFF)),
            ("sram", 0x2000, (Some(1), 0xA000)),
            ("cart0", 0x3FFF, (Some(0), 0x3FFF)),
            ("cart0", 0x8001, (Some(2), 0x4001)),
            ("hram", 2, (None, 0xFF82)),
        ] {
            assert_eq!(at(Console::Gb, domain, offset), expected, "{domain} {offset:#x}");
        }
        assert_eq!(Console::Gba.on_bus("eeprom", 0), None);
        assert_eq!(Console::Gb.bank_end("wram", 0x1001), Some(0x2000));
    }
}
