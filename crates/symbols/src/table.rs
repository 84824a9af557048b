use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use framewire_expression::{Names, Symbol, Type, Variable};
use framewire_protocol::number::lua_integer;

use crate::memory_map::{Rom, Variables};
use crate::{MapVariable, TextTable, decode_text};
use crate::{link_map, memory_map, sym};

/// The size of the largest symbol file, in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Names and the bus addresses that they stand for.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    by_name: BTreeMap<String, Entry>,
    /// The variables that are not plain numbers at fixed addresses, such as structures.
    variables: Variables,
    /// The characters of the game's texts.
    text: Option<Arc<TextTable>>,
    /// Why there are no names, for example because the files belong to another game. `None` if there may be names.
    unavailable: Option<String>,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Address, type and count.
    pub symbol: Symbol,
    /// The symbol's description, if the file has one.
    pub doc: Option<String>,
}

/// An address and the type of the number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The address on the bus, or an offset in a memory domain.
    pub address: u32,
    /// The type of the number there; `None` if it is not known.
    pub kind: Option<Type>,
}

/// Why symbols cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The file cannot be read.
    #[error("cannot read the symbol file {0}")]
    Read(PathBuf, #[source] std::io::Error),
    /// The file is too large for a symbol file.
    #[error("the symbol file {0} is larger than {MAX_FILE} bytes")]
    TooLarge(PathBuf),
    /// The file contains no symbols.
    #[error(
        "no symbols found in {0}; use a symbol file of no$gba, RGBDS or WLA DX (.sym), a link map of GNU ld (.map), \
         a memory map like the demo game's (.toml), or a character table (.tbl)"
    )]
    Nothing(PathBuf),
    /// The file's name ends in `.tbl`, but it is not a character table.
    #[error("{0} is not a character table: {1}")]
    Text(PathBuf, String),
    /// The file's name ends in `.toml`, but it is not a memory map.
    #[error("{0} is not a memory map")]
    MemoryMap(PathBuf, #[source] Box<toml::de::Error>),
}

impl Symbols {
    /// Adds the symbols of a file, except for names that are already known. Returns the game that the file names, if it
    /// names one, and the modification time that the file had before it was read.
    ///
    /// # Errors
    /// If the file cannot be read, is too large or not valid, or contains no symbols.
    pub(crate) fn load(&mut self, path: &Path) -> Result<(Option<Rom>, Option<SystemTime>), SymbolError> {
        let read = |error| SymbolError::Read(path.to_owned(), error);
        let file = File::open(path).map_err(read)?;
        // Taken before the file is read. If the file is written during the read, it then has a later time than this
        // one, and counts as changed.
        let modified = file.metadata().map_err(read)?.modified().ok();
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(read)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(SymbolError::TooLarge(path.to_owned()));
        }
        let text = String::from_utf8_lossy(&bytes);
        let before = self.by_name.len();
        let mut rom = None;
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tbl")) {
            let table =
                TextTable::parse(&text).map_err(|problem| SymbolError::Text(path.to_owned(), problem))?;
            self.text = Some(Arc::new(table));
            return Ok((None, modified));
        }
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
            rom =
                self.add_memory_map(&text).map_err(|error| SymbolError::MemoryMap(path.to_owned(), error))?;
        } else if link_map::is_link_map(&text) {
            self.add_all(link_map::symbols(&text));
        } else {
            self.add_all(sym::symbols(&text));
        }
        if self.by_name.len() == before && self.variables.by_name.is_empty() {
            return Err(SymbolError::Nothing(path.to_owned()));
        }
        Ok((rom, modified))
    }

    /// Adds the fields of a memory map, which has the format of the demo game's memory map. Returns the game that the
    /// memory map names, if it names one.
    ///
    /// # Errors
    /// If the text is not a memory map.
    pub(crate) fn add_memory_map(&mut self, text: &str) -> Result<Option<Rom>, Box<toml::de::Error>> {
        let mut map = memory_map::read(text)?;
        for (name, entry) in std::mem::take(&mut map.fields) {
            self.by_name.entry(name).or_insert(entry);
        }
        let rom = map.rom.take();
        let variables = map.variables(self)?;
        self.variables.add(&variables);
        Ok(rom)
    }

    /// An empty table, with the reason why it is empty.
    pub fn none(why: String) -> Symbols {
        Symbols { unavailable: Some(why), ..Symbols::default() }
    }

    /// Adds the symbols of `others`, except for names that are already known.
    pub(crate) fn add(&mut self, others: &Symbols) {
        for (name, entry) in &others.by_name {
            self.by_name.entry(name.clone()).or_insert_with(|| entry.clone());
        }
        self.variables.add(&others.variables);
        if self.text.is_none() {
            self.text.clone_from(&others.text);
        }
    }

    /// The characters of the game's texts, if a character table is loaded.
    pub fn text(&self) -> Option<&Arc<TextTable>> {
        self.text.as_ref()
    }

    /// Encodes a text for memory: with the character table, or else as UTF-8.
    ///
    /// # Errors
    /// If the character table lacks a character. The error names the first such character.
    pub fn encode_text(&self, text: &str) -> Result<Vec<u8>, String> {
        match &self.text {
            Some(table) => table.encode(text),
            None => Ok(text.as_bytes().to_vec()),
        }
    }

    /// Decodes a text in memory: with the character table, or else as UTF-8 up to the first byte that is 0.
    pub fn decode_text(&self, bytes: &[u8]) -> String {
        decode_text(self.text.as_deref(), bytes)
    }

    /// Why there are no names, for example because the files belong to another game. `None` if there may be names.
    /// Errors about unknown names quote this reason.
    pub fn unavailable(&self) -> Option<&str> {
        self.unavailable.as_deref()
    }

    fn add_all<'a>(&mut self, symbols: impl Iterator<Item = (&'a str, u32)>) {
        for (name, address) in symbols {
            let symbol = Symbol { address, kind: None, count: 1 };
            self.by_name.entry(name.to_owned()).or_insert(Entry { symbol, doc: None });
        }
    }

    /// All symbols in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.by_name.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The variables that are not plain numbers at fixed addresses, in the order of their names.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &MapVariable)> {
        self.variables.by_name.iter().map(|(name, variable)| (name.as_str(), variable))
    }

    /// The names of these addresses: `score`, or `presses[3]` for an element. Addresses without a name are left out.
    pub fn names_of(&self, addresses: &[u32]) -> BTreeMap<u32, String> {
        let mut names: BTreeMap<u32, Option<String>> =
            addresses.iter().map(|address| (*address, None)).collect();
        for (name, Entry { symbol, .. }) in &self.by_name {
            let size = symbol.kind.map_or(1, |kind| u32::from(kind.size()));
            let past = symbol.address.saturating_add(size.saturating_mul(symbol.count).max(1));
            for (address, known) in names.range_mut(symbol.address..past) {
                let distance = address - symbol.address;
                if known.is_none() && distance.is_multiple_of(size) {
                    *known = Some(match symbol.count {
                        1 => name.clone(),
                        _ => format!("{name}[{}]", distance / size),
                    });
                }
            }
        }
        names.into_iter().filter_map(|(address, name)| Some((address, name?))).collect()
    }

    /// Parses a location. It is a number in decimal, or in hex after `0x`, or else a name. `+OFFSET` or `-OFFSET` in
    /// bytes, or `[INDEX]`, may follow a name.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is accepted.
    pub fn locate(&self, text: &str) -> Result<Location, String> {
        let text = text.trim();
        if let Some(number) = lua_integer(text) {
            return match u32::try_from(number) {
                Ok(address) => Ok(Location { address, kind: None }),
                Err(_) => Err(format!("{text} is not an address; use a number from 0 to 0xFFFFFFFF")),
            };
        }
        if let Some(Entry { symbol, .. }) = self.by_name.get(text) {
            return Ok(Location { address: symbol.address, kind: symbol.kind });
        }
        if let Some((name, index)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            return element(text, self.find(name.trim_end())?, index);
        }
        match text.rfind(['+', '-']) {
            None => self.find(text).map(|symbol| Location { address: symbol.address, kind: symbol.kind }),
            Some(at) => with_offset(text, self.find(text[..at].trim_end())?, &text[at..]),
        }
    }

    /// The known name that is most similar to this one, if it is similar enough to be suggested.
    fn similar(&self, name: &str) -> Option<&str> {
        const MAX_DISTANCE: usize = 3;
        let most = (name.chars().count() / 3).clamp(1, MAX_DISTANCE);
        let near = |known: &&str| known.len().abs_diff(name.len()) <= most;
        let distances =
            self.neighbours(name).filter(near).map(|known| (strsim::osa_distance(name, known), known));
        distances.min().filter(|(distance, _)| *distance <= most).map(|(_, known)| known)
    }

    /// The known names next to this one in alphabetical order: at most 1024 before it and 1024 after it. A comparison
    /// with all names of a large file would block a network thread for too long.
    fn neighbours(&self, name: &str) -> impl Iterator<Item = &str> {
        const EACH_WAY: usize = 1024;
        let after = (Bound::Included(name), Bound::Unbounded);
        let before = (Bound::Unbounded, Bound::Excluded(name));
        let after = self.by_name.range::<str, _>(after).take(EACH_WAY);
        let before = self.by_name.range::<str, _>(before).rev().take(EACH_WAY);
        before.chain(after).map(|(known, _)| known.as_str())
    }
}

impl Names for Symbols {
    fn text(&self, text: &str) -> Result<Vec<u8>, String> {
        self.encode_text(text)
    }

    fn variable(&self, path: &str) -> Option<&Variable> {
        self.variables.paths.get(path)
    }

    fn find(&self, name: &str) -> Result<Symbol, String> {
        if let Some(entry) = self.by_name.get(name) {
            return Ok(entry.symbol);
        }
        if let Some(why) = &self.unavailable {
            return Err(format!("no symbol is called {name:?} here: {why}"));
        }
        Err(match self.similar(name) {
            _ if self.by_name.is_empty() && self.variables.by_name.is_empty() => {
                format!("no symbol is called {name:?}: no symbols are loaded (--symbols FILE loads some)")
            }
            Some(similar) => format!("no symbol is called {name:?}; did you mean {similar:?}?"),
            None => format!("no symbol is called {name:?}; GET /v1/symbols lists those that are loaded"),
        })
    }
}

/// The location of `NAME[INDEX]`.
fn element(text: &str, symbol: Symbol, index: &str) -> Result<Location, String> {
    let count = symbol.count;
    let index = lua_integer(index).and_then(|index| u32::try_from(index).ok()).filter(|index| *index < count);
    let (Some(index), Some(kind)) = (index, symbol.kind) else {
        return Err(match symbol.kind {
            Some(_) => format!("{text:?} is not an element: there are {count}, and the first is [0]"),
            None => format!("{text:?} needs a symbol with a type; use NAME+OFFSET, in bytes"),
        });
    };
    Ok(Location { address: symbol.address.wrapping_add(index * u32::from(kind.size())), kind: Some(kind) })
}

/// The location of `NAME+OFFSET` or `NAME-OFFSET`.
fn with_offset(text: &str, symbol: Symbol, offset: &str) -> Result<Location, String> {
    let (sign, digits) = offset.split_at(1);
    let digits = digits.trim_start();
    let unsigned = lua_integer(digits).filter(|_| digits.starts_with(|first: char| first.is_ascii_digit()));
    let offset = unsigned.map(|number| if sign == "-" { -number } else { number });
    offset
        .and_then(|offset| u32::try_from(i64::from(symbol.address).checked_add(offset)?).ok())
        .map(|address| Location { address, kind: None })
        .ok_or_else(|| {
            format!("{text:?} is not an address; use NAME, NAME+NUMBER or NAME-NUMBER, up to 0xFFFFFFFF")
        })
}

#[cfg(test)]
mod tests {
    use framewire_expression::{Code, Expression, Format};

    use super::*;

    fn demo() -> Symbols {
        let mut symbols = Symbols::default();
        symbols.add_memory_map(include_str!("../../../rom/memory-map.toml")).unwrap();
        symbols
    }

    #[test]
    fn a_location_is_an_address_a_name_an_offset_or_an_element() {
        let symbols = demo();
        let score = 0x0200_0044;
        for (text, address, kind) in [
            ("score", score, Some(Type::U32)),
            (" score ", score, Some(Type::U32)),
            ("score+2", score + 2, None),
            ("score - 0x4", score - 4, None),
            ("presses[9]", 0x0200_0010 + 36, Some(Type::U32)),
            ("ball_dx", 0x0200_003C, Some(Type::I16)),
            ("0x02000044", score, None),
            ("33554500", score, None),
        ] {
            assert_eq!(symbols.locate(text), Ok(Location { address, kind }), "{text}");
        }
    }

    const MAP: &str = r#"
        [[struct]]
        name = "move"
        size = 2
        [[struct.field]]
        name = "power"
        offset = 1
        type = "u8:0..3"

        [[struct]]
        name = "monster"
        size = 16
        [[struct.field]]
        name = "hp"
        offset = 4
        type = "u16"
        doc = "What is left."
        [[struct.field]]
        name = "moves"
        offset = 8
        type = "move[4]"

        [[field]]
        name = "party_pointer"
        address = 0x03005D8C
        type = "u32"
        [[field]]
        name = "party"
        address = "u32[party_pointer] + 4"
        type = "monster[6]"
        [[field]]
        name = "hero"
        address = 0x02000100
        type = "monster"
        [[field]]
        name = "money"
        address = 0x02000200
        type = "bcd16"
        [[field]]
        name = "speed"
        address = 0x02000204
        type = "i16/256"
    "#;

    #[test]
    fn structures_arrays_and_pointers_have_names() {
        let mut symbols = Symbols::default();
        symbols.add_memory_map(MAP).unwrap();
        let known = |text: &str| {
            let (code, kind) = Code::parse_address(text, &symbols).expect(text);
            (code.known(), kind)
        };
        let plain = |kind| Some((kind, Format::Plain));
        assert_eq!(known("hero.hp"), (Some(0x0200_0104), plain(Type::U16)));
        assert_eq!(known("hero"), (Some(0x0200_0100), None));
        let power = Format::Bits { first: 0, count: 4 };
        assert_eq!(known("hero.moves[3].power"), (Some(0x0200_010F), Some((Type::U8, power))));
        assert_eq!(known("party[2].hp"), (None, plain(Type::U16)));
        let same = |left: &str, right: &str| {
            let code = |text: &str| Code::parse(text, &symbols).expect(text).encode();
            assert_eq!(code(left), code(right), "{left}");
        };
        same("hero.hp", "u16[0x02000104]");
        same("party[2].hp", "u16[u32[0x03005D8C] + 4 + 4 + 32]");
        same("party[u8[hero]].hp", "u16[u32[0x03005D8C] + 4 + 4 + u8[0x02000100] * 16]");
        same("hero.moves[1].power", "u8[0x0200010B] >> 0 & 15");
        same(
            "money",
            "(u16[0x02000200] >> 0 & 15) * 1 + (u16[0x02000200] >> 4 & 15) * 10 + (u16[0x02000200] >> 8 & 15) * 100 \
                       + (u16[0x02000200] >> 12 & 15) * 1000",
        );
        assert!(Expression::parse("hero.hp > 3 and money == 9", &symbols).is_ok());
        for (text, says) in [
            ("party[6].hp", "0 to 5"),
            ("party[1 / 0].hp", "divides by zero"),
            ("party[0]", "whole structure"),
            ("party[0].xp", "fields of `party`"),
            ("speed > 1", "fraction"),
        ] {
            let message = Code::parse(text, &symbols).expect_err(text).to_string();
            assert!(message.contains(says), "{text}: {message}");
        }
        let party = symbols.variables().find(|(name, _)| *name == "party").unwrap().1;
        assert_eq!((party.kind.name.as_str(), party.kind.count(), party.size), ("monster", 6, 16));
        assert_eq!((party.address, party.pointer.as_deref()), (None, Some("u32[party_pointer] + 4")));
        assert_eq!(party.fields[0].doc.as_deref(), Some("What is left."));
    }

    #[test]
    fn errors_name_wrong_types_and_pointers() {
        let field = |address: &str, kind: &str| {
            format!("[[field]]\nname = \"x\"\naddress = {address}\ntype = \"{kind}\"\n")
        };
        let itself =
            "[[struct]]\nname = \"s\"\nsize = 4\n[[struct.field]]\nname = \"s\"\noffset = 0\ntype = \"s\"\n";
        for (map, says) in [
            (field("1", "u64"), "neither a type nor a [[struct]]"),
            (field("1", "u8:8"), "u16:4..7"),
            (field("1", "u8:4..2"), "u16:4..7"),
            (field("1", "u16/0"), "i16/256"),
            (field("1", "u16[0]"), "no count"),
            (field("\"u32[\"", "u8"), "column 5"),
            (field("true", "u8"), "not an address; use a number"),
            ("field = [5]".to_owned(), "expected a table [[field]] with"),
            ("struct = [5]".to_owned(), "expected a table [[struct]] with"),
            (field("1", "s") + itself, "others; use fewer"),
        ] {
            let message = Symbols::default().add_memory_map(&map).expect_err(&map).to_string();
            assert!(message.contains(says), "{map}: {message}");
        }
    }

    #[test]
    fn fields_beyond_the_end_of_their_structure_are_refused() {
        for (from, to, says) in [
            ("offset = 4", "offset = 15", "\"hp\" of the structure \"monster\" ends 17 bytes after"),
            ("offset = 4", "offset = 0xFFFFFFFF", "ends 4294967297 bytes"),
            ("move[4]", "move[5]", "\"moves\" of the structure \"monster\" ends 18 bytes"),
            ("size = 2", "size = 1", "\"power\" of the structure \"move\" ends 2 bytes"),
        ] {
            let map = MAP.replace(from, to);
            let message = Symbols::default().add_memory_map(&map).expect_err(to).to_string();
            assert!(message.contains(says), "{to}: {message}");
            assert!(message.contains("correct the size, or the offset or the type"), "{message}");
        }
        Symbols::default().add_memory_map(&MAP.replace("offset = 4", "offset = 14")).unwrap();
    }

    #[test]
    fn an_unknown_name_is_compared_with_its_neighbours_only() {
        let mut symbols = Symbols::default();
        let names: Vec<String> = (0..500_000).map(|number| format!("gSymbolOfAGame{number:06}")).collect();
        symbols.add_all(names.iter().map(|name| (name.as_str(), 0)));
        let unknown = "gSymbolOfAGame25000x";
        assert_eq!(symbols.neighbours(unknown).count(), 2048);
        let message = symbols.locate(unknown).unwrap_err();
        assert!(message.contains("did you mean \"gSymbolOfAGame25000"), "{message}");
    }

    #[test]
    fn errors_suggest_similar_names_and_say_what_is_accepted() {
        let symbols = demo();
        for (text, says) in [
            ("scroe", "did you mean \"score\"?"),
            ("scroe+2", "did you mean \"score\"?"),
            ("something", "GET /v1/symbols"),
            ("score+", "NAME+NUMBER"),
            ("score+x", "NAME+NUMBER"),
            ("score++2", "score+"),
            ("score+0xFFFFFFFF", "up to 0xFFFFFFFF"),
            ("score-99999999999999999999", "up to 0xFFFFFFFF"),
            ("presses[10]", "there are 10"),
            ("presses[-1]", "there are 10"),
            ("-1", "0 to 0xFFFFFFFF"),
            ("0x100000000", "0 to 0xFFFFFFFF"),
            ("", "no symbol"),
        ] {
            let message = symbols.locate(text).expect_err(text);
            assert!(message.contains(says), "{text}: {message}");
        }
        assert!(Symbols::default().locate("score").unwrap_err().contains("--symbols FILE"));
    }

    #[test]
    fn the_format_of_a_file_is_detected_from_its_extension_or_contents() {
        let folder = tempfile::tempdir().unwrap();
        let load = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let mut symbols = Symbols::default();
            symbols.load(&path).map(|_| symbols)
        };
        let map = "Memory Configuration\n\nLinker script and memory map\n                0x02000044                score\n";
        for (name, text) in [
            ("a.sym", "02000044 score\n"),
            ("a.txt", "00:c044 score\n"),
            ("a.map", map),
            ("a.toml", "[[field]]\nname = \"score\"\naddress = 1\ntype = \"u8\"\n"),
        ] {
            assert!(load(name, text).unwrap().locate("score").is_ok(), "{name}");
        }
        let texts = load("a.tbl", "80=A\n/FF\n").unwrap();
        assert_eq!(
            (texts.encode_text("A"), texts.decode_text(&[0x80, 0xFF])),
            (Ok(vec![0x80]), "A".to_owned())
        );
        for (name, text, says) in [
            ("b.sym", "", "no symbols found"),
            ("b.sym", "\0\x01\u{fffd}", "no symbols found"),
            ("b.tbl", "80=A\nxy=B", "line 2"),
            ("b.toml", "[[field]]\nname = 1", "is not a memory map"),
        ] {
            let message = load(name, text).unwrap_err().to_string();
            assert!(message.contains(says), "{name}: {message}");
        }
        let missing = Symbols::default().load(&folder.path().join("missing")).unwrap_err();
        assert!(matches!(missing, SymbolError::Read(..)));
    }
}
