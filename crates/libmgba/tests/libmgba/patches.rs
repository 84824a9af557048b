//! Tests of patches of each kind, which are made here for the demo game and a Game Boy ROM.

use std::path::Path;

use framewire_libmgba::{Core, Error, Options, Patching};

use crate::support::{DEMO, Transcript, file, gb, run};

fn patched(patching: &Patching) -> Options {
    Options { patching: patching.clone(), ..Options::default() }
}

fn open(path: &Path, patching: &Patching) -> Result<Core, Error> {
    Core::open_with(path, &patched(patching))
}

/// A changed copy of a ROM, with another title and 64 more bytes at the end.
fn changed(rom: &[u8], title: usize) -> Vec<u8> {
    let mut changed = rom.to_vec();
    changed[title..title + 4].copy_from_slice(b"MINE");
    changed.extend_from_slice(&[0xAB; 64]);
    changed
}

fn ips(records: &[&[u8]], end: &[u8]) -> Vec<u8> {
    [b"PATCH", records.concat().as_slice(), b"EOF", end].concat()
}

/// A record of an IPS patch that writes bytes.
fn record(offset: usize, bytes: &[u8]) -> Vec<u8> {
    [&(offset as u32).to_be_bytes()[1..], &(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

/// A record of an IPS patch that writes one byte several times.
fn repeat(offset: usize, count: u16, byte: u8) -> Vec<u8> {
    [&(offset as u32).to_be_bytes()[1..], &[0, 0], &count.to_be_bytes(), &[byte]].concat()
}

/// A number of variable length, as UPS and BPS patches store it.
fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let part = (value & 0x7F) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(part | 0x80);
            return bytes;
        }
        bytes.push(part);
        value -= 1;
    }
}

/// Appends the checksums of both ROMs and of the patch.
fn with_sums(mut patch: Vec<u8>, before: &[u8], after: &[u8]) -> Vec<u8> {
    patch.extend(crc32fast::hash(before).to_le_bytes());
    patch.extend(crc32fast::hash(after).to_le_bytes());
    patch.extend(crc32fast::hash(&patch).to_le_bytes());
    patch
}

fn ups(before: &[u8], after: &[u8]) -> Vec<u8> {
    let mut patch = [b"UPS1".to_vec(), number(before.len()), number(after.len())].concat();
    let byte = |rom: &[u8], at: usize| rom.get(at).copied().unwrap_or(0);
    let length = before.len().max(after.len());
    let (mut at, mut last) = (0, 0);
    while at < length {
        if byte(before, at) == byte(after, at) {
            at += 1;
            continue;
        }
        patch.extend(number(at - last));
        while at < length && byte(before, at) != byte(after, at) {
            patch.push(byte(before, at) ^ byte(after, at));
            at += 1;
        }
        patch.push(0);
        at += 1;
        last = at;
    }
    with_sums(patch, before, after)
}

/// The head of a BPS patch for ROMs with these sizes.
fn bps_head(before: usize, after: usize) -> Vec<u8> {
    [b"BPS1".to_vec(), number(before), number(after), number(4), b"note".to_vec()].concat()
}

fn action(command: usize, length: usize) -> Vec<u8> {
    number((length - 1) << 2 | command)
}

/// A BPS patch with all four kinds of actions. `after` is the ROM that `changed` makes.
fn bps(before: &[u8], after: &[u8], title: usize) -> Vec<u8> {
    let mut patch = bps_head(before.len(), after.len());
    // Bytes from the same position of the ROM, up to the title. Then the new title.
    patch.extend(action(0, title));
    patch.extend(action(1, 4));
    patch.extend_from_slice(&after[title..title + 4]);
    // The rest of the ROM, copied from a position that is given as a distance from 0.
    patch.extend(action(2, before.len() - title - 4));
    patch.extend(number((title + 4) << 1));
    // The end repeats one byte: each byte is copied from the byte before it.
    patch.extend(action(1, 1));
    patch.push(0xAB);
    patch.extend(action(3, 63));
    patch.extend(number(before.len() << 1));
    with_sums(patch, before, after)
}

/// Checks that the core has this ROM.
#[track_caller]
fn assert_rom(core: &mut Core, expected: &[u8], what: &str) {
    let domain = core.domain_index("cart0").unwrap();
    let rom = core.domain_read_range(domain, 0, expected.len()).unwrap();
    assert_eq!((core.rom_size(), core.crc32()), (expected.len(), crc32fast::hash(expected)), "{what}");
    assert!(rom == expected, "{what}");
}

#[test]
fn patches_of_each_kind_take_effect() {
    for (ending, rom, title) in [("gba", DEMO.to_vec(), 0xA0), ("gb", gb("FRAMEWIRE"), 0x134)] {
        let wanted = changed(&rom, title);
        let records = [record(title, b"MINE"), repeat(rom.len(), 64, 0xAB)];
        let patches = [
            ("ips", ips(&[&records[0], &records[1]], b"")),
            ("ups", ups(&rom, &wanted)),
            ("bps", bps(&rom, &wanted, title)),
        ];
        for (kind, patch) in patches {
            let what = format!("{kind} of {ending}");
            let (home, path) = file(&format!("game.{ending}"), &rom);
            let next_to = home.path().join(format!("game.{kind}"));
            std::fs::write(&next_to, &patch).unwrap();
            let mut core = open(&path, &Patching::NextTo).expect(&what);
            assert_eq!(core.patch(), Some(next_to.as_path()));
            assert!(core.title().starts_with("MINE"), "{what}: {}", core.title());
            run(&mut core, 2);
            assert_rom(&mut core, &wanted, &what);
            // `Core::open` does not use the patch.
            let core = Core::open(&path).unwrap();
            assert_eq!((core.title().as_str(), core.patch()), ("FRAMEWIRE", None));
            // The patch can be given as a file, even for a ROM that is given as bytes.
            let named = Patching::File(next_to);
            assert_rom(&mut open(&path, &named).unwrap(), &wanted, &what);
            assert_rom(&mut Core::from_bytes_with(&rom, &patched(&named)).unwrap(), &wanted, &what);
        }
    }
}

#[test]
fn a_game_that_is_loaded_later_gets_the_patch_next_to_it() {
    let (home, path) = file("game.gba", DEMO);
    std::fs::write(home.path().join("game.ips"), ips(&[&record(0xA0, b"MINE")], b"")).unwrap();
    let (_other, plain) = file("plain.gba", DEMO);
    let mut core = open(&plain, &Patching::NextTo).unwrap();
    core.load_file(&path).unwrap();
    assert!(core.title().starts_with("MINE"));
    core.load_file(&plain).unwrap();
    assert_eq!((core.title().as_str(), core.patch()), ("FRAMEWIRE", None));
}

#[test]
fn a_write_to_the_rom_does_not_hide_the_patch() {
    let (home, path) = file("game.gba", DEMO);
    std::fs::write(home.path().join("game.ips"), ips(&[&record(0xA0, b"MINE")], b"")).unwrap();
    let mut core = open(&path, &Patching::NextTo).unwrap();
    let transcript = Transcript::attach(&mut core);
    let cart = core.domain_index("cart0").unwrap();
    core.domain_write8(cart, 0x200, 1).unwrap();
    core.run_script_source("test", "print('ran')").unwrap();
    assert_eq!(transcript.take_info(), ["ran"]);
    assert!(core.patch().is_some());
}

#[test]
fn an_ips_patch_can_shorten_the_rom() {
    let (home, path) = file("game.gba", DEMO);
    let size = DEMO.len() - 16;
    let end = &(size as u32).to_be_bytes()[1..];
    std::fs::write(home.path().join("game.ips"), ips(&[&record(0xA0, b"MINE")], end)).unwrap();
    assert_eq!(open(&path, &Patching::NextTo).unwrap().rom_size(), size);
}

#[test]
fn invalid_patches_are_refused_with_the_position_and_the_reason() {
    let wanted = changed(DEMO, 0xA0);
    let good_ups = ups(DEMO, &wanted);
    let good_bps = bps(DEMO, &wanted, 0xA0);
    let good_ips = ips(&[&record(0xA0, b"MINE")], b"");
    let flipped = |patch: &[u8], at: usize| {
        let mut patch = patch.to_vec();
        patch[at] ^= 1;
        patch
    };
    let size = DEMO.len();
    let bps_with =
        |actions: &[Vec<u8>]| with_sums([bps_head(size, size), actions.concat()].concat(), DEMO, DEMO);
    let mut other = DEMO.to_vec();
    other[0x200] ^= 1;
    let beyond = [number(size), vec![1, 0]].concat();
    let ups_of = |before: usize, after: usize, blocks: &[u8]| {
        with_sums([b"UPS1".to_vec(), number(before), number(after), blocks.to_vec()].concat(), DEMO, DEMO)
    };
    let cases: Vec<(Vec<u8>, usize, &str)> = vec![
        (Vec::new(), 0, "the file is empty"),
        (b"IPS32\0\0".to_vec(), 0, "begins with none of PATCH (IPS), UPS1 and BPS1"),
        (b"PATCH".to_vec(), 5, "the end mark EOF is missing"),
        (good_ips[..good_ips.len() - 3].to_vec(), 14, "the end mark EOF is missing"),
        (b"PATCH\0\0".to_vec(), 5, "cut short"),
        (b"PATCH\0\0\x10\0\x08ab".to_vec(), 10, "cut short"),
        (b"PATCH\0\0\x10\0\0\0".to_vec(), 10, "cut short"),
        (b"PATCH\0\0\x10\0\0\0\0\x01EOF".to_vec(), 5, "repeats a byte 0 times"),
        (ips(&[], &[0xFF, 0xFF, 0xFF]), 8, "cuts the ROM to 16777215 bytes"),
        (ips(&[], &[0, 0, 0]), 8, "cuts the ROM to 0 bytes"),
        (b"UPS1".to_vec(), 4, "cut short"),
        (flipped(&good_ups, 9), good_ups.len() - 4, "checksum of the patch"),
        (good_ups[..good_ups.len() - 1].to_vec(), good_ups.len() - 5, "checksum of the patch"),
        (ups(&other, &wanted), ups(&other, &wanted).len() - 12, "is for a ROM of"),
        (ups(b"x", DEMO), ups(b"x", DEMO).len() - 12, "has this patch already"),
        (ups_of(1 << 40, size, &[]), 4, "a ROM has at most"),
        (ups_of(size, size, &beyond), 4 + 2 * number(size).len(), "changes the byte"),
        (ups_of(size, size, &[0x80, 0x55]), 4 + 2 * number(size).len() + 2, "cut short"),
        (with_sums(b"UPS1\0\0\0\0\0\0\0\0\0\0\0\0\x80".to_vec(), DEMO, DEMO), 4, "larger than any ROM"),
        (flipped(&good_bps, 20), good_bps.len() - 4, "checksum of the patch"),
        (bps(&other, &wanted, 0xA0), bps(&other, &wanted, 0xA0).len() - 12, "is for a ROM of"),
        (bps_with(&[action(0, size + 1)]), bps_head(size, size).len(), "writes"),
        (bps_with(&[action(2, 8), number(size << 1)]), bps_head(size, size).len(), "of the ROM"),
        (bps_with(&[action(2, 8), number(4 << 1 | 1)]), bps_head(size, size).len() + 1, "leads 4 bytes back"),
        (bps_with(&[action(3, 8), number(0)]), bps_head(size, size).len(), "of the unfinished patched ROM"),
        (bps_with(&[action(0, 16)]), bps_head(size, size).len() + 1, "the actions write 16 bytes"),
        (bps_with(&[action(1, 9)]), bps_head(size, size).len() + 1, "cut short"),
        (
            bps_with(&[action(0, size - 1), action(1, 1), vec![DEMO[size - 1] ^ 1]]),
            bps_with(&[action(0, size - 1), action(1, 1), vec![0]]).len() - 8,
            "in place of",
        ),
    ];
    let (home, path) = file("game.gba", DEMO);
    for (number, (patch, at, reason)) in cases.into_iter().enumerate() {
        let name = home.path().join("bad.patch");
        std::fs::write(&name, &patch).unwrap();
        let error = open(&path, &Patching::File(name.clone())).expect_err(reason).to_string();
        let begin = format!("cannot apply the patch {} (byte {at}): ", name.display());
        assert!(
            error.starts_with(&begin) && error.contains(reason),
            "{number}: byte {at}, {reason}: {error}"
        );
    }
    let missing = Patching::File(home.path().join("none.ips"));
    assert!(open(&path, &missing).unwrap_err().to_string().contains("cannot read"));
}
