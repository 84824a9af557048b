//! Starts `framewire serve` with each kind of emulator.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use framewire_e2e::{Framewire, Http, Reply, StockMgba, StockOptions, demo, paths, ports, until};
use serde_json::Value;
use tempfile::TempDir;

/// The longest time that a test waits for a condition.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server and its emulator. Both end when this is dropped.
pub struct Served {
    pub server: Framewire,
    pub http: Http,
    /// The stock mGBA to which the server is attached, if any.
    pub mgba: Option<StockMgba>,
    /// The other Framewire process to which the server is attached, if any. It runs the script in a core without a
    /// window.
    pub host: Option<Framewire>,
    pub folder: TempDir,
}

impl Served {
    /// A server with an embedded core.
    pub fn embedded() -> Served {
        Served::game_of(&fs::read(paths::rom()).unwrap(), "demo game+1.gba", &[])
    }

    /// A server with an embedded core, this game and these settings.
    pub fn game_of(rom: &[u8], name: &str, settings: &[&str]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, rom).unwrap();
        let server = Framewire::serve(&[&["--rom", path.to_str().unwrap()], settings].concat()).unwrap();
        Served { http: server.http(), server, mgba: None, host: None, folder }
    }

    /// A server that is attached to Framewire's script in a stock mGBA.
    pub fn stock() -> Served {
        Served::window(|options| options, &[])
    }

    /// Like [`Served::stock`], but frames run as fast as mGBA can run them.
    pub fn unlimited_stock() -> Served {
        Served::window(|options| options.config("audioSync", "0"), &[])
    }

    /// Like [`Served::stock`], with the options of mGBA that `change` returns and these arguments for the server.
    pub fn window(change: impl FnOnce(StockOptions) -> StockOptions, arguments: &[&str]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let rom = demo_copy(&folder);
        let options = change(StockOptions::new(&rom).script(&paths::script()).port(ports::free()));
        let mgba = StockMgba::start(&options).unwrap();
        let script = mgba.address();
        Served::attached(folder, Some(mgba), None, script, arguments)
    }

    /// A server that is attached to Framewire's script in a core without a window.
    pub fn hosted() -> Served {
        let folder = tempfile::tempdir().unwrap();
        let (host, script) = host(&folder, &demo_copy(&folder));
        Served::attached(folder, None, Some(host), script, &[])
    }

    /// A server with these arguments that is attached to the script at this address.
    pub fn attached(
        folder: TempDir,
        mgba: Option<StockMgba>,
        host: Option<Framewire>,
        script: SocketAddr,
        arguments: &[&str],
    ) -> Served {
        let address = script.to_string();
        let server = Framewire::serve(&[&["--attach", &address], arguments].concat()).unwrap();
        let served = Served { http: server.http(), server, mgba, host, folder };
        served.ready();
        served
    }

    /// Waits until the emulator answers.
    pub fn ready(&self) {
        ready(&self.http);
    }

    /// Waits until the server reports that there is no connection to the script.
    pub fn wait_until_gone(&self) {
        wait_until("the server reports that the script is gone", || {
            Ok(self.get("/core/currentframe").status == 502)
        });
    }

    /// Waits until the demo game runs. It reads keys and counts presses only after its initialization.
    pub fn wait_for_game(&self) {
        wait_until("the game runs", || Ok(self.game(demo::field("frame")) > 5));
    }

    /// The stock mGBA to which the server is attached.
    pub fn mgba(&mut self) -> &mut StockMgba {
        self.mgba.as_mut().unwrap()
    }

    /// What scripts have written to the console of that mGBA.
    pub fn console(&self) -> String {
        self.mgba.as_ref().unwrap().console()
    }

    /// The path of a file in the ROM's folder, encoded for a query.
    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().replace(' ', "%20").replace('+', "%2B")
    }

    pub fn get(&self, target: &str) -> Reply {
        self.http.get(target).unwrap()
    }

    /// The text of the response to a GET request that must succeed.
    #[track_caller]
    pub fn text(&self, target: &str) -> String {
        let reply = self.get(target);
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        reply.text()
    }

    #[track_caller]
    pub fn number(&self, target: &str) -> i64 {
        self.text(target).parse().unwrap()
    }

    /// The text of the response to a POST request that must succeed.
    #[track_caller]
    pub fn post(&self, target: &str) -> String {
        let reply = self.http.post(target).unwrap();
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        reply.text()
    }

    /// The JSON of the response to a request with a JSON body, which must have this status.
    #[track_caller]
    pub fn ask(&self, method: &str, target: &str, body: &Value, status: u16) -> Value {
        let reply = self.http.send_json(method, target, body).unwrap();
        assert_eq!(reply.status, status, "{method} {target}: {}", reply.text());
        reply.json()
    }

    /// Checks that a request gets a response with this status, and with this text in it.
    #[track_caller]
    pub fn refused(&self, method: &str, target: &str, status: u16, says: &str) {
        let reply = self.http.send(method, target, "", Vec::new()).unwrap();
        assert_eq!(reply.status, status, "{method} {target}: {}", reply.text());
        assert!(reply.text().contains(says), "{method} {target}: {}", reply.text());
    }

    /// The 32-bit number at this address in the game's memory.
    #[track_caller]
    pub fn game(&self, address: u32) -> i64 {
        self.number(&format!("/core/read32?address={address}"))
    }
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(what: &str, condition: impl FnMut() -> framewire_e2e::Result<bool>) {
    until(what, PATIENCE, condition).unwrap();
}

/// Waits until the emulator of a server answers.
pub fn ready(http: &Http) {
    wait_until("the emulator answers", || Ok(http.get("/core/currentframe")?.status == 200));
}

/// Waits until a server reports this state of its emulator, such as `running`.
pub fn wait_for_run(http: &Http, run: &str) {
    let wanted = format!(r#""run":"{run}""#);
    wait_until(&format!("the emulator is {run}"), || Ok(http.get("/v1/emulator")?.text().contains(&wanted)));
}

/// Starts the program with this game and with Framewire's script in its core. Also returns the script's address.
pub fn host(folder: &TempDir, rom: &Path) -> (Framewire, SocketAddr) {
    let args = ["--rom", rom.to_str().unwrap()];
    Framewire::host_script(folder.path(), &paths::script(), "", &args).unwrap()
}

/// A stock mGBA that runs this game and Framewire's script.
pub fn stock(rom: &Path) -> StockMgba {
    StockMgba::start(&StockOptions::new(rom).script(&paths::script()).port(ports::free())).unwrap()
}

/// A copy of the demo ROM in a folder where saves and states can be written.
pub fn demo_copy(folder: &TempDir) -> PathBuf {
    let rom = folder.path().join("demo game+1.gba");
    fs::copy(paths::rom(), &rom).unwrap();
    rom
}

/// A copy of the demo game with another title.
pub fn other_game(folder: &TempDir) -> PathBuf {
    let mut rom = fs::read(paths::rom()).unwrap();
    rom[0xA0..0xA9].copy_from_slice(b"OTHERWIRE");
    // Corrects the header's checksum. A console does not start a game with a wrong one.
    let sum = rom[0xA0..0xBD].iter().fold(0x19_u8, |sum, byte| sum.wrapping_add(*byte));
    rom[0xBD] = sum.wrapping_neg();
    let path = folder.path().join("other.gba");
    fs::write(&path, rom).unwrap();
    path
}
