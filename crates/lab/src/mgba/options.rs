//! The options of a stock mGBA, and the settings files that it reads.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Key, Result};

/// Keys that our settings assign, because mGBA has no keys for these actions.
pub(super) const OPEN_SCRIPTING: [Key; 2] = [Key::CONTROL, Key::of('l')];
pub(super) const SHUTDOWN: [Key; 2] = [Key::CONTROL, Key::of('k')];
pub(super) const FAST_FORWARD: [Key; 2] = [Key::CONTROL, Key::of('j')];
const SHORTCUTS: &str = "[shortcutKey]\nscripting=Ctrl+L\nshutdown=Ctrl+K\nfastForward=Ctrl+J\n";
/// mGBA's own.
pub(super) const PAUSE: [Key; 2] = [Key::CONTROL, Key::of('p')];
pub(super) const NEXT_FRAME: [Key; 2] = [Key::CONTROL, Key::of('n')];
pub(super) const RESET: [Key; 2] = [Key::CONTROL, Key::of('r')];
pub(super) const OPEN_ROM: [Key; 2] = [Key::CONTROL, Key::of('o')];

/// 59.7 to 60 frames/s, evenly, without a sound card.
///
/// mGBA is paced by its sound, as on a user's machine. SDL's dummy driver takes 512 samples every 17 ms: it waits for whole
/// milliseconds, rounded down, and rounds other buffers up to a power of two. That is a little more than a frame's worth, so
/// about every frame comes after one such wait, and now and then two do. With a little less than a frame's worth, as 16 ms
/// would be, now and then a frame would take two waits, 32 ms. The target makes up for the time that is lost waking up.
/// Pacing by video (`videoSync`) does not work: after one callback of more than 50 ms emulation stops for good.
const PACE: [(&str, &str); 5] = [
    ("audioSync", "1"),
    ("videoSync", "0"),
    ("sampleRate", "30100"),
    ("audioBuffers", "512"),
    ("fpsTarget", "60.3"),
];

/// mGBA's display drivers: its own painter, and OpenGL, which is mGBA's default.
const PAINTER: u8 = 0;
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
    env: Vec<(String, String)>,
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

    /// Sets `framewire.port` for the scripts, and makes the start wait until the port accepts connections.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Adds Lua to run before the scripts are loaded, such as `framewire.log_level = "debug"`.
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

    /// Shows the game with OpenGL, as mGBA does on most machines, and not with mGBA's own painter.
    ///
    /// With it mGBA 0.10 may end when Lua is typed or a script is loaded while another script runs. To swap pictures
    /// (`PainterGL::swapTex`) the thread of the emulation asks itself to stop, once a frame; another thread that asks in that
    /// moment learns that it has stopped (`mCoreThreadInterrupt`), and runs Lua at the same time as the scripts' next callback.
    #[must_use]
    pub fn opengl(mut self) -> Self {
        self.opengl = true;
        self
    }

    /// Adds a variable to mGBA's environment, which is otherwise nearly empty.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub(super) fn has_rom(&self) -> bool {
        self.rom.is_some()
    }

    pub(super) fn lua_before_scripts(&self) -> String {
        let port = self.port.map(|port| format!("framewire = {{port = {port}}}\n"));
        format!("{}{}", port.unwrap_or_default(), self.lua)
    }

    /// Lays out mGBA's home in `dir`: settings, and a copy of the game, next to which mGBA puts its saves.
    pub(super) fn write_settings(&self, dir: &Path) -> Result<()> {
        let what = || format!("lay out mGBA's home in {}", dir.display());
        let settings = dir.join("config/mgba");
        fs::create_dir_all(&settings).map_err(Error::io(what()))?;
        let mut config = String::from("[ports.qt]\n");
        let own = PACE.iter().map(|&(key, value)| (key, value));
        // If two entries have the same key, the last one counts.
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
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
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
    fn the_callers_settings_win_and_come_last() {
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
