//! A core that runs Framewire's script, like a stock mGBA with a window, so that a server can attach to it.

use std::path::PathBuf;

use framewire_emulator::Embedded;
use framewire_emulator::embedded::Rom;
use framewire_http::App;
use tempfile::TempDir;
use tokio::net::TcpSocket;

use crate::failures::attached;
use crate::reserved_port::reserved_port;
use crate::support::{Server, core, repository, wait_for};

/// The port on which the script listens, and to which a server attaches.
pub struct ScriptPort {
    port: u16,
    /// Keeps other programs from getting the port.
    _reserved: TcpSocket,
    folder: TempDir,
}

impl ScriptPort {
    pub fn new() -> ScriptPort {
        let (reserved, address) = reserved_port();
        ScriptPort { port: address.port(), _reserved: reserved, folder: tempfile::tempdir().unwrap() }
    }

    /// Starts a core that runs the demo game and a script that listens on the port.
    pub fn core(&self) -> Embedded {
        self.core_of(Rom::File(repository("rom/framewire-demo.gba")))
    }

    /// Starts a core that runs this ROM and a script that listens on the port.
    pub fn core_of(&self, rom: Rom) -> Embedded {
        // The global table from which the script reads its settings.
        let settings: PathBuf = self.folder.path().join("settings.lua");
        std::fs::write(&settings, format!("framewire = {{port = {}, log_level = 'warn'}}", self.port))
            .unwrap();
        let scripts = vec![settings, framewire_script::PATH.into()];
        core(rom, false, scripts)
    }

    /// Starts a server that attaches to the port.
    pub fn server(&self, change: impl FnOnce(&mut App)) -> Server {
        attached(format!("127.0.0.1:{}", self.port), change)
    }
}

/// A core that runs the demo game and a script, and a server that is connected to the script.
pub fn connected() -> (Embedded, Server) {
    connected_with(|_| {})
}

/// Like [`connected`], for a server with other settings.
pub fn connected_with(change: impl FnOnce(&mut App)) -> (Embedded, Server) {
    let port = ScriptPort::new();
    let (core, server) = (port.core(), port.server(change));
    ready(&server);
    (core, server)
}

/// Waits until the server is connected to the script, the core runs frames, and the server knows the game.
pub fn ready(server: &Server) {
    wait_for("a connection", || {
        let state = server.get("/v1/emulator").text();
        state.contains("\"run\":\"running\"") && !state.contains("\"title\":null")
    });
}
