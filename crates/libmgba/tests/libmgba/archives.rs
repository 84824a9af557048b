//! Tests of games in zip and 7z archives.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use framewire_libmgba::{Core, Error, MAX_ROM_SIZE, Patching, Platform, read_patched_rom};
use sevenz_rust2::{ArchiveEntry, ArchiveWriter, EncoderMethod, SourceReader};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::support::{Transcript, file, gb, gba, lua, run};

type Files<'a> = [(&'a str, &'a [u8])];

fn zip_with(method: CompressionMethod, files: &Files) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn zip(files: &Files) -> Vec<u8> {
    zip_with(CompressionMethod::Deflated, files)
}

/// A 7z archive with all files in one block, as `7z a` packs them.
fn solid(method: EncoderMethod, files: &Files) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    writer.set_content_methods(vec![method.into()]);
    let entries = files.iter().map(|(name, _)| ArchiveEntry::new_file(name)).collect();
    let readers = files.iter().map(|(_, bytes)| SourceReader::new(*bytes)).collect();
    writer.push_archive_entries(entries, readers).unwrap();
    writer.finish().unwrap().into_inner()
}

/// A 7z archive with each file in a block of its own.
fn seven_zip(files: &Files) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    for (name, bytes) in files {
        writer.push_archive_entry(ArchiveEntry::new_file(name), Some(*bytes)).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A 7z archive with these files in one block, and a folder before the last file. Some programs write folders there.
fn with_folder(files: &Files) -> Vec<u8> {
    /// A number below 2^21, as 7z archives encode it.
    fn number(value: usize) -> Vec<u8> {
        let [low, middle, high, ..] = value.to_le_bytes();
        match value {
            0..0x80 => vec![low],
            0x80..0x4000 => vec![0x80 | middle, low],
            _ => vec![0xC0 | high, low, middle],
        }
    }
    let data = files.iter().flat_map(|(_, bytes)| *bytes).copied().collect::<Vec<_>>();
    let size = number(data.len());
    let mut names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    names.insert(names.len() - 1, "folder");
    let empty = 0x80 >> (names.len() - 2);
    let text: Vec<u8> =
        names.iter().flat_map(|name| name.encode_utf16().chain([0])).flat_map(u16::to_le_bytes).collect();
    // One packed stream at the beginning, and one block, which is not compressed.
    let mut header = vec![1, 4, 6, 0, 1, 9];
    header.extend([&size[..], &[0, 7, 11, 1, 0, 1, 1, 0, 12], &size, &[0]].concat());
    // The sizes of the files.
    header.extend([&[8, 13], &number(files.len())[..], &[9]].concat());
    header.extend(files[..files.len() - 1].iter().flat_map(|(_, bytes)| number(bytes.len())));
    // Which entries are empty, and the names.
    header.extend([&[0, 0, 5], &number(names.len())[..], &[14, 1, empty]].concat());
    header.extend([&[17], &number(text.len() + 1)[..], &[0], &text, &[0, 0]].concat());
    let mut start = Vec::new();
    start.extend((data.len() as u64).to_le_bytes());
    start.extend((header.len() as u64).to_le_bytes());
    start.extend(crc32fast::hash(&header).to_le_bytes());
    let signature = *b"7z\xBC\xAF\x27\x1C\0\x04";
    [&signature, &crc32fast::hash(&start).to_le_bytes()[..], &start, &data, &header].concat()
}

/// Opens a file with these bytes, which must fail. Returns the error message.
fn refused(name: &str, bytes: &[u8]) -> String {
    let (_dir, path) = file(name, bytes);
    let error = Core::open(&path).expect_err("this must not open");
    assert!(matches!(error, Error::NotARomArchive { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(name), "{text}");
    text
}

#[test]
fn the_only_game_of_an_archive_opens() {
    let about = b"how to play".as_slice();
    for (name, rom, platform) in
        [("Game.GBA", gba("FRAMEWIRE", "BFWE"), Platform::Gba), ("in/g.gb", gb("FRAMEWIRE"), Platform::Gb)]
    {
        let files = [("readme.txt", about), (name, &rom)];
        for archive in [
            zip(&files),
            zip_with(CompressionMethod::Stored, &files),
            seven_zip(&files),
            solid(EncoderMethod::LZMA, &files),
            solid(EncoderMethod::LZMA2, &files),
            solid(EncoderMethod::COPY, &files),
            with_folder(&files),
        ] {
            let (_dir, path) = file("pack.archive", &archive);
            let core = Core::open(&path).unwrap();
            assert_eq!((core.title().as_str(), core.platform()), ("FRAMEWIRE", platform));
            assert_eq!((core.crc32(), core.path()), (crc32fast::hash(&rom), path.as_path()));
            assert_eq!(Core::from_bytes(&archive).unwrap().crc32(), crc32fast::hash(&rom));
            assert_eq!(read_patched_rom(&path, &Patching::Off).unwrap(), rom);
        }
    }
}

#[test]
fn one_of_several_games_is_opened_by_its_path_in_the_archive() {
    let (red, blue) = (gb("RED"), gb("BLUE"));
    let files = [("games/red.gb", red.as_slice()), ("blue.gb", &blue), ("__MACOSX/._blue.gb", b"notes")];
    for (kind, archive) in [("zip", zip(&files)), ("7z", solid(EncoderMethod::LZMA2, &files))] {
        let name = format!("pack.{kind}");
        let text = refused(&name, &archive);
        assert!(text.contains(&format!("is a {kind} archive with 2 games")), "{text}");
        assert!(text.contains("pack.") && text.contains("/games/red.gb: games/red.gb, blue.gb"), "{text}");

        let (dir, path) = file(&name, &archive);
        for (inside, title) in [("games/red.gb", "RED"), ("blue.gb", "BLUE")] {
            let mut core = Core::open(&path.join(inside)).unwrap();
            assert_eq!(core.title(), title);
            // The two games have different files for their states.
            run(&mut core, 2);
            core.save_state_slot(1, 0).unwrap();
            let state = Path::new(inside).with_extension("ss1");
            assert!(dir.path().join(state.file_name().unwrap()).is_file(), "{inside}");
        }
        let error = Core::open(&path.join("green.gb")).unwrap_err().to_string();
        assert!(error.contains("without green.gb; it holds games/red.gb, blue.gb"), "{error}");
    }
}

#[test]
fn a_path_that_continues_after_a_rom_is_refused() {
    let (_dir, path) = file("g.gb", &gb("FRAMEWIRE"));
    let error = Core::open(&path.join("g.gb")).unwrap_err();
    assert!(matches!(error, Error::NotAnArchive { .. }), "{error}");
}

#[test]
fn an_archive_without_a_game_says_what_it_holds() {
    let files = [("readme.txt", b"no game".as_slice())];
    for (name, archive) in [("a.zip", zip(&files)), ("a.7z", seven_zip(&files))] {
        let text = refused(name, &archive);
        assert!(
            text.contains("without a game; it holds readme.txt. The name of a game ends in .gba,"),
            "{text}"
        );
    }
    let names: Vec<_> = (0..20).map(|number| format!("{number}.txt")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    assert!(refused("many.zip", &zip(&many)).contains("7.txt and 12 more"));
    assert!(refused("none.zip", &zip(&[])).contains("it holds nothing"));
    assert!(refused("empty.zip", &zip(&[("g.gba", b"")])).contains("g.gba is empty"));
}

#[test]
fn a_file_with_the_name_of_a_game_must_be_a_rom() {
    let (_dir, path) = file("a.zip", &zip(&[("g.gba", &b"no game".repeat(100))]));
    let error = Core::open(&path).unwrap_err();
    assert!(matches!(error, Error::NotARom { .. }), "{error}");
}

#[test]
fn the_error_for_a_truncated_archive_says_so() {
    let rom = gba("FRAMEWIRE", "BFWE");
    let (zip, seven) = (zip(&[("g.gba", &rom)]), seven_zip(&[("g.gba", &rom)]));
    for (name, bytes) in [
        ("a.zip", &zip[..zip.len() / 2]),
        ("b.zip", b"PK\x03\x04".as_slice()),
        ("a.7z", &seven[..seven.len() - 9]),
    ] {
        let text = refused(name, bytes);
        assert!(text.contains("is cut short") && text.contains("get the whole file"), "{text}");
    }
}

#[test]
fn the_error_for_an_unsupported_archive_names_its_kind() {
    for (name, bytes, says) in [
        ("game.gba.gz", b"\x1F\x8B\x08\0\0\0\0\0".as_slice(), "is a gzip file"),
        ("game.rar", b"Rar!\x1A\x07\0\0", "is a RAR archive"),
    ] {
        assert!(refused(name, bytes).contains(says));
    }
}

#[test]
fn a_game_larger_than_any_cartridge_is_not_unpacked() {
    let zeros = vec![0; MAX_ROM_SIZE + 1];
    let files = [("g.gba", zeros.as_slice())];
    let bomb = zip(&files);
    for (name, archive) in [("bomb.zip", &bomb), ("bomb.7z", &solid(EncoderMethod::COPY, &files))] {
        let text = refused(name, archive);
        assert!(text.contains("no cartridge has more than 64 MiB"), "{text}");
    }
    // The same zip archive, with a false, small size of the game in both of its records.
    let mut wrong = bomb;
    let size = u32::try_from(zeros.len()).unwrap().to_le_bytes();
    for at in 0..wrong.len() - 4 {
        if wrong[at..at + 4] == size {
            wrong[at..at + 4].copy_from_slice(&1000u32.to_le_bytes());
        }
    }
    let text = refused("lies.zip", &wrong);
    assert!(text.contains("is a damaged zip archive"), "{text}");
}

#[test]
fn a_damaged_archive_causes_no_panic_and_gives_no_wrong_game() {
    let rom = gb("FRAMEWIRE");
    let files = [("readme.txt", b"how to play".as_slice()), ("g.gb", &rom)];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pack");
    for whole in [zip(&files), solid(EncoderMethod::LZMA2, &files)] {
        // The head, the end with the list of files, and some bytes in between.
        let end = whole.len() - 120;
        for at in (0..40).chain((40..end).step_by(97)).chain(end..whole.len()) {
            for change in [0x01, 0xFF] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                fs::write(&path, &bytes).unwrap();
                // Some bytes do not matter, such as dates.
                if let Ok(read) = read_patched_rom(&path, &Patching::Off) {
                    assert!(read == rom || kind_is_lost(&bytes), "byte {at} changed by {change:#x}");
                }
            }
        }
    }
}

/// Whether these bytes no longer begin like an archive. Then they are read as a plain ROM, which is checked later.
fn kind_is_lost(bytes: &[u8]) -> bool {
    !bytes.starts_with(b"PK\x03\x04") && !bytes.starts_with(b"7z\xBC\xAF\x27\x1C")
}

#[test]
fn a_game_that_a_script_has_unloaded_is_read_again_from_the_archive() {
    let files = [("red.gb", gb("RED")), ("blue.gb", gb("BLUE"))];
    let files: Vec<_> = files.iter().map(|(name, rom)| (*name, rom.as_slice())).collect();
    let (_dir, path) = file("pack.zip", &zip(&files));
    let mut core = Core::open(&path.join("blue.gb")).unwrap();
    Transcript::attach(&mut core);
    core.run_script_source("loader", "emu:loadFile('/no/such/game.gb')").unwrap();
    run(&mut core, 2);
    assert_eq!(core.title(), "BLUE");
}

#[test]
fn games_in_archives_can_replace_each_other() {
    let rom = gb("RED");
    let files = [("red.gb", rom.as_slice())];
    for pack in [zip(&files), solid(EncoderMethod::LZMA2, &files)] {
        let (_dir, path) = file("pack", &pack);
        let mut core = Core::from_bytes(&gb("BLUE")).unwrap();
        for _ in 0..2 {
            lua(&mut core, &format!("assert(emu:loadFile({path:?}))"));
            run(&mut core, 2);
            assert_eq!(core.title(), "RED");
        }
        core.load_file(&path).unwrap();
        run(&mut core, 2);
        assert_eq!(core.title(), "RED");
    }
}
