//! The options of a stock mGBA, and the settings files that it reads.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Key, Result};

// Shortcuts that our settings assign, because mGBA has no shortcuts for these actions.
pub(super) const OPEN_SCRIPTING: [Key; 2] = [Key::CONTROL, Key::of('l')];
pub(super) const SHUTDOWN: [Key; 2] = [Key::CONTROL, Key::of('k')];
pub(super) const FAST_FORWARD: [Key; 2] = [Key::CONTROL, Key::of('j')];
const SHORTCUTS: &str = "[shortcutKey]\nscripting=Ctrl+L\nshutdown=Ctrl+K\nfastForward=Ctrl+J\n";
// Shortcuts of mGBA itself.
pub(super) const PAUSE: [Key; 2] = [Key::CONTROL, Key::of('p')];
pub(super) const NEXT_FRAME: [Key; 2] = [Key::CONTROL, Key::of('n')];
pub(super) const RESET: [Key; 2] = [Key::CONTROL, Key::of('r')];
pub(super) const OPEN_ROM: [Key; 2] = [Key::CONTROL, Key::of('o')];

/// Settings that give 59.7 to 60 frames/s, at even intervals and without a sound card.
///
/// mGBA's speed follows its sound output, as on a user's machine. Here the output is SDL's dummy driver, which takes a
/// buffer of samples and then waits for as long as they last, rounded down to whole milliseconds. The buffer's size is
/// a power of two; 512 samples last 17 ms. That is slightly longer than a frame, so usually one frame runs after each
/// wait, and sometimes two. With waits of 16 ms, slightly shorter than a frame, some frames would need two waits, 32
/// ms. `fpsTarget` is above 60 to make up for the time that waking up takes. Pacing by video (`videoSync`) does not
/// work: after a script's callback that takes more than 50 ms, emulation stops and does not continue.
const PACE: [(&str, &str); 5] = [
    ("audioSync", "1"),
    ("videoSync", "0"),
    ("sampleRate", "30100"),
    ("audioBuffers", "512"),
    ("fpsTarget", "60.3"),
];

/// The number of mGBA's display driver that paints without OpenGL.
const PAINTER: u8 = 0;
/// The number of mGBA's display driver for OpenGL, which is mGBA's default.
const OPENGL: u8 = 1;

/// The options of a stock mGBA, for [`StockMgba::start`](crate::StockMgba::start).
#[derive(Debug, Clone, Default)]
pub struct StockOptions {
    pub(super) rom: Option<PathBuf>,
    pub(super) scripts: Vec<PathBuf>,
    pub(super) port: Option<u16>,
    pub(super) opengl: bool,
    lua: String,
    config: Vec<(String, String)>,
}

impl StockOptions {
    /// Options for mGBA with this game, and without scripts.
    #[must_use]
    pub fn new(rom: &Path) -> Self {
        Self { rom: Some(rom.into()), ..Self::default() }
    }

    /// Options for mGBA without a game.
    #[must_use]
    pub fn without_game() -> Self {
        Self::default()
    }

    /// Adds a script to load.
    #[must_use]
    pub fn script(mut self, path: &Path) -> Self {
        self.scripts.push(path.into());
        self
    }

    /// Sets `framewire.port` for the scripts. If there are scripts, the start also waits until one listens on this
    /// port.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Adds Lua code that runs before the scripts are loaded, such as `framewire.log_level = "debug"`.
    #[must_use]
    pub fn lua(mut self, code: &str) -> Self {
        self.lua.push_str(code);
        self.lua.push('\n');
        self
    }

    /// Sets an entry of mGBA's configuration, such as `videoSync`, in place of this crate's or mGBA's own value.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.config.push((key.into(), value.into()));
        self
    }

    /// Shows the game with OpenGL instead of mGBA's own painter. mGBA uses OpenGL on most machines.
    ///
    /// With OpenGL, mGBA 0.10 can crash when Lua is typed or a script is loaded while another script runs. The reason:
    /// once per frame, the emulation thread interrupts itself to swap pictures (`PainterGL::swapTex`). If another
    /// thread asks for an interruption at that moment, `mCoreThreadInterrupt` returns as if the emulation had stopped.
    /// Then the other thread runs Lua at the same time as the scripts' next callback.
    #[must_use]
    pub fn opengl(mut self) -> Self {
        self.opengl = true;
        self
    }

    pub(super) fn lua_before_scripts(&self) -> String {
        let port = self.port.map(|port| format!("framewire = {{port = {port}}}\n"));
        format!("{}{}", port.unwrap_or_default(), self.lua)
    }

    /// Fills mGBA's home folder `dir`: the settings, a runtime folder, and a copy of the game. mGBA writes its saves
    /// next to that copy.
    pub(super) fn write_settings(&self, dir: &Path) -> Result<()> {
        let what = || format!("fill mGBA's home folder {}", dir.display());
        let settings = dir.join("config/mgba");
        fs::create_dir_all(&settings).map_err(Error::io(what()))?;
        let mut config = String::from("[ports.qt]\n");
        let own = PACE.iter().map(|&(key, value)| (key, value));
        // If two entries have the same key, mGBA uses the last one.
        for (key, value) in own.chain(self.config.iter().map(|(key, value)| (key.as_str(), value.as_str()))) {
            let _ = writeln!(config, "{key}={value}");
        }
        fs::write(settings.join("config.ini"), config).map_err(Error::io(what()))?;
        let display = if self.opengl { OPENGL } else { PAINTER };
        let choices = format!("[General]\ndisplayDriver={display}\n{SHORTCUTS}");
        fs::write(settings.join("qt.ini"), choices).map_err(Error::io(what()))?;

        let runtime = dir.join("runtime");
        fs::create_dir(&runtime).map_err(Error::io(what()))?;
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).map_err(Error::io(what()))?;
        if let (Some(rom), Some(copy)) = (&self.rom, self.rom_in(dir)) {
            fs::copy(rom, copy).map_err(Error::io(format!("copy {}", rom.display())))?;
        }
        Ok(())
    }

    /// Adds the arguments and the environment to the command.
    pub(super) fn configure(&self, command: &mut Command, dir: &Path, display: &str) {
        command.current_dir(dir).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", dir).env("XDG_CONFIG_HOME", dir.join("config"));
        command.env("XDG_RUNTIME_DIR", dir.join("runtime"));
        command.env("LANG", "C.UTF-8").env("DISPLAY", display).env("QT_QPA_PLATFORM", "xcb");
        command.env("SDL_AUDIODRIVER", "dummy").env("LIBGL_ALWAYS_SOFTWARE", "1");
        command.args(self.rom_in(dir));
    }

    fn rom_in(&self, dir: &Path) -> Option<PathBuf> {
        Some(dir.join(self.rom.as_ref()?.file_name()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_settings_come_last_and_so_take_precedence() {
        let dir = tempfile::tempdir().unwrap();
        let options = StockOptions::without_game().config("videoSync", "1");
        options.write_settings(dir.path()).unwrap();
        let written = fs::read_to_string(dir.path().join("config/mgba/config.ini")).unwrap();
        assert!(written.starts_with("[ports.qt]\n"));
        assert!(written.ends_with("\nvideoSync=1\n"), "{written}");
    }

    #[test]
    fn the_port_is_set_before_the_callers_lua() {
        let options = StockOptions::without_game().lua("framewire.log_level = 'none'").port(7);
        assert_eq!(options.lua_before_scripts(), "framewire = {port = 7}\nframewire.log_level = 'none'\n");
    }
}
