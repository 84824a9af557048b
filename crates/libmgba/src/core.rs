use std::ffi::CString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use framewire_files::TemporaryFolder;

use crate::domain::Domain;
use crate::error::Error;
use crate::hardware::Hardware;
use crate::patch::Patching;
use crate::platform::Platform;
use crate::rom::Rom;
use crate::sensor::Sensor;
use crate::sys::{Handle, Status};

/// The options for a core and for the games that it loads later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which patch the ROM gets.
    pub patching: Patching,
    /// The settings of the console.
    pub hardware: Hardware,
}

/// An emulated console with its game.
///
/// Time passes for a core only in [`run_frame`](Core::run_frame) and [`step`](Core::step), and when a script runs
/// frames. A core can move between threads, but only one thread uses it at a time.
pub struct Core {
    pub(crate) handle: Handle,
    /// The memory domains at the last load or reset. mGBA makes `emu.memory`, the domains that scripts see, at the same
    /// times.
    pub(crate) domains: Vec<Domain>,
    path: PathBuf,
    /// The patch that was applied to the running ROM.
    patch: Option<PathBuf>,
    /// The options for games that are loaded later.
    options: Options,
    /// The values of the sensors, in thousandths.
    pub(crate) sensors: [i32; Sensor::ALL.len()],
    /// For a ROM that was given as bytes: the folder that it was written to, which is removed with the core.
    _home: Option<TemporaryFolder>,
}

impl Core {
    /// Opens a ROM and resets the console. The ROM is a GBA, GB or GBC file, plain or in a zip or 7z archive. If the
    /// archive has several games, the path continues with the name of a game: `pack.zip/game.gba`.
    ///
    /// The game starts without its battery save; see [`load_save`](Core::load_save). State slots are files in the ROM's
    /// folder with the ROM's name.
    ///
    /// # Errors
    /// One of the variants of [`Error`] about ROM files.
    pub fn open(path: &Path) -> Result<Core, Error> {
        Core::open_in(path, &Options::default(), None)
    }

    /// Like [`open`](Core::open), with options.
    ///
    /// # Errors
    /// As for [`open`](Core::open), and [`Error::Patch`] and [`Error::NotABios`].
    pub fn open_with(path: &Path, options: &Options) -> Result<Core, Error> {
        Core::open_in(path, options, None)
    }

    /// Opens a ROM from memory. It is written to a temporary folder, so that saves and
    /// state slots work too. The folder is removed with the core.
    ///
    /// # Errors
    /// As for [`open`](Core::open).
    pub fn from_bytes(rom: &[u8]) -> Result<Core, Error> {
        Core::from_bytes_with(rom, &Options::default())
    }

    /// Like [`from_bytes`](Core::from_bytes), with options.
    ///
    /// # Errors
    /// As for [`open_with`](Core::open_with).
    pub fn from_bytes_with(rom: &[u8], options: &Options) -> Result<Core, Error> {
        let home =
            TemporaryFolder::create("framewire-game-").map_err(|e| Error::write(std::env::temp_dir(), e))?;
        let path = home.path().join("game.rom");
        fs::write(&path, rom).map_err(|e| Error::write(&path, e))?;
        Core::open_in(&path, options, Some(home))
    }

    fn open_in(path: &Path, options: &Options, home: Option<TemporaryFolder>) -> Result<Core, Error> {
        let rom = Rom::read_patched(path, &options.patching)?;
        let hardware = &options.hardware;
        let handle = match Handle::open(&rom.for_shim()?, &hardware.for_shim()?) {
            Ok(handle) => handle,
            Err(Status::NotABios) => return Err(hardware.not_a_bios()),
            Err(status) => return Err(Error::of_rom(status, &rom, None)),
        };
        let Options { patching, hardware } = options.clone();
        let options = Options { patching: patching.of_later_games(), hardware };
        let mut core = Core {
            handle,
            domains: Vec::new(),
            path: rom.path,
            patch: rom.patch,
            options,
            sensors: Default::default(),
            _home: home,
        };
        core.list_domains();
        Ok(core)
    }

    /// Takes over [`Hardware::save_type`] of a core that this one replaces. It holds for the same games as in that
    /// core, and takes effect at the next reset.
    pub fn adopt_save_type(&mut self, other: &Core) {
        self.handle.adopt_save_type(&other.handle);
    }

    /// Replaces the running ROM without resetting the console, as `emu:loadFile` does in Lua. The processor continues
    /// in the new ROM at its current address; call [`reset`](Core::reset) to start the game.
    ///
    /// The file is checked first: after an error other than [`Error::LoadFailed`], the running game has not changed.
    ///
    /// # Errors
    /// As for [`open`](Core::open), and [`Error::OtherPlatform`] and [`Error::Patch`].
    pub fn load_file(&mut self, path: &Path) -> Result<(), Error> {
        let rom = Rom::read_patched(path, &self.options.patching)?;
        let running = self.platform();
        self.handle.load_file(&rom.for_shim()?).map_err(|s| Error::of_rom(s, &rom, Some(running)))?;
        self.path = rom.path;
        self.patch = rom.patch;
        self.list_domains();
        Ok(())
    }

    /// The absolute path of the ROM file or of its archive. If the path named a game
    /// inside an archive, this is the path that the game would have next to the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The patch that was applied to the ROM, if there was one. ROMs that scripts load are not patched.
    pub fn patch(&self) -> Option<&Path> {
        if self.is_loaded_by_script() { None } else { self.patch.as_deref() }
    }

    /// The options for games that are loaded from now on.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Restarts the game, and calls the scripts' `reset` callbacks.
    pub fn reset(&mut self) {
        self.reset_console();
        self.list_domains();
    }

    /// Runs one frame, and calls the scripts' `frame` callbacks.
    pub fn run_frame(&mut self) {
        self.run_frame_and_look(|_| {});
    }

    /// Like [`run_frame`](Core::run_frame), but calls `look` after the frame, before
    /// the scripts' `frame` callbacks can change anything.
    pub fn run_frame_and_look(&mut self, look: impl FnOnce(&mut Core)) {
        self.emulate_frame();
        look(self);
        self.call_frame_callbacks();
    }

    /// The kind of console. It never changes during the life of a core.
    pub fn platform(&self) -> Platform {
        match self.platform_number() {
            1 => Platform::Gb,
            _ => Platform::Gba,
        }
    }

    /// The title in the ROM's header.
    pub fn title(&self) -> String {
        self.handle.title()
    }

    /// The game's code as libmgba returns it: in mGBA 0.10 with the console's prefix ("AGB-BPRE"), from 0.11 on without
    /// it. If a Game Boy game's header has no code, mGBA 0.10 returns question marks after the prefix ("DMG-????").
    pub fn code(&self) -> String {
        self.handle.code()
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("path", &self.path)
            .field("platform", &self.platform())
            .field("frame", &self.frame_counter())
            .finish_non_exhaustive()
    }
}

/// Writes a whole file or nothing. Refuses pipes and devices.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.is_dir() => Err(Error::NotAFile { path: path.to_owned() }),
        _ => framewire_files::replace(path, bytes).map(drop).map_err(|error| Error::write(path, error)),
    }
}

/// Converts a path for libmgba, which stores paths in buffers of fixed size.
pub(crate) fn c_path(path: &Path) -> Result<CString, Error> {
    const LONGEST: usize = 4000;
    let bytes = path.as_os_str().as_encoded_bytes();
    match CString::new(bytes) {
        Ok(c_path) if bytes.len() <= LONGEST => Ok(c_path),
        _ => Err(Error::NotAFile { path: path.to_owned() }),
    }
}
