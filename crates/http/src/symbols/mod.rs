//! Names for addresses, so that `score` works where an address does.
//!
//! - [`SymbolFiles`]: the names of one emulator, each with the game that it is for;
//! - [`Symbols`]: the names for one game;
//! - `sym`: the symbol files of assemblers and debuggers (no$gba, RGBDS, WLA DX);
//! - `map`: the link map of GNU ld;
//! - `memory_map`: memory maps as the demo game has one.

mod files;
mod map;
mod memory_map;
mod sym;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use framewire_expression::{Names, Symbol, Type};

use axum::http::StatusCode;

use crate::problem::Problem;
use crate::reading::number::lua_integer;

/// Largest symbol file in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

pub use files::SymbolFiles;
use memory_map::{MemoryMap, Rom};

/// Names and the bus addresses that they stand for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Symbols {
    by_name: BTreeMap<String, Entry>,
    /// Why there are none, if there are for another game.
    elsewhere: Option<String>,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) symbol: Symbol,
    /// What it means, where the file says so.
    pub(crate) doc: Option<String>,
}

/// An address, and what is there as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: u32,
    pub(crate) kind: Option<Type>,
}

/// Why symbols cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The file cannot be read.
    #[error("cannot read the symbol file {0}")]
    Read(PathBuf, #[source] std::io::Error),
    /// It is too large to be one.
    #[error("the symbol file {0} is larger than {MAX_FILE} bytes")]
    TooLarge(PathBuf),
    /// Nothing in it is a symbol.
    #[error(
        "no symbols are found in {0}; accepted are symbol files of no$gba, RGBDS and WLA DX (.sym), link maps of GNU ld \
         (.map), and memory maps like the demo game's (.toml)"
    )]
    Nothing(PathBuf),
    /// It is a TOML file and no memory map.
    #[error("{0} is no memory map")]
    MemoryMap(PathBuf, #[source] Box<toml::de::Error>),
}

impl Symbols {
    /// Adds the symbols of a file. Where a name is known already, the first that had it keeps it.
    ///
    /// # Errors
    /// If the file cannot be read, or holds no symbols.
    fn load(&mut self, path: &Path) -> Result<Option<Rom>, SymbolError> {
        let read = |error| SymbolError::Read(path.to_owned(), error);
        if std::fs::metadata(path).map_err(read)?.len() > MAX_FILE {
            return Err(SymbolError::TooLarge(path.to_owned()));
        }
        let bytes = std::fs::read(path).map_err(read)?;
        let text = String::from_utf8_lossy(&bytes);
        let before = self.by_name.len();
        let mut rom = None;
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
            rom =
                self.add_memory_map(&text).map_err(|error| SymbolError::MemoryMap(path.to_owned(), error))?;
        } else if map::is_one(&text) {
            self.add_all(map::symbols(&text));
        } else {
            self.add_all(sym::symbols(&text));
        }
        match self.by_name.len() > before {
            true => Ok(rom),
            false => Err(SymbolError::Nothing(path.to_owned())),
        }
    }

    /// Adds the fields of a memory map, written as the demo game's. Gives the game that it is for.
    ///
    /// # Errors
    /// If it is something else.
    fn add_memory_map(&mut self, text: &str) -> Result<Option<Rom>, Box<toml::de::Error>> {
        let MemoryMap { fields, rom } = memory_map::read(text)?;
        for (name, entry) in fields {
            self.by_name.entry(name).or_insert(entry);
        }
        Ok(rom)
    }

    /// None, for `why`.
    pub(crate) fn none(why: String) -> Symbols {
        Symbols { by_name: BTreeMap::new(), elsewhere: Some(why) }
    }

    /// Adds those of others that have no name of these.
    fn add(&mut self, others: &Symbols) {
        for (name, entry) in &others.by_name {
            self.by_name.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }

    /// The problem with a text in which a name may have been used: what is not there because the game is another one is
    /// not found.
    pub(crate) fn problem(&self, problem: Problem) -> Problem {
        match &self.elsewhere {
            Some(why) if problem.detail().contains(&**why) => problem.with_status(StatusCode::NOT_FOUND),
            _ => problem,
        }
    }

    fn add_all<'a>(&mut self, symbols: impl Iterator<Item = (&'a str, u32)>) {
        for (name, address) in symbols {
            let symbol = Symbol { address, kind: None, count: 1 };
            self.by_name.entry(name.to_owned()).or_insert(Entry { symbol, doc: None });
        }
    }

    /// All in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.by_name.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The names of these addresses, of those that have one: `score`, or `presses[3]` in a row.
    pub(crate) fn names_of(&self, addresses: impl Iterator<Item = u32>) -> BTreeMap<u32, String> {
        let mut names: BTreeMap<u32, Option<String>> = addresses.map(|address| (address, None)).collect();
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

    /// The place that a text names: a number in decimal or hex behind `0x`; or a name, alone, with `+OFFSET` or
    /// `-OFFSET` in bytes, or with `[INDEX]` behind it.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is accepted.
    pub(crate) fn place(&self, text: &str) -> Result<Place, String> {
        let text = text.trim();
        if let Some(number) = lua_integer(text) {
            return match u32::try_from(number) {
                Ok(address) => Ok(Place { address, kind: None }),
                Err(_) => Err(format!("{text} is no address: 0 to 0xFFFFFFFF are accepted")),
            };
        }
        if let Some(Entry { symbol, .. }) = self.by_name.get(text) {
            return Ok(Place { address: symbol.address, kind: symbol.kind });
        }
        if let Some((name, index)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            return element(text, self.find(name.trim_end())?, index);
        }
        match text.rfind(['+', '-']) {
            None => self.find(text).map(|symbol| Place { address: symbol.address, kind: symbol.kind }),
            Some(at) => beside(text, self.find(text[..at].trim_end())?, &text[at..]),
        }
    }

    /// The known name that is most like this one, if it may have been meant.
    fn like(&self, name: &str) -> Option<&str> {
        const DIFFERENT: usize = 3;
        let most = (name.chars().count() / 3).clamp(1, DIFFERENT);
        let near = |known: &&str| known.len().abs_diff(name.len()) <= most;
        let distances =
            self.neighbours(name).filter(near).map(|known| (strsim::osa_distance(name, known), known));
        distances.min().filter(|(distance, _)| *distance <= most).map(|(_, known)| known)
    }

    /// The known names that begin most like this one: at most 1024 before and after it in their order. Comparing with
    /// all names of a large file would hold up a network thread.
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
    fn find(&self, name: &str) -> Result<Symbol, String> {
        if let Some(entry) = self.by_name.get(name) {
            return Ok(entry.symbol);
        }
        if let Some(why) = &self.elsewhere {
            return Err(format!("no symbol is called {name:?} here: {why}"));
        }
        Err(match self.like(name) {
            _ if self.by_name.is_empty() => {
                format!("no symbol is called {name:?}: no symbols are loaded (--symbols FILE loads some)")
            }
            Some(like) => format!("no symbol is called {name:?}; did you mean {like:?}?"),
            None => format!("no symbol is called {name:?}; GET /v1/symbols lists those that are loaded"),
        })
    }
}

/// `NAME[INDEX]`.
fn element(text: &str, symbol: Symbol, index: &str) -> Result<Place, String> {
    let count = symbol.count;
    let index = lua_integer(index).and_then(|index| u32::try_from(index).ok()).filter(|index| *index < count);
    let (Some(index), Some(kind)) = (index, symbol.kind) else {
        return Err(match symbol.kind {
            Some(_) => format!("{text:?} is no element: there are {count}, counted from 0"),
            None => format!("{text:?}: what is there is not known, so write NAME+OFFSET, in bytes"),
        });
    };
    Ok(Place { address: symbol.address.wrapping_add(index * u32::from(kind.size())), kind: Some(kind) })
}

/// `NAME+OFFSET` or `NAME-OFFSET`.
fn beside(text: &str, symbol: Symbol, offset: &str) -> Result<Place, String> {
    let (sign, digits) = offset.split_at(1);
    let digits = digits.trim_start();
    let unsigned = lua_integer(digits).filter(|_| digits.starts_with(|first: char| first.is_ascii_digit()));
    let offset = unsigned.map(|number| if sign == "-" { -number } else { number });
    offset
        .and_then(|offset| u32::try_from(i64::from(symbol.address).checked_add(offset)?).ok())
        .map(|address| Place { address, kind: None })
        .ok_or_else(|| {
            format!(
                "{text:?} is no address: NAME, NAME+NUMBER and NAME-NUMBER are accepted, up to 0xFFFFFFFF"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demo() -> Symbols {
        let mut symbols = Symbols::default();
        symbols.add_memory_map(include_str!("../../../../rom/memory-map.toml")).unwrap();
        symbols
    }

    #[test]
    fn places_are_named_in_many_ways() {
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
            assert_eq!(symbols.place(text), Ok(Place { address, kind }), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_is_compared_with_few_of_many() {
        let mut symbols = Symbols::default();
        let names: Vec<String> = (0..500_000).map(|number| format!("gSymbolOfAGame{number:06}")).collect();
        symbols.add_all(names.iter().map(|name| (name.as_str(), 0)));
        let unknown = "gSymbolOfAGame25000x";
        assert_eq!(symbols.neighbours(unknown).count(), 2048);
        let said = symbols.place(unknown).unwrap_err();
        assert!(said.contains("did you mean \"gSymbolOfAGame25000"), "{said}");
    }

    #[test]
    fn what_is_no_place_is_told_with_what_was_meant() {
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
            let said = symbols.place(text).expect_err(text);
            assert!(said.contains(says), "{text}: {said}");
        }
        assert!(Symbols::default().place("score").unwrap_err().contains("--symbols FILE"));
    }

    #[test]
    fn files_are_known_by_what_is_in_them() {
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
            assert!(load(name, text).unwrap().place("score").is_ok(), "{name}");
        }
        for (name, text, says) in [
            ("b.sym", "", "no symbols are found"),
            ("b.sym", "\0\x01\u{fffd}", "no symbols are found"),
            ("b.toml", "[[field]]\nname = 1", "is no memory map"),
        ] {
            let said = load(name, text).unwrap_err().to_string();
            assert!(said.contains(says), "{name}: {said}");
        }
        let missing = Symbols::default().load(&folder.path().join("missing")).unwrap_err();
        assert!(matches!(missing, SymbolError::Read(..)));
    }
}
