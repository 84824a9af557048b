//! A core with our script in it, as in an mGBA that a server is attached to.

use std::net::TcpListener;
use std::path::PathBuf;

use framewire_emulator::Embedded;
use framewire_emulator::embedded::Rom;
use framewire_http::App;
use tempfile::TempDir;

use crate::failures::attached;
use crate::support::{Server, core, repository, wait_for};

/// The port at which a server looks for such a core.
pub struct Place {
    port: u16,
    folder: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).unwrap().port();
        Place { port, folder: tempfile::tempdir().unwrap() }
    }

    /// Starts a core whose script listens at the port.
    pub fn core(&self) -> Embedded {
        self.core_of(Rom::File(repository("rom/framewire-demo.gba")))
    }

    /// The same with another game.
    pub fn core_of(&self, rom: Rom) -> Embedded {
        let settings: PathBuf = self.folder.path().join("settings.lua");
        std::fs::write(&settings, format!("framewire = {{port = {}, log_level = 'warn'}}", self.port))
            .unwrap();
        let scripts = vec![settings, framewire_script::PATH.into()];
        core(rom, false, scripts)
    }

    /// A server that attaches to the port.
    pub fn server(&self, change: impl FnOnce(&mut App)) -> Server {
        attached(format!("127.0.0.1:{}", self.port), change)
    }
}

/// Waits until the core runs frames.
pub fn ready(server: &Server) {
    wait_for("a connection", || server.get("/v1/emulator").text().contains("\"run\":\"running\""));
}
