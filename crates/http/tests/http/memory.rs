//! Reading and writing: the bus, memory domains, registers.

use super::support::{PATIENCE, Server, field};

#[test]
fn values_of_every_width_round_trip_on_the_bus() {
    let server = Server::start();
    let scratch = field("scratch");
    for (bits, value) in [
        (8, 0u32),
        (8, 0x7f),
        (8, 0x80),
        (8, 0xff),
        (16, 0x8000),
        (16, 0xffff),
        (32, 0x8000_0000),
        (32, 0xffff_ffff),
    ] {
        server.post_ok(&format!("/core/write{bits}?address={scratch}&value={value}"), "");
        assert_eq!(
            server.number(&format!("/core/read{bits}?address={scratch}")),
            i64::from(value),
            "{bits} bits"
        );
    }
}

#[test]
fn addresses_are_parsed_as_luas_tonumber_parses_them() {
    let server = Server::start();
    server.post_ok("/core/write8?address=0x02000100&value=201", "");
    for address in
        ["0x02000100", "0X02000100", "0x2000100", "33554688", "%2033554688", "33554688.0", "+33554688"]
    {
        assert_eq!(server.text(&format!("/core/read8?address={address}")), "201", "{address}");
    }
    server.post_ok("/core/write8?address=0x020001aF&value=17", "");
    assert_eq!(server.text("/core/read8?address=0X020001Af"), "17");
}

#[test]
fn ranges_are_lower_case_hex_pairs() {
    let server = Server::start();
    let scratch = field("scratch");
    for (offset, value) in [0xd3u8, 0x00, 0x7f, 0xea].iter().enumerate() {
        server.post_ok(&format!("/core/write8?address={}&value={value}", scratch + offset as u32), "");
    }
    assert_eq!(server.text(&format!("/core/readrange?address={scratch}&length=4")), "d3,00,7f,ea");
    assert_eq!(server.text("/core/readrange?address=0x02000100&length=0x4"), "d3,00,7f,ea");
    assert_eq!(server.text("/core/readrange?address=0x02000100&length=0"), "");
    assert_eq!(
        server.text("/memorydomain/readrange?memoryDomain=wram&address=0x100&length=4"),
        "d3,00,7f,ea"
    );
}

#[test]
fn the_longest_range_is_returned_completely() {
    let server = Server::with(|app| app.deadline = PATIENCE);
    let text = server.text("/core/readrange?address=0x02000000&length=16777216");
    assert_eq!(text.len(), 3 * 16 * 1024 * 1024 - 1);
}

#[test]
fn domains_are_listed_with_base_bound_size_and_name() {
    let server = Server::start();
    let domains = server.text("/coreadapter/memory");
    let mut names: Vec<&str> = domains.split(',').collect();
    names.sort_unstable();
    for name in ["bios", "cart0", "cart1", "cart2", "io", "iwram", "oam", "palette", "vram", "wram"] {
        assert!(names.contains(&name), "{name} is in {domains}");
    }
    assert_eq!(server.number("/memorydomain/base?memoryDomain=wram"), 0x0200_0000);
    assert_eq!(server.number("/memorydomain/bound?memoryDomain=wram"), 0x0204_0000);
    assert_eq!(server.number("/memorydomain/size?memoryDomain=wram"), 0x4_0000);
    assert_eq!(server.text("/memorydomain/name?memoryDomain=bios"), "BIOS");
}

#[test]
fn domains_take_offsets_and_wrap_bus_addresses() {
    let server = Server::start();
    for (bits, value) in [(8, 0x80u32), (16, 0x8001), (32, 0x8000_0001)] {
        let domain = "memoryDomain=wram";
        server.post_ok(&format!("/memorydomain/write{bits}?{domain}&address=0x104&value={value}"), "");
        let targets = [
            format!("/memorydomain/read{bits}?{domain}&address=260"),
            format!("/memorydomain/read{bits}?{domain}&address=0x02000104"),
            format!("/core/read{bits}?address=0x02000104"),
        ];
        for target in targets {
            assert_eq!(server.number(&target), i64::from(value), "{target}");
        }
    }
}

#[test]
fn registers_are_signed_and_keep_all_their_bits() {
    let server = Server::start();
    assert!(server.number("/core/readregister?regName=pc") > 0);
    // The game changes registers in each frame, possibly between the write and the read. So the test tries several
    // times.
    let reads_minus_one_after_writing = |value: &str| {
        (0..200).any(|_| {
            server.post_ok(&format!("/core/writeregister?regName=r12&value={value}"), "");
            server.number("/core/readregister?regName=r12") == -1
        })
    };
    assert!(reads_minus_one_after_writing("-1"));
    assert!(reads_minus_one_after_writing("4294967295"));
}
