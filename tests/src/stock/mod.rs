//! A stock mGBA in a window: Debian's `mgba-qt` with nothing of ours in it but the scripts it loads.

mod options;
mod prompt;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

pub use options::StockOptions;
use prompt::Prompt;

use crate::{Desktop, Error, Key, Picture, Process, Result, Signal, Window, paths, until};

/// Time for each step of starting up, several times what a busy machine needs.
const STEP: Duration = Duration::from_secs(20);
/// How often a key that opens something is pressed again while nothing opens.
const AGAIN: Duration = Duration::from_secs(2);
/// Long enough for three frames: emulation that gets no further in it stands still.
const STILL: Duration = Duration::from_millis(50);
/// The title of mGBA's window without a game; with one, the game's name stands between the two.
const NO_GAME: &str = "mGBA - 0.";
const SCRIPTING: &str = "Scripting";

/// A running mGBA on a display of its own, with settings and saves of its own. Dropping it ends all of it.
///
/// Everything a method does to the window is waited for; each fails with a picture of the display.
#[derive(Debug)]
pub struct StockMgba {
    // In the order they are to be dropped: the program, its display, its files.
    process: Process,
    desktop: Desktop,
    dir: TempDir,
    main: u32,
    prompt: Prompt,
    port: Option<u16>,
    paused: bool,
}

impl StockMgba {
    /// Starts it, opens its scripting window and loads the scripts in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without `mgba-qt` or `Xvfb`; [`Error::Lua`] if a script fails; [`Error::Pictured`] around
    /// anything else that goes wrong once there is a display.
    pub fn start(options: &StockOptions) -> Result<Self> {
        let dir = TempDir::with_prefix("stock-mgba-").map_err(Error::io("make a folder for mGBA"))?;
        options.write_settings(dir.path())?;
        let desktop = Desktop::start(dir.path())?;
        let process = Process::spawn("mgba-qt", dir.path(), |command| {
            options.configure(command, dir.path(), desktop.name());
        })?;
        let prompt = Prompt::new(dir.path());
        let mut mgba = Self { process, desktop, dir, main: 0, prompt, port: options.port, paused: false };
        let started = mgba.finish_start(options);
        mgba.pictured(started)?;
        Ok(mgba)
    }

    fn finish_start(&mut self, options: &StockOptions) -> Result<()> {
        let desktop = &self.desktop;
        let window = self.process.wait_for("mGBA's window was there", STEP, |_| {
            let windows = desktop.windows()?;
            let with_game = |window: &Window| !options.has_rom() || !window.title.starts_with(NO_GAME);
            Ok(windows.into_iter().find(|window| window.title.starts_with("mGBA - ") && with_game(window)))
        })?;
        self.main = window.id;
        self.desktop.place(window.id, 0, 0)?;

        let scripting = self.open_window(SCRIPTING, |mgba| mgba.press_in_main(&options::OPEN_SCRIPTING))?;
        self.desktop.place(scripting.id, i32::from(window.width) + 8, 0)?;
        self.prompt.set_window(scripting.id);
        self.prepare_lua(&options.lua_before_scripts())?;
        for script in &options.scripts {
            self.load_script_now(script)?;
        }
        match (self.port, options.scripts.is_empty()) {
            (Some(port), false) => self.wait_for_port(port),
            _ => Ok(()),
        }
    }

    /// Everything scripts write to the console goes to a file too; then the caller's own preparations.
    fn prepare_lua(&mut self, before: &str) -> Result<()> {
        self.lua_now(prompt::KEEP_CONSOLE)?;
        self.lua_now(before)?;
        Ok(())
    }

    /// Where the script listens, if the options said so.
    ///
    /// # Panics
    ///
    /// Without a port in the options.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.expect("the options have a port")).into()
    }

    /// The process id of `mgba-qt`.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The folder that holds its settings, its copy of the ROM, and what scripts write to relative paths.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its display, to do what there is no method for.
    #[must_use]
    pub fn desktop(&self) -> &Desktop {
        &self.desktop
    }

    /// What scripts have written to the console, a line each, the level (`log`, `warn`, `error`) in front.
    #[must_use]
    pub fn console(&self) -> String {
        self.prompt.console()
    }

    /// Runs Lua in the scripting window's prompt and returns what it returns, as text, several values tab-separated.
    /// Works while the emulation is paused, and without a game.
    ///
    /// # Errors
    ///
    /// [`Error::Lua`] with its message if it fails.
    pub fn lua(&mut self, code: &str) -> Result<String> {
        let result = self.lua_now(code);
        self.pictured(result)
    }

    /// Loads a script as `dofile` in the prompt does; it may be loaded already.
    ///
    /// # Errors
    ///
    /// [`Error::Lua`] with its message if it fails.
    pub fn load_script(&mut self, script: &Path) -> Result<()> {
        let result = self.load_script_now(script);
        self.pictured(result)
    }

    /// Loads a script by File > Load script, the way the documentation tells people to, and waits until the options'
    /// port accepts. Without a port, whether the script ran shows only in what it does.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if the dialog does not open or close, or the port does not accept.
    pub fn load_script_by_menu(&mut self, script: &Path) -> Result<()> {
        let result = self
            .open_window("Select script to load", |mgba| mgba.press_in_script_menu(Key::RETURN))
            .and_then(|dialog| self.choose_file(&dialog, script))
            .and_then(|()| self.port.map_or(Ok(()), |port| self.wait_for_port(port)));
        self.pictured(result)
    }

    /// Throws every script away by File > Reset of the scripting window.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if the scripts stay.
    pub fn reset_scripts(&mut self) -> Result<()> {
        let result = self.reset_scripts_now();
        self.pictured(result)
    }

    fn reset_scripts_now(&mut self) -> Result<()> {
        self.lua_now("not_reset_yet = true")?;
        self.press_in_script_menu(Key::of('r'))?;
        until("the scripts were gone", STEP, || Ok(self.lua_now("return not_reset_yet")? == "nil"))?;
        self.prepare_lua("")
    }

    /// Opens another game by File > Load ROM, and waits until it runs.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if it does not, for instance because mGBA cannot read it.
    pub fn open_rom(&mut self, rom: &Path) -> Result<()> {
        let result = self.open_rom_now(rom);
        self.pictured(result)
    }

    fn open_rom_now(&mut self, rom: &Path) -> Result<()> {
        // A new game gets a new object to call, which tells it from the old one.
        let before = self.lua_now("return emu")?;
        let dialog = self.open_window("Select ROM", |mgba| mgba.press_in_main(&options::OPEN_ROM))?;
        self.choose_file(&dialog, rom)?;
        until("the other game ran", STEP, || {
            let now = self.lua_now("return emu")?;
            Ok(now != before && now != "nil")
        })?;
        self.paused = false;
        Ok(())
    }

    /// Ends the game by Emulation > Shutdown; the window stays.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if it goes on.
    pub fn close_game(&mut self) -> Result<()> {
        let result = self
            .press_in_main(&options::SHUTDOWN)
            .and_then(|()| until("the game was closed", STEP, || Ok(self.lua_now("return emu")? == "nil")));
        self.paused = false;
        self.pictured(result)
    }

    /// Pauses by Emulation > Pause and waits until no frame passes any more.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if frames go on.
    pub fn pause(&mut self) -> Result<()> {
        self.set_paused(true)
    }

    /// Goes on after [`StockMgba::pause`] and waits until frames pass.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if none does.
    pub fn unpause(&mut self) -> Result<()> {
        self.set_paused(false)
    }

    fn set_paused(&mut self, paused: bool) -> Result<()> {
        if self.paused == paused {
            return Ok(());
        }
        let what = if paused { "the emulation stood still" } else { "the emulation went on" };
        let result = self.press_in_main(&options::PAUSE).and_then(|()| {
            until(what, STEP, || {
                let before = self.frame_now()?;
                thread::sleep(STILL);
                Ok((self.frame_now()? == before) == paused)
            })
        });
        self.paused = paused;
        self.pictured(result)
    }

    /// Does one frame while paused, by Emulation > Next frame.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if none is done.
    pub fn next_frame(&mut self) -> Result<()> {
        let result = self.frame_now().and_then(|before| {
            self.press_in_main(&options::NEXT_FRAME)?;
            until("a frame was done", STEP, || Ok(self.frame_now()? != before))
        });
        self.pictured(result)
    }

    /// Turns fast-forward on or off, by Emulation > Fast forward.
    ///
    /// # Errors
    ///
    /// [`Error::X11`] if the window is gone.
    pub fn toggle_fast_forward(&mut self) -> Result<()> {
        let result = self.press_in_main(&options::FAST_FORWARD);
        self.pictured(result)
    }

    /// The number of the game's current frame; a reset starts it again.
    ///
    /// # Errors
    ///
    /// [`Error::Lua`] without a game.
    pub fn frame(&mut self) -> Result<u64> {
        let result = self.frame_now();
        self.pictured(result)
    }

    /// Holds a key of the keyboard down in mGBA's window; by default `x` is A and `z` is B.
    ///
    /// # Errors
    ///
    /// [`Error::X11`] if the window is gone.
    pub fn hold_key(&mut self, key: Key) -> Result<()> {
        self.desktop.focus(self.main)?;
        self.desktop.hold(key)
    }

    /// Lets a key go that [`StockMgba::hold_key`] holds.
    ///
    /// # Errors
    ///
    /// [`Error::X11`] if the display is gone.
    pub fn release_key(&mut self, key: Key) -> Result<()> {
        self.desktop.release(key)
    }

    /// The text of the window's title bar: the game, and after two seconds the frame rate.
    ///
    /// # Errors
    ///
    /// [`Error::X11`] if the window is gone.
    pub fn title(&self) -> Result<String> {
        Ok(self.main_window()?.title)
    }

    /// What mGBA's window shows, its menu bar included.
    ///
    /// # Errors
    ///
    /// [`Error::X11`] if the window is gone.
    pub fn picture(&self) -> Result<Picture> {
        self.desktop.picture_of(&self.main_window()?)
    }

    /// Writes [`StockMgba::picture`] as a PNG file.
    ///
    /// # Errors
    ///
    /// Its, and [`Error::Io`] if the file cannot be written.
    pub fn window_screenshot(&self, path: &Path) -> Result<()> {
        self.picture()?.save(path)
    }

    /// Closes mGBA's window as the button on its frame does.
    ///
    /// # Errors
    ///
    /// [`Error::X11`] if the window is gone.
    pub fn close_window(&mut self) -> Result<()> {
        self.desktop.close(self.main)
    }

    /// Sends mGBA a signal.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the system refuses.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Waits until mGBA has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], pictured, if it still runs after `limit`.
    pub fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        let result = self.process.wait_exit(limit);
        self.pictured(result)
    }

    fn lua_now(&mut self, code: &str) -> Result<String> {
        self.prompt.run(&self.desktop, &mut self.process, code, STEP)
    }

    fn load_script_now(&mut self, script: &Path) -> Result<()> {
        let what = format!("find the script {}", script.display());
        let path = script.canonicalize().map_err(Error::io(what))?;
        self.lua_now(&format!("dofile({})", prompt::quoted(&path))).map(drop)
    }

    fn frame_now(&mut self) -> Result<u64> {
        let frame = self.lua_now("return emu:currentFrame()")?;
        frame.parse().map_err(|_| Error::Lua(format!("{frame:?} is no frame number")))
    }

    fn main_window(&self) -> Result<Window> {
        self.desktop.window(self.main).ok_or_else(|| Error::X11("mGBA's window is gone".into()))
    }

    fn press_in_main(&mut self, chord: &[Key]) -> Result<()> {
        self.desktop.focus(self.main)?;
        self.desktop.press(chord)
    }

    /// Opens the scripting window's one menu, whose first entry is then selected, and presses a key in it.
    fn press_in_script_menu(&mut self, key: Key) -> Result<()> {
        self.desktop.focus(self.prompt.window())?;
        self.desktop.press(&[Key::ALT])?;
        self.desktop.press(&[Key::DOWN])?;
        self.desktop.press(&[key])
    }

    /// Has `open` done, now and then again, until there is a window of that title.
    fn open_window(&mut self, title: &str, open: impl Fn(&mut Self) -> Result<()>) -> Result<Window> {
        let what = format!("the window \"{title}\" opened");
        for last in [false, false, true] {
            open(self)?;
            let limit = if last { STEP } else { AGAIN };
            let desktop = &self.desktop;
            let found = self.process.wait_for(&what, limit, |_| {
                Ok(desktop.windows()?.into_iter().find(|window| window.title == title))
            });
            match found {
                Err(Error::Timeout { .. }) if !last => {}
                found => return found,
            }
        }
        unreachable!("the last round returns")
    }

    /// Types a path into a file dialog and waits until the dialog has closed.
    fn choose_file(&mut self, dialog: &Window, file: &Path) -> Result<()> {
        let path = file.canonicalize().map_err(Error::io(format!("find {}", file.display())))?;
        self.desktop.focus(dialog.id)?;
        self.desktop.type_text(&path.to_string_lossy())?;
        self.desktop.press(&[Key::RETURN])?;
        until("the dialog closed", STEP, || Ok(self.desktop.window(dialog.id).is_none()))
    }

    /// Waits until something accepts connections on a port of this machine.
    fn wait_for_port(&mut self, port: u16) -> Result<()> {
        self.process.wait_for(&format!("port {port} accepted"), STEP, |_| {
            Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok().map(drop))
        })
    }

    /// Adds a picture of the display, kept for the reader, to an error.
    fn pictured<T>(&self, result: Result<T>) -> Result<T> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let lua = |source: &Error| matches!(source, Error::Lua(_));
        result.map_err(|source| {
            let name = format!("{}-{}.png", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let picture: PathBuf = paths::failures_dir().join(name);
            match self.desktop.picture().and_then(|taken| taken.save(&picture)) {
                Ok(()) if !lua(&source) => Error::Pictured { source: Box::new(source), picture },
                _ => source,
            }
        })
    }
}
