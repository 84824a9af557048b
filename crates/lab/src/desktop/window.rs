//! The properties of a window.

use x11rb::protocol::xproto::{ConnectionExt as _, MapState};
use x11rb::rust_connection::RustConnection;

use super::{AtomEnum, Atoms};

/// A visible window, at the time of the request.
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

impl Window {
    /// Reads the properties of a window; `None` if it is gone or hidden.
    pub(super) fn read(connection: &RustConnection, atoms: &Atoms, id: u32) -> Option<Self> {
        let attributes = connection.get_window_attributes(id).ok()?.reply().ok()?;
        if attributes.map_state != MapState::VIEWABLE {
            return None;
        }
        let place = connection.get_geometry(id).ok()?.reply().ok()?;
        let request = connection.get_property(false, id, atoms._NET_WM_NAME, AtomEnum::ANY, 0, 1024);
        let title = String::from_utf8_lossy(&request.ok()?.reply().ok()?.value).into_owned();
        Some(Self { id, title, x: place.x, y: place.y, width: place.width, height: place.height })
    }
}
