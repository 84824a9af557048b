use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, RwLock};
use tracing::{info, warn};

use crate::game::Owner;
use crate::memory_map::Rom;
use crate::{Game, SymbolError, Symbols};

/// The symbol files of one emulator. The names in a file belong to one game, and are used only while the emulator runs
/// that game.
///
/// A memory map can name its game. A file that names no game belongs to the first game that the emulator reports. A
/// rebuilt ROM with the same title and code counts as the same game; if its symbol files have changed, they are read
/// again.
#[derive(Debug, Default)]
pub struct SymbolFiles {
    files: Mutex<Vec<File>>,
    /// The names for the latest game. This lock is not held while files are being read.
    current: RwLock<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    /// The checksum of the game. `None` while no game is known. [`look_again`](SymbolFiles::look_again) also sets it to
    /// `None`, so that the next request for a known game looks at the files again.
    checksum: Option<u32>,
    symbols: Arc<Symbols>,
}

#[derive(Debug)]
struct File {
    /// The path of the file; `None` for a memory map that is built in.
    path: Option<PathBuf>,
    /// When the file was last written before it was read.
    modified: Option<SystemTime>,
    symbols: Arc<Symbols>,
    /// The game that the file belongs to.
    owner: Owner,
}

impl SymbolFiles {
    /// Adds the symbols of a file. If two files of a game define the same name, the first file wins.
    ///
    /// # Errors
    /// If the file cannot be read, is too large or not valid, or contains no symbols.
    pub fn load(&mut self, path: &Path) -> Result<(), SymbolError> {
        self.add(File::read(path)?);
        Ok(())
    }

    /// Adds the fields of a memory map, which has the format of the demo game's memory map.
    ///
    /// # Errors
    /// If the text is not a memory map.
    pub fn add_memory_map(&mut self, text: &str) -> Result<(), Box<toml::de::Error>> {
        let mut symbols = Symbols::default();
        let rom = symbols.add_memory_map(text)?;
        self.add(File::new(symbols, rom));
        Ok(())
    }

    fn add(&mut self, file: File) {
        self.files.get_mut().push(file);
        *self.current.get_mut() = None;
    }

    /// The names for the game with this checksum. Without a checksum, the names for the latest game. `None` if
    /// [`read_for`](SymbolFiles::read_for) has to find the names first.
    pub fn ready(&self, checksum: Option<u32>) -> Option<Arc<Symbols>> {
        let current = self.current.read();
        let current = current.as_ref()?;
        let is_current = checksum.is_none() || current.checksum == checksum;
        if is_current { Some(current.symbols.clone()) } else { None }
    }

    /// Makes the next [`read_for`](SymbolFiles::read_for) read changed files, even if the game stays the same.
    pub fn look_again(&self) {
        if let Some(current) = &mut *self.current.write() {
            current.checksum = None;
        }
    }

    /// The names for this game. If `game` is `None`, the names for the latest game or, before the first game, all
    /// names. After a change of the game, this reads changed files again, which takes a while.
    pub fn read_for(&self, game: Option<&Game>) -> Arc<Symbols> {
        let files = &mut *self.files.lock();
        let checksum = game.map(|game| game.checksum);
        // Another request may have read the files while this one waited for the lock.
        if let Some(ready) = self.ready(checksum) {
            return ready;
        }
        let symbols = match game {
            None => joined(files.iter()),
            Some(game) => for_game(files, game),
        };
        *self.current.write() = Some(Current { checksum, symbols: symbols.clone() });
        symbols
    }
}

/// The names for a game that the emulator has just loaded.
fn for_game(files: &mut [File], game: &Game) -> Arc<Symbols> {
    for file in files.iter_mut() {
        file.update(game);
    }
    let (ours, others): (Vec<&File>, Vec<&File>) = files.iter().partition(|file| file.owner.is(game));
    if !ours.is_empty() || others.is_empty() {
        return joined(ours.into_iter());
    }
    let mut games: Vec<String> = others.iter().map(|file| file.owner.to_string()).collect();
    games.sort();
    games.dedup();
    Arc::new(Symbols::none(format!(
        "the symbols are for another game: {}; the game now is {game}. The symbols can be used when their game is loaded; \
         a memory map names its game in [rom]",
        games.join(", ")
    )))
}

/// The names of all of these files.
fn joined<'a>(files: impl Iterator<Item = &'a File>) -> Arc<Symbols> {
    let files: Vec<&File> = files.collect();
    if let [file] = files[..] {
        return file.symbols.clone();
    }
    let mut all = Symbols::default();
    for file in files {
        all.add(&file.symbols);
    }
    Arc::new(all)
}

impl File {
    /// A memory map that is built in.
    fn new(symbols: Symbols, rom: Option<Rom>) -> File {
        let owner = rom.map_or(Owner::First, Owner::Named);
        File { path: None, modified: None, symbols: Arc::new(symbols), owner }
    }

    fn read(path: &Path) -> Result<File, SymbolError> {
        let mut symbols = Symbols::default();
        let (rom, modified) = symbols.load(path)?;
        Ok(File { path: Some(path.to_owned()), modified, ..File::new(symbols, rom) })
    }

    /// Called before the names are used for a game that the emulator has loaded: another game, a rebuilt ROM, or the
    /// same ROM again. If the file has changed, reads it again, unless it belongs to another game. A game without a
    /// name cannot be recognised, so for such a game, every file that has changed is read again.
    fn update(&mut self, game: &Game) {
        if self.owner == Owner::First {
            self.owner = Owner::Reported(game.clone());
        }
        let Some(path) = &self.path else { return };
        let is_unchanged = modified(path) == self.modified;
        if is_unchanged || !self.owner.is(game) && !game.is_nameless() {
            return;
        }
        match File::read(path) {
            Ok(mut file) => {
                info!("{} has changed and was read again for {game}", path.display());
                if file.owner == Owner::First {
                    file.owner = Owner::Reported(game.clone());
                }
                *self = file;
            }
            Err(error) => warn!("{} has changed and cannot be read again: {error}", path.display()),
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use framewire_expression::Names;
    use std::fs;
    use std::time::Duration;

    fn game(title: &str, code: &str, checksum: u32) -> Game {
        Game { title: title.to_owned(), code: code.to_owned(), checksum }
    }

    fn address(files: &SymbolFiles, game: &Game, name: &str) -> Option<u32> {
        files.read_for(Some(game)).find(name).ok().map(|symbol| symbol.address)
    }

    /// Writes a file and sets its modification time to `age` seconds ago.
    fn write(path: &Path, text: &str, age: u64) {
        fs::write(path, text).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_changed_file_is_read_again_when_the_same_rom_is_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sym");
        write(&path, "02000044 score\n", 100);
        let mut files = SymbolFiles::default();
        files.load(&path).unwrap();
        let one = game("ONE", "A", 1);
        assert_eq!(address(&files, &one, "score"), Some(0x0200_0044));
        write(&path, "02000048 score\n", 50);
        assert_eq!(address(&files, &one, "score"), Some(0x0200_0044));
        files.look_again();
        // While the emulator is not connected, the names of its latest game stay.
        assert!(files.ready(Some(1)).is_none() && files.ready(None).is_some());
        assert_eq!(address(&files, &one, "score"), Some(0x0200_0048));
    }

    /// A named pipe gets a new modification time with each write, like a file.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_changed_while_it_was_read_is_read_again() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sym");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut files = SymbolFiles::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut pipe = fs::File::options().write(true).open(&path).unwrap();
                // A pipe holds less than this, so the file is being read when the write ends.
                pipe.write_all("02000040 other\n".repeat(20_000).as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(50));
                pipe.write_all(b"02000044 score\n").unwrap();
            });
            files.load(&path).unwrap();
        });
        assert_eq!(files.read_for(None).find("score").unwrap().address, 0x0200_0044);
        let written = modified(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "02000048 score\n").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        assert_eq!(address(&files, &game("ONE", "A", 1), "score"), Some(0x0200_0048));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_limit_on_the_size_holds_for_files_without_a_length() {
        let error = SymbolFiles::default().load(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "the symbol file /dev/zero is larger than 67108864 bytes");
    }

    #[test]
    fn names_of_a_game_are_used_only_while_the_emulator_runs_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sym");
        write(&path, "02000044 score\n", 100);
        let mut files = SymbolFiles::default();
        files.load(&path).unwrap();
        let (first, other) = (game("ONE", "A", 1), game("TWO", "B", 2));
        assert_eq!(address(&files, &first, "score"), Some(0x0200_0044));
        let message = files.read_for(Some(&other)).find("score").unwrap_err();
        assert!(
            message.contains("for another game: ONE (checksum 00000001); the game now is TWO"),
            "{message}"
        );
        assert_eq!(address(&files, &first, "score"), Some(0x0200_0044));
    }

    #[test]
    fn a_rebuilt_rom_keeps_its_names_and_a_changed_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        for (title, code) in [("ONE", "A"), ("", "")] {
            let path = folder.path().join("a.sym");
            write(&path, "02000044 score\n", 100);
            let mut files = SymbolFiles::default();
            files.load(&path).unwrap();
            assert_eq!(address(&files, &game(title, code, 1), "score"), Some(0x0200_0044));
            // A rebuilt ROM without a title and a code is recognised only if the symbol file has changed.
            let kept = (!title.is_empty()).then_some(0x0200_0044);
            assert_eq!(address(&files, &game(title, code, 2), "score"), kept);
            write(&path, "02000048 score\n", 50);
            assert_eq!(address(&files, &game(title, code, 3), "score"), Some(0x0200_0048));
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
        assert_eq!(address(&files, &game("TWO", "AGB-B", 1), "score"), Some(2));
        assert_eq!(address(&files, &game("ONE", "AGB-XFWE", 2), "score"), Some(1));
        assert_eq!(address(&files, &game("ONE", "AGB-XFWF", 4), "score"), None);
        assert_eq!(address(&files, &game("", "", 0x1234_5678), "score"), Some(3));
    }

    #[test]
    fn a_memory_map_that_cannot_be_read_again_keeps_its_game() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("two.toml");
        let map = "[rom]\ntitle = \"TWO\"\n[[field]]\nname = \"score\"\naddress = 2\ntype = \"u8\"\n";
        write(&path, map, 100);
        let mut files = SymbolFiles::default();
        files.load(&path).unwrap();
        write(&path, "[rom", 50);
        assert_eq!(address(&files, &game("", "", 1), "score"), None);
        assert_eq!(address(&files, &game("TWO", "", 2), "score"), Some(2));
    }

    #[test]
    fn all_names_are_joined_once_before_a_game_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = SymbolFiles::default();
        for (name, text) in [("a.sym", "02000044 score\n"), ("b.sym", "02000048 lives\n")] {
            write(&folder.path().join(name), text, 100);
            files.load(&folder.path().join(name)).unwrap();
        }
        assert!(files.ready(None).is_none(), "the names were not joined yet");
        let all = files.read_for(None);
        assert!(all.find("score").is_ok() && all.find("lives").is_ok());
        assert!(Arc::ptr_eq(&all, &files.ready(None).unwrap()));
        assert!(Arc::ptr_eq(&all, &files.read_for(None)));
        // First the game is known. Then the connection to the emulator is lost, and there is no checksum.
        assert!(files.ready(Some(1)).is_none());
        let ours = files.read_for(Some(&game("ONE", "A", 1)));
        for checksum in [Some(1), None] {
            assert!(Arc::ptr_eq(&ours, &files.ready(checksum).unwrap()));
        }
    }

    #[test]
    fn requests_for_the_current_game_do_not_wait_while_files_are_read() {
        let mut files = SymbolFiles::default();
        files.add_memory_map("[[field]]\nname = \"score\"\naddress = 1\ntype = \"u8\"\n").unwrap();
        files.read_for(Some(&game("ONE", "A", 1)));
        // The files are locked while they are being read.
        let reading = files.files.lock();
        assert!(files.ready(Some(1)).is_some());
        assert!(files.ready(Some(2)).is_none());
        drop(reading);
    }
}
