//! An X display (Xvfb) and its control: windows, keys, the mouse, pictures.
//!
//! No window manager runs. So this module sets the focus itself, and closes a window with the message that a window
//! manager would send. It uses the X11 protocol directly and not a tool such as xdotool, which would need a process for
//! each step.

mod keyboard;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Duration;

use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{
    AtomEnum, BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ClientMessageEvent, ConfigureWindowAux,
    ConnectionExt as _, EventMask, ImageFormat, InputFocus, KEY_PRESS_EVENT, KEY_RELEASE_EVENT,
    MOTION_NOTIFY_EVENT, MapState, StackMode,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

pub use keyboard::Key;
use keyboard::{Keyboard, Stroke};

use crate::{Error, Process, Result, until};

/// How long the X server may take to start, and how long a window may take to get the keyboard focus.
const LIMIT: Duration = Duration::from_secs(10);
/// The screen's width, height and bits per pixel. mGBA's main window and its scripting window fit next to each other.
const SCREEN: &str = "1400x720x24";

x11rb::atom_manager! {
    Atoms: AtomsCookie { _NET_WM_NAME, UTF8_STRING, WM_PROTOCOLS, WM_DELETE_WINDOW, }
}

/// A display with its own X server. Dropping it ends the X server, and with it every program on the display.
///
/// Requests fail with [`Error::X11`] if the server or the window is gone.
#[derive(Debug)]
pub struct Desktop {
    name: String,
    connection: RustConnection,
    root: u32,
    atoms: Atoms,
    keyboard: Keyboard,
    xvfb: Process,
}

/// A visible window, as it was at the time of the request.
#[derive(Debug, Clone)]
pub struct Window {
    /// The id of the window in the X server.
    pub id: u32,
    /// The text of its title bar; empty if it has no title.
    pub title: String,
    /// The left edge on the display, in pixels.
    pub x: i16,
    /// The top edge on the display, in pixels.
    pub y: i16,
    /// In pixels.
    pub width: u16,
    /// In pixels.
    pub height: u16,
}

/// A picture of a part of the display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// In pixels.
    pub width: u16,
    /// In pixels.
    pub height: u16,
    /// Red, green and blue of each pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// Writes the picture as a PNG file. Creates the folder if necessary.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let what = format!("write {}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::io(&what))?;
        }
        let file = BufWriter::new(File::create(path).map_err(Error::io(&what))?);
        let mut encoder = png::Encoder::new(file, self.width.into(), self.height.into());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.rgb)?;
            writer.finish()
        });
        written.map_err(|error| Error::io(what)(io::Error::other(error)))
    }
}

impl Desktop {
    /// Starts an X server on a free display. Only this machine can reach it. Its logs go to the folder `logs`.
    pub fn start(logs: &Path) -> Result<Self> {
        let mut xvfb = Process::spawn("Xvfb", logs, |command| {
            command.args(["-displayfd", "1", "-screen", "0", SCREEN, "-nolisten", "tcp", "-noreset"]);
        })?;
        // Because of `-displayfd 1`, Xvfb writes the display's number to its output once it is ready for clients.
        let name = xvfb.wait_for("Xvfb was ready", LIMIT, |xvfb| {
            Ok(xvfb.stdout().strip_suffix('\n').map(|number| format!(":{number}")))
        })?;
        let (connection, screen) =
            x11rb::connect(Some(&name)).map_err(|error| Error::X11(error.to_string()))?;
        let root = connection.setup().roots[screen].root;
        let atoms = Atoms::new(&connection)?.reply()?;
        let keyboard = Keyboard::read(&connection)?;
        Ok(Self { name, connection, root, atoms, keyboard, xvfb })
    }

    /// The value for the environment variable `DISPLAY`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Every visible top-level window, from the bottom of the stack to the top.
    pub fn windows(&self) -> Result<Vec<Window>> {
        let tree = self.connection.query_tree(self.root)?.reply()?;
        // A window that closes during this call is skipped.
        Ok(tree.children.iter().filter_map(|&id| self.window(id)).collect())
    }

    /// The current properties of the window with this id; `None` if it is gone or hidden.
    #[must_use]
    pub fn window(&self, id: u32) -> Option<Window> {
        let attributes = self.connection.get_window_attributes(id).ok()?.reply().ok()?;
        if attributes.map_state != MapState::VIEWABLE {
            return None;
        }
        let place = self.connection.get_geometry(id).ok()?.reply().ok()?;
        let name = self.atoms._NET_WM_NAME;
        let request = self.connection.get_property(false, id, name, AtomEnum::ANY, 0, 1024);
        let title = String::from_utf8_lossy(&request.ok()?.reply().ok()?.value).into_owned();
        Some(Window { id, title, x: place.x, y: place.y, width: place.width, height: place.height })
    }

    /// Gives a window the keyboard focus, and waits until it has the focus. Fails if the window is hidden.
    pub fn focus(&self, window: u32) -> Result<()> {
        self.connection.set_input_focus(InputFocus::PARENT, window, x11rb::CURRENT_TIME)?.check()?;
        until("the window had the keyboard", LIMIT, || {
            Ok(self.connection.get_input_focus()?.reply()?.focus == window)
        })
    }

    /// Moves a window to the given position on the display, and above all other windows.
    pub fn place(&self, window: u32, x: i32, y: i32) -> Result<()> {
        let changes = ConfigureWindowAux::new().x(x).y(y).stack_mode(StackMode::ABOVE);
        Ok(self.connection.configure_window(window, &changes)?.check()?)
    }

    /// Presses the keys one after the other and releases them in reverse order. Ctrl+P is `[Key::CONTROL,
    /// Key::of('p')]`.
    pub fn press(&self, chord: &[Key]) -> Result<()> {
        let strokes = chord.iter().map(|&key| self.keyboard.stroke(key)).collect::<Result<Vec<_>>>()?;
        for stroke in &strokes {
            self.fake(KEY_PRESS_EVENT, stroke.code, 0, 0)?;
        }
        for stroke in strokes.iter().rev() {
            self.fake(KEY_RELEASE_EVENT, stroke.code, 0, 0)?;
        }
        self.settle()
    }

    /// Presses a key and keeps it down.
    pub fn hold(&self, key: Key) -> Result<()> {
        self.fake(KEY_PRESS_EVENT, self.keyboard.stroke(key)?.code, 0, 0)
    }

    /// Releases a key.
    pub fn release(&self, key: Key) -> Result<()> {
        self.fake(KEY_RELEASE_EVENT, self.keyboard.stroke(key)?.code, 0, 0)
    }

    /// Types ASCII text into the window that has the keyboard focus.
    pub fn type_text(&self, text: &str) -> Result<()> {
        for character in text.chars() {
            let key = Key::of(character);
            match self.keyboard.stroke(key)? {
                Stroke { shifted: true, .. } => self.press(&[Key::SHIFT, key])?,
                Stroke { shifted: false, .. } => self.press(&[key])?,
            }
        }
        Ok(())
    }

    /// Clicks with the left mouse button at a position on the display.
    pub fn click(&self, x: i16, y: i16) -> Result<()> {
        self.fake(MOTION_NOTIFY_EVENT, 0, x, y)?;
        self.fake(BUTTON_PRESS_EVENT, 1, 0, 0)?;
        self.fake(BUTTON_RELEASE_EVENT, 1, 0, 0)?;
        self.settle()
    }

    /// Asks a window to close, as the close button of a window's frame does.
    pub fn close(&self, window: u32) -> Result<()> {
        let data = [self.atoms.WM_DELETE_WINDOW, x11rb::CURRENT_TIME, 0, 0, 0];
        let message = ClientMessageEvent::new(32, window, self.atoms.WM_PROTOCOLS, data);
        Ok(self.connection.send_event(false, window, EventMask::NO_EVENT, message)?.check()?)
    }

    /// A picture of the whole display.
    pub fn picture(&self) -> Result<Picture> {
        let size = self.connection.get_geometry(self.root)?.reply()?;
        self.take(0, 0, size.width, size.height)
    }

    /// A picture of the part of the display where `window` is. The window must not reach beyond the display.
    pub fn picture_of(&self, window: &Window) -> Result<Picture> {
        self.take(window.x, window.y, window.width, window.height)
    }

    fn take(&self, x: i16, y: i16, width: u16, height: u16) -> Result<Picture> {
        let format = ImageFormat::Z_PIXMAP;
        let image = self.connection.get_image(format, self.root, x, y, width, height, u32::MAX)?.reply()?;
        // Our Xvfb stores the 24 bits of a pixel in four bytes. On a little-endian machine, blue comes first.
        let rgb = image.data.chunks_exact(4).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect();
        Ok(Picture { width, height, rgb })
    }

    /// Sends an event as if it came from the hardware.
    fn fake(&self, kind: u8, detail: u8, x: i16, y: i16) -> Result<()> {
        let request = self.connection.xtest_fake_input(kind, detail, x11rb::CURRENT_TIME, self.root, x, y, 0);
        Ok(request?.check()?)
    }

    /// Waits until the server has handled everything sent so far.
    fn settle(&self) -> Result<()> {
        self.connection.get_input_focus()?.reply()?;
        Ok(())
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        // Stops Xvfb with a signal, so that it removes its lock file and socket.
        self.xvfb.stop(Duration::from_secs(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_displays_run_at_once_and_end_when_dropped() {
        let logs = tempfile::tempdir().unwrap();
        let one = Desktop::start(logs.path()).unwrap();
        let more = tempfile::tempdir().unwrap();
        let two = Desktop::start(more.path()).unwrap();
        assert_ne!(one.name(), two.name());
        assert!(one.windows().unwrap().is_empty());
        let picture = one.picture().unwrap();
        assert_eq!((picture.width, picture.height), (1400, 720));
        let socket = format!("/tmp/.X11-unix/X{}", one.name().trim_start_matches(':'));
        assert!(Path::new(&socket).exists());
        drop(one);
        assert!(!Path::new(&socket).exists(), "the X server left its socket");
        two.press(&[Key::CONTROL, Key::of('p')]).unwrap();
    }
}
