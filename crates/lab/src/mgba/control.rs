//! The actions that a user can perform in a running mGBA, with menus, dialogs and keys.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::{AGAIN, NO_GAME, STEP, StockMgba, options, prompt};
use crate::{Error, Key, Result, Window, until, until_some};

/// Long enough for three frames: if the frame does not change in this time, emulation has stopped.
const STILL: Duration = Duration::from_millis(50);

impl StockMgba {
    /// Loads a script with `dofile` at the prompt of the scripting window. The script can be one that is already
    /// loaded.
    ///
    /// # Errors
    /// [`Error::Lua`] with the script's message if the script fails.
    pub fn load_script(&mut self, script: &Path) -> Result<()> {
        self.pictured(|mgba| mgba.load_script_now(script))
    }

    /// Loads a script with File > Load script, as users do. If the options have a port, waits until the script listens
    /// on it. Without a port, this function cannot check that the script runs.
    pub fn load_script_by_menu(&mut self, script: &Path) -> Result<()> {
        self.pictured(|mgba| {
            let press = |mgba: &mut Self| mgba.press_in_script_menu(Key::RETURN);
            let dialog = mgba.open_window("Select script to load", press)?;
            mgba.choose_file(&dialog, script)?;
            mgba.port.map_or(Ok(()), |port| mgba.wait_for_port(port))
        })
    }

    /// Removes all scripts with File > Reset in the scripting window.
    pub fn reset_scripts(&mut self) -> Result<()> {
        self.pictured(|mgba| {
            mgba.lua_now("not_reset_yet = true")?;
            mgba.act_until(
                "the scripts were gone",
                |mgba| mgba.press_in_script_menu(Key::of('r')),
                |mgba| Ok((mgba.lua_now("return not_reset_yet")? == "nil").then_some(())),
            )?;
            mgba.prepare_lua()
        })
    }

    /// Opens another game with File > Load ROM, and waits until it runs.
    ///
    /// # Errors
    /// [`Error::Pictured`] with an [`Error::Timeout`], if it does not run, for instance because mGBA cannot read the
    /// file.
    pub fn open_rom(&mut self, rom: &Path) -> Result<()> {
        self.pictured(|mgba| {
            // mGBA creates a new object `emu` for each game.
            mgba.lua_now("game_before = emu")?;
            let dialog = mgba.open_window("Select ROM", |mgba| mgba.press_in_main(&options::OPEN_ROM))?;
            mgba.choose_file(&dialog, rom)?;
            mgba.wait_for_new_frame_rate()?;
            until("the other game ran", STEP, || {
                Ok(mgba.lua_now("return emu ~= nil and emu ~= game_before")? == "true")
            })?;
            mgba.paused = false;
            Ok(())
        })
    }

    /// Waits until a game that was just opened has run for two seconds. Then the title bar shows the frame rate.
    ///
    /// Before that, it is not safe to run Lua. The previous game may still be ending, and mGBA does not wait for that
    /// game's thread before it runs Lua. Also, OpenGL takes longest for the first pictures of a game, which makes the
    /// crash that [`StockOptions::opengl`](super::StockOptions::opengl) describes more likely.
    pub(super) fn wait_for_frame_rate(&self) -> Result<()> {
        until("the game's frame rate was shown", STEP, || self.shows_frame_rate())
    }

    fn shows_frame_rate(&self) -> Result<bool> {
        Ok(self.main_window()?.title.contains(" fps)"))
    }

    /// Like [`StockMgba::wait_for_frame_rate`], for the case that the title bar may still show the previous game's
    /// frame rate.
    fn wait_for_new_frame_rate(&self) -> Result<()> {
        // Waits until the title bar no longer shows the frame rate of the previous game. A timeout is not an error: the
        // title bar may already show the frame rate of the new game.
        match until("the title was the new game's", AGAIN, || Ok(!self.shows_frame_rate()?)) {
            Ok(()) | Err(Error::Timeout { .. }) => self.wait_for_frame_rate(),
            Err(error) => Err(error),
        }
    }

    /// Ends the game with Emulation > Shutdown. The window stays open.
    pub fn close_game(&mut self) -> Result<()> {
        let result = self.pictured(|mgba| {
            // Waits for the title first, because mGBA runs Lua even while the thread of the old game is still ending.
            mgba.act_until(
                "the title named no game",
                |mgba| mgba.press_in_main(&options::SHUTDOWN),
                |mgba| Ok(mgba.main_window()?.title.starts_with(NO_GAME).then_some(())),
            )?;
            until("the game was closed", STEP, || Ok(mgba.lua_now("return emu")? == "nil"))
        });
        self.paused = false;
        result
    }

    /// Pauses the game with Emulation > Pause, and waits until no frames run.
    pub fn pause(&mut self) -> Result<()> {
        self.set_paused(true)
    }

    /// Continues the game after [`StockMgba::pause`], and waits until frames run.
    pub fn resume(&mut self) -> Result<()> {
        self.set_paused(false)
    }

    fn set_paused(&mut self, paused: bool) -> Result<()> {
        if self.paused == paused {
            return Ok(());
        }
        let what = if paused { "the emulation stopped" } else { "the emulation continued" };
        let press = |mgba: &mut Self| mgba.press_in_main(&options::PAUSE);
        let is_done = |mgba: &mut Self| {
            let before = mgba.frame_now()?;
            thread::sleep(STILL);
            Ok(((mgba.frame_now()? == before) == paused).then_some(()))
        };
        let result = self.pictured(|mgba| mgba.act_until(what, press, is_done));
        self.paused = paused;
        result
    }

    /// Runs one frame while paused, with Emulation > Next frame.
    pub fn next_frame(&mut self) -> Result<()> {
        self.pictured(|mgba| {
            let before = mgba.frame_now()?;
            mgba.act_until(
                "a frame was done",
                |mgba| mgba.press_in_main(&options::NEXT_FRAME),
                |mgba| Ok((mgba.frame_now()? != before).then_some(())),
            )
        })
    }

    /// Resets the game with Emulation > Reset, and waits until its frame counter starts from zero again. The game must
    /// run, because this function first waits for the game's frame 120.
    pub fn reset(&mut self) -> Result<()> {
        self.pictured(|mgba| {
            // After the reset, many frames can run before Lua reads the counter. Even then, it must be lower than
            // `before`.
            let before = until_some("the game had run for two seconds", STEP, || {
                let frame = mgba.frame_now()?;
                Ok((frame >= 120).then_some(frame))
            })?;
            mgba.act_until(
                "the game was reset",
                |mgba| mgba.press_in_main(&options::RESET),
                |mgba| Ok((mgba.frame_now()? < before).then_some(())),
            )
        })
    }

    /// Turns fast-forward on or off with Emulation > Fast forward.
    pub fn toggle_fast_forward(&mut self) -> Result<()> {
        self.pictured(|mgba| mgba.press_in_main(&options::FAST_FORWARD))
    }

    /// Holds down a key of the keyboard in mGBA's window. By default, `x` is the console's key A, and `z` is B.
    pub fn hold_key(&mut self, key: Key) -> Result<()> {
        self.desktop.focus(self.main)?;
        self.desktop.hold(key)
    }

    /// Releases a key that [`StockMgba::hold_key`] holds.
    pub fn release_key(&mut self, key: Key) -> Result<()> {
        self.desktop.release(key)
    }

    pub(super) fn load_script_now(&mut self, script: &Path) -> Result<()> {
        let what = format!("find the script {}", script.display());
        let path = script.canonicalize().map_err(Error::io(what))?;
        self.lua_now(&format!("dofile({})", prompt::quoted(&path))).map(drop)
    }

    /// The number of the game's current frame. A reset sets it back to zero.
    fn frame_now(&mut self) -> Result<u64> {
        let frame = self.lua_now("return emu:currentFrame()")?;
        frame.parse().map_err(|_| Error::Lua(format!("{frame:?} is not a frame number")))
    }

    /// Opens the only menu of the scripting window, and presses a key in it. When the menu opens, its first entry is
    /// selected.
    fn press_in_script_menu(&mut self, key: Key) -> Result<()> {
        self.desktop.focus(self.prompt.window)?;
        self.desktop.press(&[Key::ALT])?;
        self.desktop.press(&[Key::DOWN])?;
        self.desktop.press(&[key])
    }

    /// Types a path into a file dialog and waits until the dialog has closed.
    fn choose_file(&mut self, dialog: &Window, file: &Path) -> Result<()> {
        let path = file.canonicalize().map_err(Error::io(format!("find {}", file.display())))?;
        // On a busy machine, the dialog's list of completions may take the Return key, so the path may have to be typed
        // again.
        self.act_until(
            &format!("the dialog \"{}\" took {}", dialog.title, path.display()),
            |mgba| {
                mgba.desktop.focus(dialog.id)?;
                mgba.desktop.press(&[Key::CONTROL, Key::of('a')])?;
                mgba.desktop.type_text(&path.to_string_lossy())?;
                mgba.desktop.press(&[Key::RETURN])
            },
            |mgba| Ok(mgba.desktop.window(dialog.id).is_none().then_some(())),
        )
    }
}
