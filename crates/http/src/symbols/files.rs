//! Symbols and the games that they are for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use framewire_emulator::State;
use parking_lot::{Mutex, RwLock};
use tracing::{info, warn};

use super::memory_map::Rom;
use super::{SymbolError, Symbols};

/// The names for the addresses of one emulator. Those of a file are for one game, and used as long as the emulator has it.
///
/// A memory map says which game that is; another file is for the game that the emulator has when it is first known. A ROM
/// that was built again, with the same title and code, is the same game, and its files are read again if they changed.
#[derive(Debug, Default)]
pub struct SymbolFiles {
    files: Mutex<Vec<File>>,
    /// The names for the game that was there last. It is not locked while files are read.
    present: RwLock<Option<Present>>,
}

#[derive(Debug)]
struct Present {
    /// That of the game; `None` as long as none was known.
    checksum: Option<u32>,
    symbols: Arc<Symbols>,
}

#[derive(Debug)]
struct File {
    /// `None` for what is built in.
    path: Option<PathBuf>,
    /// When the file was last written.
    modified: Option<SystemTime>,
    symbols: Arc<Symbols>,
    game: Whose,
}

/// Which game a file is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    /// The first that there is.
    First,
    /// The one that the emulator had then.
    Game(Game),
    /// The one that the file names.
    Named(Rom),
}

/// A game, as an emulator knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Game {
    title: String,
    code: String,
    checksum: u32,
}

impl SymbolFiles {
    /// Adds the symbols of a file. Where two files have a name for a game, the first is meant.
    ///
    /// # Errors
    /// If the file cannot be read, or holds no symbols.
    pub fn load(&mut self, path: &Path) -> Result<(), SymbolError> {
        self.add(File::read(path)?);
        Ok(())
    }

    /// Adds the fields of a memory map, written as the demo game's.
    ///
    /// # Errors
    /// If it is something else.
    pub fn add_memory_map(&mut self, text: &str) -> Result<(), Box<toml::de::Error>> {
        let mut symbols = Symbols::default();
        let rom = symbols.add_memory_map(text)?;
        self.add(File::new(None, symbols, rom));
        Ok(())
    }

    fn add(&mut self, file: File) {
        self.files.get_mut().push(file);
        *self.present.get_mut() = None;
    }

    /// The names for the game with this checksum, or as long as none is known those for the last one, if no file has to be
    /// looked at for that.
    pub(crate) fn ready(&self, checksum: Option<u32>) -> Option<Arc<Symbols>> {
        let present = self.present.read();
        let ready = |present: &&Present| checksum.is_none() || present.checksum == checksum;
        present.as_ref().filter(ready).map(|present| present.symbols.clone())
    }

    /// The names for the game in an emulator that is like this. As long as that is not known, those for the last one, or
    /// at first all. Files that have changed are read again, which takes a while.
    pub(crate) fn read_for(&self, state: &State) -> Arc<Symbols> {
        let files = &mut *self.files.lock();
        // Another request may have done it meanwhile.
        if let Some(ready) = self.ready(state.checksum) {
            return ready;
        }
        let symbols = match state.checksum {
            None => joined(files.iter()),
            Some(checksum) => {
                let title = state.title.clone().unwrap_or_default();
                let code = state.code.clone().unwrap_or_default();
                for_game(files, &Game { title, code, checksum })
            }
        };
        *self.present.write() = Some(Present { checksum: state.checksum, symbols: symbols.clone() });
        symbols
    }
}

/// The names for a game that has just come.
fn for_game(files: &mut [File], game: &Game) -> Arc<Symbols> {
    for file in files.iter_mut() {
        file.meet(game);
    }
    let (ours, others): (Vec<&File>, Vec<&File>) = files.iter().partition(|file| file.game.is(game));
    if !ours.is_empty() || others.is_empty() {
        return joined(ours.into_iter());
    }
    let mut games: Vec<String> = others.iter().map(|file| file.game.to_string()).collect();
    games.dedup();
    Arc::new(Symbols::none(format!(
        "the symbols are for another game: {}; the game now is {game}. They come back with theirs; a memory map names its \
         game in [rom]",
        games.join(", ")
    )))
}

/// The names of all of these files.
fn joined<'a>(files: impl Iterator<Item = &'a File>) -> Arc<Symbols> {
    let mut files: Vec<&File> = files.collect();
    if files.len() == 1
        && let Some(file) = files.pop()
    {
        return file.symbols.clone();
    }
    let mut all = Symbols::default();
    for file in files {
        all.add(&file.symbols);
    }
    Arc::new(all)
}

impl File {
    fn new(path: Option<PathBuf>, symbols: Symbols, rom: Option<Rom>) -> File {
        let game = rom.map_or(Whose::First, Whose::Named);
        let modified = path.as_deref().and_then(modified);
        File { path, modified, symbols: Arc::new(symbols), game }
    }

    fn read(path: &Path) -> Result<File, SymbolError> {
        let mut symbols = Symbols::default();
        let rom = symbols.load(path)?;
        Ok(File::new(Some(path.to_owned()), symbols, rom))
    }

    /// There is another game, or the same one built again.
    fn meet(&mut self, game: &Game) {
        let changed = self.path.as_deref().is_some_and(|path| modified(path) != self.modified);
        if self.game == Whose::First || changed && (self.game.is(game) || game.is_nameless()) {
            self.game = Whose::Game(game.clone());
        }
        let Some(path) = self.path.clone().filter(|_| changed && self.game.is(game)) else { return };
        match File::read(&path) {
            Ok(file) => {
                info!("{} has changed and was read again for {game}", path.display());
                let game = if file.game == Whose::First { self.game.clone() } else { file.game };
                *self = File { game, ..file };
            }
            Err(error) => warn!("{} has changed and cannot be read again: {error}", path.display()),
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}

impl Whose {
    fn is(&self, game: &Game) -> bool {
        match self {
            Whose::First => false,
            Whose::Game(own) => {
                let same_names = own.title == game.title && own.code == game.code;
                own.checksum == game.checksum || same_names && !own.is_nameless()
            }
            Whose::Named(rom) => {
                // mGBA 0.10 puts the console before the code.
                let code = game.code.split_once('-').map_or(&*game.code, |(_, code)| code);
                let is =
                    |named: &Option<String>, text: &str| named.as_deref().is_none_or(|named| named == text);
                is(&rom.title, &game.title)
                    && (is(&rom.code, code) || is(&rom.code, &game.code))
                    && rom.checksum.is_none_or(|checksum| checksum == game.checksum)
            }
        }
    }
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Whose::First => f.write_str("none yet"),
            Whose::Game(game) => game.fmt(f),
            Whose::Named(Rom { title, code, checksum }) => {
                let title = title.as_deref().or(code.as_deref());
                f.write_str(title.unwrap_or("one of no name"))?;
                checksum.map_or(Ok(()), |checksum| write!(f, " (checksum {checksum:08x})"))
            }
        }
    }
}

impl Game {
    /// Whether only its checksum distinguishes it from others.
    fn is_nameless(&self) -> bool {
        self.title.is_empty() && self.code.is_empty()
    }
}

impl std::fmt::Display for Game {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let title = if self.title.is_empty() { "a game without a title" } else { &self.title };
        write!(f, "{title} (checksum {:08x})", self.checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framewire_expression::Names;
    use std::fs;
    use std::time::Duration;

    fn state(title: &str, code: &str, checksum: u32) -> State {
        State {
            kind: framewire_emulator::Kind::Embedded,
            connected: true,
            run: framewire_emulator::Run::Running,
            speed: None,
            lockstep: false,
            frames_per_second: 0.0,
            frame: 0,
            title: Some(title.to_owned()),
            code: Some(code.to_owned()),
            checksum: Some(checksum),
            script_version: None,
            library_version: None,
            address: None,
            problem: None,
            save_problem: None,
        }
    }

    fn address(files: &SymbolFiles, state: &State, name: &str) -> Option<u32> {
        files.read_for(state).find(name).ok().map(|symbol| symbol.address)
    }

    /// Writes a file that counts as changed.
    fn write(path: &Path, text: &str, age: u64) {
        fs::write(path, text).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn names_of_the_old_game_are_not_used_for_the_new_one_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sym");
        write(&path, "02000044 score\n", 100);
        let mut files = SymbolFiles::default();
        files.load(&path).unwrap();
        let (first, other) = (state("ONE", "A", 1), state("TWO", "B", 2));
        assert_eq!(address(&files, &first, "score"), Some(0x0200_0044));
        let said = files.read_for(&other).find("score").unwrap_err();
        assert!(said.contains("for another game: ONE (checksum 00000001); the game now is TWO"), "{said}");
        assert_eq!(address(&files, &first, "score"), Some(0x0200_0044));
    }

    #[test]
    fn a_rom_built_again_keeps_its_names_and_its_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        for (title, code) in [("ONE", "A"), ("", "")] {
            let path = folder.path().join("a.sym");
            write(&path, "02000044 score\n", 100);
            let mut files = SymbolFiles::default();
            files.load(&path).unwrap();
            assert_eq!(address(&files, &state(title, code, 1), "score"), Some(0x0200_0044));
            // The file as it is goes with a game of the same name only.
            let kept = (!title.is_empty()).then_some(0x0200_0044);
            assert_eq!(address(&files, &state(title, code, 2), "score"), kept);
            write(&path, "02000048 score\n", 50);
            assert_eq!(address(&files, &state(title, code, 3), "score"), Some(0x0200_0048));
        }
    }

    #[test]
    fn a_memory_map_names_its_game() {
        let map = |rom: &str, address: u32| {
            format!("{rom}\n[[field]]\nname = \"score\"\naddress = {address}\ntype = \"u8\"\n")
        };
        let mut files = SymbolFiles::default();
        for (rom, address) in [
            ("[rom]\ntitle = \"ONE\"\ncode = \"XFWE\"", 1),
            ("[rom]\ntitle = \"TWO\"", 2),
            ("[rom]\nchecksum = 0x12345678", 3),
        ] {
            files.add_memory_map(&map(rom, address)).unwrap();
        }
        assert_eq!(address(&files, &state("TWO", "AGB-B", 1), "score"), Some(2));
        assert_eq!(address(&files, &state("ONE", "AGB-XFWE", 2), "score"), Some(1));
        assert_eq!(address(&files, &state("ONE", "AGB-XFWF", 4), "score"), None);
        assert_eq!(address(&files, &state("", "", 0x1234_5678), "score"), Some(3));
    }

    #[test]
    fn all_names_were_put_together_for_every_request_before_a_game_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = SymbolFiles::default();
        for (name, text) in [("a.sym", "02000044 score\n"), ("b.sym", "02000048 lives\n")] {
            write(&folder.path().join(name), text, 100);
            files.load(&folder.path().join(name)).unwrap();
        }
        let unknown = State { title: None, code: None, checksum: None, ..state("", "", 0) };
        assert!(files.ready(None).is_none(), "nothing was put together yet");
        let all = files.read_for(&unknown);
        assert!(all.find("score").is_ok() && all.find("lives").is_ok());
        assert!(Arc::ptr_eq(&all, &files.ready(None).unwrap()));
        assert!(Arc::ptr_eq(&all, &files.read_for(&unknown)));
        // The game is known, and then the connection to it is lost.
        assert!(files.ready(Some(1)).is_none());
        let ours = files.read_for(&state("ONE", "A", 1));
        for checksum in [Some(1), None] {
            assert!(Arc::ptr_eq(&ours, &files.ready(checksum).unwrap()));
        }
    }

    #[test]
    fn requests_for_the_game_that_is_known_waited_for_files_of_another() {
        let mut files = SymbolFiles::default();
        files.add_memory_map("[[field]]\nname = \"score\"\naddress = 1\ntype = \"u8\"\n").unwrap();
        files.read_for(&state("ONE", "A", 1));
        // As long as files are read they are locked.
        let reading = files.files.lock();
        assert!(files.ready(Some(1)).is_some());
        assert!(files.ready(Some(2)).is_none());
        drop(reading);
    }
}
