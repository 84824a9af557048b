//! The I/O registers of the consoles.

mod gb;
mod gba;

use framewire_expression::Type;

pub(super) use gb::GB;
pub(super) use gba::GBA;

/// The parts of a register: name, lowest bit and number of bits.
type BitFields = &'static [(&'static str, u32, u32)];

pub(super) struct IoRegister {
    pub(super) name: &'static str,
    /// Bus address.
    pub(super) address: u32,
    /// An unsigned type of 1, 2 or 4 bytes.
    pub(super) kind: Type,
    pub(super) doc: &'static str,
    pub(super) fields: BitFields,
}

/// A register of 8 bits.
const fn byte(name: &'static str, address: u32, doc: &'static str, fields: BitFields) -> IoRegister {
    IoRegister { name, address, kind: Type::U8, doc, fields }
}

/// A register of 16 bits.
const fn half(name: &'static str, address: u32, doc: &'static str, fields: BitFields) -> IoRegister {
    IoRegister { name, address, kind: Type::U16, doc, fields }
}

/// A register of 32 bits.
const fn word(name: &'static str, address: u32, doc: &'static str, fields: BitFields) -> IoRegister {
    IoRegister { name, address, kind: Type::U32, doc, fields }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_within_their_register_and_registers_do_not_overlap() {
        for table in [GBA, GB] {
            for register in table {
                let bits = 8 * u32::from(register.kind.size());
                let mut used = 0_u32;
                for (name, low, count) in register.fields {
                    let is_within = *count > 0 && low + count <= bits;
                    assert!(is_within, "{}.{name} is not within its register", register.name);
                    let mask = u32::MAX >> (32 - count) << low;
                    assert_eq!(used & mask, 0, "{}.{name} overlaps another part", register.name);
                    used |= mask;
                }
            }
            // SIODATA32 overlaps SIOMULTI0 and SIOMULTI1: it is the same memory in another mode of the serial port.
            let apart: Vec<_> = table.iter().filter(|register| register.name != "SIODATA32").collect();
            for pair in apart.windows(2) {
                let end = pair[0].address + u32::from(pair[0].kind.size());
                assert!(end <= pair[1].address, "{} overlaps {}", pair[0].name, pair[1].name);
            }
            assert!(table.is_sorted_by_key(|register| register.address));
        }
    }

    /// The registers that the Pan Docs list, except 0xff72 to 0xff75, which have no purpose.
    #[test]
    fn the_table_of_the_game_boy_is_complete() {
        let parts =
            [0x00..0x03, 0x04..0x08, 0x0f..0x15, 0x16..0x1f, 0x20..0x27, 0x30..0x4e, 0x4f..0x57, 0x68..0x6d];
        let expected = parts.into_iter().flatten().chain([0x70, 0x76, 0x77, 0xff]).map(|low| 0xff00 + low);
        let addresses: Vec<u32> = GB.iter().map(|register| register.address).collect();
        assert_eq!(addresses, expected.collect::<Vec<u32>>());
    }
}
