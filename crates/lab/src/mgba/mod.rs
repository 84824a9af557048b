//! A stock mGBA in a window: Debian's unchanged `mgba-qt`, with scripts.

mod control;
mod options;
mod prompt;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

pub use options::StockOptions;
use prompt::Prompt;

use crate::{Desktop, Error, Key, Picture, Process, Result, Signal, Window, ports, until_some};

/// The time limit for each step of the start, and for most other actions. Even a busy machine needs less.
const STEP: Duration = Duration::from_secs(20);
/// If keys have no effect for this time, they are pressed again.
const AGAIN: Duration = Duration::from_secs(4);
/// How many times keys are pressed, at most.
const TRIES: u32 = 5;
/// The beginning of the main window's title without a game. With a game, its name comes before the version number.
const NO_GAME: &str = "mGBA - 0.";
/// The title of the scripting window.
const SCRIPTING: &str = "Scripting";

/// A running mGBA with its own display, settings and saves. Dropping it ends mGBA and its display, and deletes the
/// files.
///
/// Most methods wait until their action has had an effect. They fail with [`Error::Timeout`] if there is no effect in
/// time, and with [`Error::X11`] if the window is gone. Most errors are inside an [`Error::Pictured`], which has a
/// picture of the display.
#[derive(Debug)]
pub struct StockMgba {
    // Fields are dropped in this order: first the program, then its display, then its files.
    process: Process,
    desktop: Desktop,
    dir: TempDir,
    main: u32,
    prompt: Prompt,
    port: Option<u16>,
    /// Lua code that runs before any script, at the start and after a reset of the scripting window.
    before_scripts: String,
    paused: bool,
}

impl StockMgba {
    /// Starts mGBA, opens its scripting window and loads the scripts in order.
    ///
    /// # Errors
    /// [`Error::Missing`] without `mgba-qt`, `Xvfb` or `setpriv`; [`Error::Lua`] if a script fails; [`Error::Ended`] if
    /// mGBA ends; [`Error::Pictured`] for all other errors after mGBA has started.
    pub fn start(options: &StockOptions) -> Result<Self> {
        let dir = TempDir::with_prefix("stock-mgba-").map_err(Error::io("make a folder for mGBA"))?;
        options.write_settings(dir.path())?;
        let desktop = Desktop::start(dir.path())?;
        let process = Process::spawn("mgba-qt", dir.path(), |command| {
            options.configure(command, dir.path(), desktop.name());
        })?;
        let prompt = Prompt::new(dir.path());
        let mut mgba = Self {
            process,
            desktop,
            dir,
            main: 0,
            prompt,
            port: options.port,
            before_scripts: options.lua_before_scripts(),
            paused: false,
        };
        mgba.pictured(|mgba| mgba.finish_start(options))?;
        Ok(mgba)
    }

    fn finish_start(&mut self, options: &StockOptions) -> Result<()> {
        let desktop = &self.desktop;
        let window = self.process.wait_for("mGBA's window was there", STEP, |_| {
            let windows = desktop.windows()?;
            let with_game = |window: &Window| options.rom.is_none() || !window.title.starts_with(NO_GAME);
            Ok(windows.into_iter().find(|window| window.title.starts_with("mGBA - ") && with_game(window)))
        })?;
        self.main = window.id;
        self.desktop.place(window.id, 0, 0)?;
        if options.rom.is_some() && options.opengl {
            self.wait_for_frame_rate()?;
        }

        let scripting = self.open_window(SCRIPTING, |mgba| mgba.press_in_main(&options::OPEN_SCRIPTING))?;
        self.desktop.place(scripting.id, i32::from(window.width) + 8, 0)?;
        self.prompt.window = scripting.id;
        self.prepare_lua()?;
        for script in &options.scripts {
            self.load_script_now(script)?;
        }
        match (self.port, options.scripts.is_empty()) {
            (Some(port), false) => self.wait_for_port(port),
            _ => Ok(()),
        }
    }

    /// Runs the code that must run before any script. It copies the console to a file, and applies the options.
    fn prepare_lua(&mut self) -> Result<()> {
        self.lua_now(prompt::KEEP_CONSOLE)?;
        let before = self.before_scripts.clone();
        self.lua_now(&before)?;
        Ok(())
    }

    /// The address on which the script listens.
    ///
    /// # Panics
    /// If the options have no port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.expect("the options have a port")).into()
    }

    /// The process id of `mgba-qt`.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The folder for its settings and its copy of the ROM. It is mGBA's working folder, so relative paths in scripts
    /// start there.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What scripts have written to the console. Each message is a line that begins with its level: `log`, `warn` or
    /// `error`.
    #[must_use]
    pub fn console(&self) -> String {
        self.prompt.console()
    }

    /// Runs Lua code at the prompt of the scripting window. Returns the results of the code as text, separated by tabs.
    /// This also works while the emulation is paused, and without a game.
    ///
    /// # Errors
    /// [`Error::Lua`] with the code's message if the code fails.
    pub fn lua(&mut self, code: &str) -> Result<String> {
        self.pictured(|mgba| mgba.lua_now(code))
    }

    /// The text of the main window's title bar. It contains the game's name, and after two seconds the frame rate.
    pub fn title(&self) -> Result<String> {
        Ok(self.main_window()?.title)
    }

    /// A picture of mGBA's main window, with its menu bar.
    pub fn picture(&self) -> Result<Picture> {
        self.desktop.picture_of(&self.main_window()?)
    }

    /// Asks mGBA's window to close, as the close button of a window's frame does. Does not wait until it has closed.
    pub fn close_window(&mut self) -> Result<()> {
        self.desktop.close(self.main)
    }

    /// Sends mGBA a signal.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Waits until mGBA has ended.
    ///
    /// # Errors
    /// [`Error::Pictured`] with an [`Error::Timeout`], if it still runs after `limit`.
    pub fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.pictured(|mgba| mgba.process.wait_exit(limit))
    }

    /// Checks that mGBA still runs.
    ///
    /// # Errors
    /// [`Error::Ended`] with the end of its output if it has ended.
    pub fn expect_running(&mut self) -> Result<()> {
        self.process.expect_running()
    }

    fn lua_now(&mut self, code: &str) -> Result<String> {
        self.process.expect_running()?;
        self.prompt.run(&self.desktop, &mut self.process, code)
    }

    fn main_window(&self) -> Result<Window> {
        self.desktop.window(self.main).ok_or_else(|| Error::X11("mGBA's window is gone".into()))
    }

    fn press_in_main(&mut self, chord: &[Key]) -> Result<()> {
        self.process.expect_running()?;
        self.desktop.focus(self.main)?;
        self.desktop.press(chord)
    }

    /// Calls `open` until there is a window with this title.
    fn open_window(&mut self, title: &str, open: impl Fn(&mut Self) -> Result<()>) -> Result<Window> {
        self.act_until(&format!("the window \"{title}\" opened"), open, |mgba| {
            Ok(mgba.desktop.windows()?.into_iter().find(|window| window.title == title))
        })
    }

    /// Calls `act`, and waits until `found` returns a value. If `found` returns `None` for a while, calls `act` again,
    /// because mGBA can lose a key. For instance, mGBA can lose the key for Pause while a frame that was started with
    /// Emulation > Next frame still runs.
    fn act_until<T>(
        &mut self,
        what: &str,
        act: impl Fn(&mut Self) -> Result<()>,
        found: impl Fn(&mut Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut tries = 0;
        loop {
            act(self)?;
            tries += 1;
            let result = until_some(what, AGAIN, || {
                self.process.expect_running()?;
                found(self)
            });
            match result {
                // A timeout of another wait inside `found`, such as a wait for Lua, is returned: that wait has already
                // made several attempts.
                Err(Error::Timeout { what: late, .. }) if late == what && tries < TRIES => {}
                result => return result,
            }
        }
    }

    /// Waits until something listens on a port. It does not connect to find out, because the script would notice a
    /// connection.
    fn wait_for_port(&mut self, port: u16) -> Result<()> {
        let what = format!("something listened on port {port}");
        self.process.wait_for(&what, STEP, |_| Ok(ports::is_listened_on(port)?.then_some(())))
    }

    /// Performs an action. Adds a picture of the display to its error, except to errors of Lua code and of a program
    /// that has ended.
    fn pictured<T>(&mut self, action: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let source = match action(self) {
            Err(source) if !matches!(source, Error::Lua(_) | Error::Ended { .. }) => source,
            result => return result,
        };
        let name = format!("{}-{}.png", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let picture = std::env::temp_dir().join("framewire-failures").join(name);
        match self.desktop.picture().and_then(|taken| taken.save(&picture)) {
            Ok(()) => Err(Error::Pictured { source: Box::new(source), picture }),
            Err(_) => Err(source),
        }
    }
}
