use framewire_libmgba::{Core, Error, Hardware, MAX_RANGE, Options, Platform, SaveType};

use crate::support::{gb, gb_core, gba, gba_core, lua, run};

fn index(core: &Core, name: &str) -> usize {
    core.domain_index(name).unwrap_or_else(|| panic!("no domain {name}: {:?}", core.domains()))
}

#[test]
fn the_domains_are_those_that_lua_has() {
    for mut core in [gba_core(), gb_core()] {
        let theirs = lua(
            &mut core,
            "for key, d in pairs(emu.memory) do
               print(table.concat({key, d:name(), d:base(), d:bound(), d:size()}, ' '))
             end",
        );
        let ours: Vec<_> = core
            .domains()
            .iter()
            .map(|d| format!("{} {} {} {} {}", d.name, d.short_name, d.base, d.bound, d.size))
            .collect();
        // In Lua, two Game Boy domains have wrong sizes: the video RAM includes the cartridge's RAM and, before mGBA
        // 0.10.2, the cartridge has the largest possible size.
        let is_gb = core.platform() == Platform::Gb;
        let without_wrong = |all: Vec<String>| -> Vec<String> {
            let wrong =
                |domain: &String| is_gb && (domain.starts_with("vram ") || domain.starts_with("cart0 "));
            let mut all: Vec<_> = all.into_iter().filter(|domain| !wrong(domain)).collect();
            all.sort();
            all
        };
        assert_eq!(without_wrong(theirs), without_wrong(ours));
    }
}

#[test]
fn a_game_boys_cartridge_is_as_large_as_its_rom() {
    let core = gb_core();
    let cartridge = &core.domains()[index(&core, "cart0")];
    assert_eq!(cartridge.size as usize, core.rom_size());
}

#[test]
fn a_gba_has_its_ten_domains() {
    let core = gba_core();
    for (name, size) in [
        ("bios", 0x4000),
        ("wram", 0x40000),
        ("iwram", 0x8000),
        ("io", 0x400),
        ("palette", 0x400),
        ("vram", 0x18000),
        ("oam", 0x400),
        ("cart0", 0x200_0000),
        ("cart1", 0x200_0000),
        ("cart2", 0x200_0000),
    ] {
        let domain = &core.domains()[index(&core, name)];
        assert_eq!(domain.size, size, "{name}");
    }
    assert!(!core.domains()[index(&core, "bios")].writable);
    assert_eq!(core.domain_index("nonsense"), None);
}

/// Offsets to test in a domain of this size: its ends, the borders of banks, odd
/// offsets, and offsets far past its end.
fn offsets(size: u32) -> Vec<u32> {
    let mut all = vec![0, 1, 2, 3, 0x101, 0x7FE, 0x1FFD, 0x3FFE, 0x3FFF, 0x4001, 0x7FFF];
    all.extend([size - 4, size - 1, size, size + 1, size * 2 + 5]);
    all.extend([0x7FFF_FFFE, 0xFFFF_FFFF]);
    all
}

/// Compares with Lua where Lua's domains are right: at aligned offsets, but not in a Game Boy's video RAM, and not in
/// its cartridge RAM while it is locked.
#[test]
fn reads_equal_those_of_lua() {
    for mut core in [gba_core(), gb_core()] {
        run(&mut core, 5);
        let is_gb = core.platform() == Platform::Gb;
        if is_gb {
            core.write8(0, 0x0A);
        }
        // Bytes other than zero in every memory domain.
        for i in 0..core.domains().len() {
            if core.domains()[i].writable {
                for offset in 0..0x300 {
                    core.domain_write8(i, offset, (offset * 7 + 13) as u8).unwrap();
                }
            }
        }
        for domain in core.domains().to_vec() {
            let i = index(&core, &domain.name);
            let inside = |offset: &u32| offset.is_multiple_of(4) && (!is_gb || *offset <= domain.size - 5);
            for offset in offsets(domain.size).into_iter().filter(inside) {
                if is_gb && domain.name == "vram" {
                    continue;
                }
                let ours = format!(
                    "{} {} {} {:?}",
                    core.domain_read8(i, offset).unwrap(),
                    core.domain_read16(i, offset).unwrap(),
                    core.domain_read32(i, offset).unwrap(),
                    core.domain_read_range(i, offset, 5).unwrap(),
                );
                let theirs = lua(
                    &mut core,
                    &format!(
                        "local d, o = emu.memory.{}, {offset}
                         local b = {{ d:readRange(o, 5):byte(1, -1) }}
                         print(d:read8(o) .. ' ' .. d:read16(o) .. ' ' .. d:read32(o)
                           .. ' [' .. table.concat(b, ', ') .. ']')",
                        domain.name
                    ),
                );
                assert_eq!([ours], theirs[..], "{} at {offset:#x}", domain.name);
            }
        }
    }
}

#[test]
fn writes_are_visible_on_the_bus_and_in_lua() {
    let mut core = gba_core();
    let wram = index(&core, "wram");
    core.domain_write32(wram, 0x100, 0xDDCC_BBAA).unwrap();
    core.domain_write16(wram, 0x104, 0xFFEE).unwrap();
    core.domain_write8(wram, 0x106, 0x01).unwrap();
    assert_eq!(core.read_range(0x0200_0100, 7).unwrap(), [0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF, 0x01]);
    core.domain_write_range(wram, 0x3FFFF, &[5, 6]).unwrap();
    assert_eq!(core.read8(0x0203_FFFF), 5);
    assert_eq!(core.read8(0x0200_0000), 6, "wrapped");
    assert_eq!(lua(&mut core, "print(emu.memory.wram:read8(0))"), ["6"]);
}

#[test]
fn every_domain_can_be_read_and_written_at_every_offset() {
    for mut core in [gba_core(), gb_core()] {
        for i in 0..core.domains().len() {
            for offset in offsets(core.domains()[i].size) {
                let _ = core.domain_write8(i, offset, 0xA5);
                let _ = core.domain_write16(i, offset, 0xA5A5);
                let _ = core.domain_write32(i, offset, 0xA5A5_A5A5);
                core.domain_read32(i, offset).unwrap();
            }
            let size = core.domains()[i].size as usize;
            core.domain_read_range(i, 0, size + 0x10000).unwrap_or_else(|e| {
                assert!(matches!(e, Error::RangeTooLong { .. }));
                Vec::new()
            });
        }
        run(&mut core, 3);
    }
}

#[test]
fn a_game_boys_domains_match_the_bus_and_end_after_the_last_bank() {
    let mut core = gb_core();
    let vram = index(&core, "vram");
    core.domain_write8(vram, 0x10, 0x42).unwrap();
    assert_eq!(core.read8(0x8010), 0x42);
    let cart = index(&core, "cart0");
    assert_eq!(core.domain_read8(cart, 0x151).unwrap(), 0x00);
    assert_eq!(core.domain_read8(cart, 0x152).unwrap(), 0xC0);
    assert_eq!(core.domain_read8(cart, 0x8000).unwrap(), 0xFF, "no third bank");
}

#[test]
fn the_work_ram_of_a_game_boy_without_colour_is_that_on_the_bus() {
    let mut core = gb_core();
    // libmgba knows only from the second reset on that this game does not run on a Game Boy Color.
    core.reset();
    let wram = index(&core, "wram");
    assert_eq!(core.domains()[wram].size, 0x2000);
    for offset in (0..0x2000).step_by(0x7F) {
        core.domain_write8(wram, offset, (offset / 0x100) as u8).unwrap();
    }
    for offset in (0..0x2000).step_by(0x7F) {
        let value = (offset / 0x100) as u8;
        assert_eq!(core.read8(0xC000 + offset), value, "{offset:#x}");
        assert_eq!(core.domain_read_range(wram, offset, 1).unwrap(), [value], "{offset:#x}");
    }
}

fn gbc_core() -> Core {
    let mut rom = gb("FRAMEWIRE");
    rom[0x143] = 0xC0;
    Core::from_bytes(&rom).expect("a valid Game Boy Color ROM")
}

#[test]
fn every_bank_of_a_game_boy_color_is_read_and_written_in_its_domain() {
    let mut core = gbc_core();
    for (name, size, bank_size, select, window) in
        [("wram", 0x8000, 0x1000, 0xFF70, 0xD000), ("vram", 0x4000, 0x2000, 0xFF4F, 0x8000)]
    {
        let domain = index(&core, name);
        assert_eq!(core.domains()[domain].size, size);
        for mapped in 0..2 {
            core.write8(select, mapped);
            for offset in (0..size).step_by(0x7F) {
                core.domain_write8(domain, offset, (offset / bank_size * 16 + offset % 13) as u8).unwrap();
            }
        }
        for bank in 1..size / bank_size {
            core.write8(select, bank as u8);
            for offset in
                (bank * bank_size..(bank + 1) * bank_size).filter(|offset| offset.is_multiple_of(0x7F))
            {
                let value = (bank * 16 + offset % 13) as u8;
                assert_eq!(core.read8(window + offset % bank_size), value, "{name} {offset:#x} on the bus");
                assert_eq!(core.domain_read8(domain, offset).unwrap(), value, "{name} {offset:#x}");
            }
        }
        let edge = bank_size - 2;
        core.domain_write32(domain, edge, 0x4433_2211).unwrap();
        assert_eq!(core.domain_read_range(domain, edge, 4).unwrap(), [0x11, 0x22, 0x33, 0x44], "{name}");
    }
}

#[test]
fn the_bytes_of_a_domain_are_those_of_all_its_banks() {
    let hardware = Hardware { save_type: SaveType::Flash1m, ..Hardware::default() };
    let options = Options { hardware, ..Options::default() };
    let mut flash = Core::from_bytes_with(&gba("FLASH", "BFWE"), &options).unwrap();
    flash.load_save(&[]).unwrap();
    flash.reset();
    // These writes select the second bank of the flash.
    for (address, value) in [(0x5555, 0xAA), (0x2AAA, 0x55), (0x5555, 0xB0), (0, 1)] {
        flash.write8(0x0E00_0000 + address, value);
    }
    for (mut core, name, bank_size) in [(flash, "sram", 0x10000), (gbc_core(), "vram", 0x2000)] {
        let domain = index(&core, name);
        core.domain_write8(domain, 5, 0x11).unwrap();
        core.domain_write8(domain, bank_size + 5, 0x22).unwrap();
        if name == "sram" {
            assert_eq!(core.read8(0x0E00_0005), 0x22, "the second bank is selected");
        }
        let size = core.domains()[domain].size as usize;
        let whole = core.domain_read_range(domain, 0, size).unwrap();
        assert!(core.domain_bytes(domain) == Some(&whole[..]), "{name}");
    }
}

#[test]
fn cartridge_ram_can_be_accessed_while_the_game_has_it_locked() {
    let mut core = gb_core();
    let sram = index(&core, "sram");
    core.write8(0, 0);
    core.domain_write16(sram, 0x1001, 0xBEEF).unwrap();
    assert_eq!(core.domain_read16(sram, 0x1001).unwrap(), 0xBEEF);
    core.write8(0, 0x0A);
    assert_eq!(core.read16(0xB001), 0xBEEF);
}

#[test]
fn numbers_at_unaligned_addresses_consist_of_the_bytes_there() {
    for mut core in [gba_core(), gb_core()] {
        let base = if core.platform() == Platform::Gba { 0x0200_0100 } else { 0xC100 };
        let domain = index(&core, "wram");
        let bytes: Vec<u8> = (0..16).collect();
        core.write_range(base, &bytes).unwrap();
        for at in 0..8u32 {
            let (offset, first) = (0x100 + at, at);
            let (two, four) = (first | (first + 1) << 8, 0x0302_0100 + 0x0101_0101 * first);
            assert_eq!((u32::from(core.read16(base + at)), core.read32(base + at)), (two, four));
            assert_eq!(u32::from(core.domain_read16(domain, offset).unwrap()), two);
            assert_eq!(core.domain_read32(domain, offset).unwrap(), four);
        }
        core.write32(base + 1, 0xD4C3_B2A1);
        core.write16(base + 7, 0xF6E5);
        let expected = [0, 0xA1, 0xB2, 0xC3, 0xD4, 5, 6, 0xE5, 0xF6, 9];
        assert_eq!(core.read_range(base, 10).unwrap(), expected);
        core.domain_write32(domain, 0x102, 0x4433_2211).unwrap();
        assert_eq!(core.read_range(base, 8).unwrap(), [0, 0xA1, 0x11, 0x22, 0x33, 0x44, 6, 0xE5]);
    }
}

#[test]
fn writing_a_byte_of_video_memory_does_not_change_its_neighbour() {
    let mut core = gba_core();
    for (name, base) in [("palette", 0x0500_0000), ("vram", 0x0601_0000), ("oam", 0x0700_0000)] {
        core.write32(base + 0x10, 0x4433_2211);
        core.write8(base + 0x11, 0xAA);
        assert_eq!(core.read32(base + 0x10), 0x4433_AA11, "{name}");
        let domain = index(&core, name);
        let offset = (base & 0xFF_FFFF) + 0x13;
        core.domain_write8(domain, offset, 0xBB).unwrap();
        assert_eq!(core.domain_read32(domain, offset - 3).unwrap(), 0xBB33_AA11, "{name}");
    }
}

#[test]
fn unknown_domains_and_ranges_that_are_too_long_are_errors() {
    let mut core = gba_core();
    let none = core.domains().len();
    for result in [
        core.domain_read8(none, 0).map(drop),
        core.domain_read16(none, 0).map(drop),
        core.domain_read32(none, 0).map(drop),
        core.domain_read_range(none, 0, 1).map(drop),
        core.domain_write8(none, 0, 0),
        core.domain_write_range(usize::MAX, 0, &[0]),
    ] {
        assert!(matches!(result, Err(Error::UnknownDomain { .. })));
    }
    assert!(matches!(core.domain_read_range(0, 0, MAX_RANGE + 1), Err(Error::RangeTooLong { .. })));
}
