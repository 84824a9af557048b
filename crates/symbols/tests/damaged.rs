//! Symbol files of each format with damaged lines, and memory maps with wrong and extreme values.

use std::fs;

use framewire_expression::Code;
use framewire_symbols::{SymbolFiles, Symbols};

const MAP: &str = r#"[rom]
title = "GAME"
code = "XXXX"
checksum = 1
[[field]]
name = "score"
address = 0x02000044
type = "u32"
doc = "Points."
[[struct]]
name = "monster"
size = 8
[[struct.field]]
name = "hp"
offset = 2
type = "u16"
[[field]]
name = "party"
address = "u32[score] + 4"
type = "monster[3]"
[[field]]
name = "list"
address = 0x02000100
type = "monster[2]"
"#;

const SYM: &str =
    "; from a linker\n[labels]\n00:c044 score\n01:4000 Level.load\n02000048 lives\n08000000 .arm\n";

const LINK_MAP: &str = "Linker script and memory map\n\n.bss            0x02000000      0x200\n .bss.score     \
                        0x02000044        0x4 main.o\n                0x02000044                score\n \
                        .bss.a_name_that_is_long\n                0x0200004c        0x4 main.o\n";

const TABLE: &str = "41=A\n42=B\n/FF=end\n4344=ch\n";

fn read(name: &str, text: &[u8]) -> Result<std::sync::Arc<Symbols>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    let mut files = SymbolFiles::default();
    files.load(&path).map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        format!("{error}: {source}")
    })?;
    Ok(files.read_for(None))
}

/// Uses names in all ways. The results do not matter, but nothing may panic.
fn use_names(symbols: &Symbols) {
    for name in
        ["score", "score+4294967295", "score-1", "score[4294967295]", "list", "party", "Level.load", "lives"]
    {
        let _ = symbols.locate(name);
    }
    for text in ["score", "list[1].hp", "party[2].hp", "party[4294967295].hp", "list[score].hp", "lives + 1"]
    {
        let _ = Code::parse(text, symbols);
        let _ = Code::parse_address(text, symbols);
    }
    let _ = symbols.encode_text("ABch");
}

#[test]
fn a_damaged_symbol_file_does_not_panic_and_its_other_lines_are_still_read() {
    for (name, text) in [("a.sym", SYM), ("a.map", LINK_MAP), ("a.toml", MAP), ("a.tbl", TABLE)] {
        use_names(&read(name, text.as_bytes()).unwrap());
        let try_file = |damaged: &[u8]| match read(name, damaged) {
            Ok(symbols) => use_names(&symbols),
            Err(error) => assert!(error.contains(name), "{}: {error}", damaged.escape_ascii()),
        };
        for at in 0..text.len() {
            try_file(&text.as_bytes()[..at]);
            for byte in [0, b'\n', b' ', b'9', b'"', b'[', 0xFF] {
                let mut damaged = text.as_bytes().to_vec();
                damaged[at] = byte;
                try_file(&damaged);
            }
        }
    }
    // Only the damaged line is lost.
    for (name, text, line) in [("a.sym", SYM, "01:4000"), ("a.map", LINK_MAP, " .bss.a_name")] {
        let symbols = read(name, text.replace(line, "\u{0}\"[").as_bytes()).unwrap();
        assert!(symbols.locate("score").is_ok(), "{name}");
    }
}

#[test]
fn wrong_and_extreme_values_in_a_memory_map_do_not_panic_and_a_wrong_type_is_refused_with_its_line() {
    let wrong = ["true", "1.5", "[]", "{}", "1979-05-27"];
    let numbers = ["0", "1", "-1", "4294967295", "4294967296", "9223372036854775807"];
    let texts = [
        "",
        "?",
        "score",
        "party",
        "u8[0]",
        "u8[4294967295]",
        "u32[4294967295]",
        "u8:0..31",
        "u8:7..0",
        "i16/0",
        "bcd8",
        "f32[4294967295]",
        "monster",
        "monster[0]",
        "monster[4294967295]",
        "u32[score] +",
        "u32[4294967295]",
        "0xFFFFFFFF",
        "monster[3",
        "ß",
    ];
    let texts = texts.map(|text| format!("\"{text}\""));
    let lines: Vec<&str> = MAP.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let Some((key, old)) = line.split_once(" = ") else { continue };
        let all = wrong.iter().chain(&numbers).map(|value| (*value).to_owned()).chain(texts.clone());
        for value in all {
            let mut changed = lines.clone();
            let new = format!("{key} = {value}");
            changed[at] = &new;
            let read = read("a.toml", changed.join("\n").as_bytes());
            let is_wrong_type =
                wrong.contains(&value.as_str()) || old.starts_with('"') != value.starts_with('"');
            match read {
                // An address can be a number or a text.
                Ok(symbols) => {
                    assert!(!is_wrong_type || key == "address", "{new}");
                    use_names(&symbols);
                }
                Err(error) if is_wrong_type && key != "address" => {
                    assert!(error.contains(&format!("line {},", at + 1)), "{new}: {error}");
                }
                // The error can be about another line, for example if a structure gets another name.
                Err(error) => {
                    assert!(error.contains("line ") || error.contains("the field \""), "{new}: {error}")
                }
            }
        }
    }
}
