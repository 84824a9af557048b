//! Tests of the settings of a console: its BIOS, the model of a Game Boy, its colours, and save memory.

use framewire_libmgba::{Core, GbModel, Hardware, Options, SaveType};

use crate::support::{DEMO, file, gb, gba, run};

fn with(hardware: Hardware) -> Options {
    Options { hardware, ..Options::default() }
}

#[test]
fn a_bios_runs_before_the_game() {
    // Each vector is a branch. The branch of a reset leads to this code: mov r0, #0x02000000; mov r1, #0x63;
    // strb r1, [r0, #0x100]; mov pc, #0x08000000.
    let mut bios = vec![0u8; 0x4000];
    for vector in bios[..0x1C].as_chunks_mut::<4>().0 {
        *vector = 0xEA00_0006u32.to_le_bytes();
    }
    for (index, word) in [0xE3A0_0402u32, 0xE3A0_1063, 0xE5C0_1100, 0xE3A0_F302].into_iter().enumerate() {
        bios[0x20 + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
    }
    let (home, path) = file("gba.bios", &bios);
    let mut rom = DEMO.to_vec();
    // libmgba runs the BIOS only if the logo in the ROM has the right checksum. The logo of this game is empty, but
    // with these bytes it has that checksum.
    rom[0x9C..0xA0].copy_from_slice(&0x7858_84D1u32.to_le_bytes());
    let rom = &rom;
    let options = with(Hardware { bios: Some(path), ..Hardware::default() });
    let mut core = Core::from_bytes_with(rom, &options).unwrap();
    core.reset();
    run(&mut core, 3);
    assert_eq!(core.read8(0x0200_0100), 0x63);
    let at = core.read_register("pc").unwrap();
    assert!(at >= 0x0800_0000, "the game runs after the BIOS: {at:#x}");

    for (name, bytes) in [("short", &bios[..100]), ("other", &[0; 0x4000][..])] {
        std::fs::write(home.path().join(name), bytes).unwrap();
    }
    for path in [home.path().join("short"), home.path().join("other"), "/dev/zero".into()] {
        let options = with(Hardware { bios: Some(path.clone()), ..Hardware::default() });
        let error = Core::from_bytes_with(rom, &options).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is not a BIOS", path.display())), "{error}");
    }
}

#[test]
fn a_game_boy_has_the_model_of_the_settings() {
    let rom = gb("MODEL");
    let size = |options: &Options| {
        let mut core = Core::from_bytes_with(&rom, options).unwrap();
        core.reset();
        run(&mut core, 3);
        let frame = core.frame();
        (frame.width, frame.height)
    };
    assert_eq!(size(&Options::default()), (160, 144));
    let sgb = Hardware { gb_model: Some(GbModel::Sgb), ..Hardware::default() };
    assert_eq!(size(&with(sgb.clone())), (256, 224));
    assert_eq!(size(&with(Hardware { borders: false, ..sgb })), (160, 144));
    let error = "vcs".parse::<GbModel>().unwrap_err();
    assert_eq!(error, "a model of the Game Boy is one of dmg, mgb, sgb, sgb2, cgb, agb");
}

#[test]
fn a_game_boy_has_the_colours_of_the_settings() {
    let palette = "f80000,00f800,0000f8,081820".parse().unwrap();
    let hardware = Hardware { palette: Some(palette), gb_model: Some(GbModel::Dmg), ..Hardware::default() };
    let mut core = Core::from_bytes_with(&gb("COLOURS"), &with(hardware)).unwrap();
    core.reset();
    run(&mut core, 3);
    let rgb = core.frame().to_rgb();
    assert!(rgb[0] >= 0xF8 && rgb[1..3] == [0, 0], "{:?}", &rgb[..3]);
    for text in ["f80000", "f80000,00f800,0000f8,08182", "f80000,00f800,0000f8,081820,000000"] {
        assert!(text.parse::<framewire_libmgba::Palette>().is_err(), "{text}");
    }
}

#[test]
fn a_game_has_the_save_memory_of_the_settings() {
    for (name, size) in
        [("none", None), ("sram", Some(0x8000)), ("flash512", Some(0x10000)), ("flash1m", Some(0x20000))]
    {
        let options = with(Hardware { save_type: name.parse().unwrap(), ..Hardware::default() });
        let mut core = Core::from_bytes_with(&gba("SAVES", "BFWE"), &options).unwrap();
        core.load_save(&[]).unwrap();
        core.reset();
        let domain = core.domains().iter().find(|domain| domain.name == "sram");
        assert_eq!(domain.map(|domain| domain.size), size, "{name}");
        let saved = core.saves().next().map(|save| save.bytes.len());
        assert_eq!(saved, Some(size.unwrap_or(0) as usize), "{name}");
    }
    let error = "disk".parse::<SaveType>().unwrap_err();
    assert!(error.starts_with("the type of a save is one of auto, none, sram"), "{error}");
}
