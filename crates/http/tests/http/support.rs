//! A server that runs the demo game, and a simple HTTP/1.1 client. The client uses no HTTP library, so the tests
//! control and see every byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Config, Rom};
use framewire_emulator::history::DEFAULT_HISTORY;
use framewire_emulator::{Embedded, Emulator};
use framewire_http::{App, Emulators, Served};
use framewire_libmgba::Level;
use framewire_symbols::SymbolFiles;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// How long a test waits for something before it fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A `Sec-WebSocket-Key`.
pub const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// The path of a file or folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The address of a field in the demo game's memory map.
pub fn field(name: &str) -> u32 {
    let map = std::fs::read_to_string(repository("rom/memory-map.toml")).unwrap();
    let map: toml::Table = map.parse().unwrap();
    let fields = map["field"].as_array().unwrap();
    let field = fields.iter().find(|field| field["name"].as_str() == Some(name)).unwrap();
    field["address"].as_integer().unwrap() as u32
}

/// The value of a sample in the text of the metrics.
pub fn sample(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// The number of open streams of this kind, according to the metrics.
pub fn open_streams(server: &Server, kind: &str) -> usize {
    sample(&server.text("/metrics"), &format!("framewire_streams{{kind=\"{kind}\"}}")).unwrap() as usize
}

/// Calls `condition` repeatedly until it returns true. `what` describes the condition in the error.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "waited without success for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A running server, which stops when this value is dropped.
pub struct Server {
    pub address: SocketAddr,
    /// Contains the ROM, the files that the emulator writes next to it, and the server's data folder.
    pub folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the demo game.
    pub fn start() -> Server {
        Server::with(|_| {})
    }

    /// Serves the demo game, paused before its first frame.
    pub fn paused() -> Server {
        Server::demo(true, |_| {})
    }

    /// Serves the demo game with other settings.
    pub fn with(change: impl FnOnce(&mut App)) -> Server {
        Server::demo(false, change)
    }

    /// Serves the demo game, paused before its first frame if `paused` is true.
    pub fn demo(paused: bool, change: impl FnOnce(&mut App)) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let rom = folder.path().join("demo game.gba");
        std::fs::copy(repository("rom/framewire-demo.gba"), &rom).unwrap();
        Server::playing(rom, folder, paused, change)
    }

    /// Serves the game in this file, which is in `folder`.
    pub fn playing(rom: PathBuf, folder: TempDir, paused: bool, change: impl FnOnce(&mut App)) -> Server {
        let emulator = core(Rom::File(rom), paused, Vec::new());
        Server::over(folder, move |_| Arc::new(emulator), change)
    }

    /// Serves the emulator that `emulator` creates on the server's runtime.
    pub fn over(
        folder: TempDir,
        emulator: impl FnOnce(&tokio::runtime::Handle) -> Arc<dyn Emulator>,
        change: impl FnOnce(&mut App),
    ) -> Server {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut symbols = SymbolFiles::default();
        symbols.load(&repository("rom/memory-map.toml")).unwrap();
        symbols.load(&repository("crates/http/tests/http/structures.toml")).unwrap();
        let served = Served::new("demo", emulator(runtime.handle())).with_symbols(symbols);
        let mut app = App::new(Emulators::new(served).unwrap(), Duration::from_secs(3));
        app.data = Some(folder.path().join("data"));
        change(&mut app);
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let thread = std::thread::spawn(move || {
            runtime.block_on(framewire_http::serve(listener, app, Box::pin(shutdown)));
        });
        Server { address, folder, stop: Some(stop), thread: Some(thread) }
    }

    /// Signals the server to stop, and returns at once.
    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Whether the server has stopped.
    pub fn has_stopped(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The path of a file next to the ROM.
    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a copy of the demo game's ROM in which one byte differs, as after a rebuild: the title and the code are
    /// the same, but the checksum differs. Returns its path.
    pub fn rebuilt_demo(&self) -> String {
        let mut rom = std::fs::read(repository("rom/framewire-demo.gba")).unwrap();
        *rom.last_mut().unwrap() ^= 1;
        let path = self.file("rebuilt.gba");
        std::fs::write(&path, &rom).unwrap();
        path
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request that opens a WebSocket, with this `Sec-WebSocket-Key`, and reads the reply.
    pub fn upgrade(&self, target: &str, key: &str) -> (TcpStream, Reply) {
        let mut stream = self.connect();
        write!(
            stream,
            "GET {target} HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n"
        )
        .unwrap();
        let reply = Reply::read(&mut stream);
        (stream, reply)
    }

    pub fn request(&self, method: &str, target: &str, body: &[u8]) -> Reply {
        self.request_with(method, target, "", body)
    }

    /// Sends a request with additional headers. Each ends with `\r\n`.
    pub fn request_with(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Reply {
        let mut stream = self.connect();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        if method == "HEAD" {
            // The reply has no body, whatever its `content-length` says. If bytes come, they are in `body`.
            let mut reply = Reply::read_head(&mut stream);
            stream.read_to_end(&mut reply.body).unwrap();
            return reply;
        }
        Reply::read(&mut stream)
    }

    /// Sends a request with a JSON body.
    pub fn send(&self, method: &str, target: &str, body: &Value) -> Reply {
        self.request(method, target, body.to_string().as_bytes())
    }

    pub fn get(&self, target: &str) -> Reply {
        self.request("GET", target, b"")
    }

    pub fn post(&self, target: &str) -> Reply {
        self.request("POST", target, b"")
    }

    /// Sends a GET that must succeed, and returns the text of the reply.
    pub fn text(&self, target: &str) -> String {
        let reply = self.get(target);
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        reply.text()
    }

    pub fn number(&self, target: &str) -> i64 {
        self.text(target).parse().unwrap()
    }

    /// Sends a POST that must succeed with the reply `expected`.
    #[track_caller]
    pub fn post_ok(&self, target: &str, expected: &str) {
        let reply = self.post(target);
        assert_eq!((reply.status, reply.text().as_str()), (200, expected), "{target}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}

/// Writes a ROM for the Game Boy Color into this folder, and returns its path. Its program increments the byte at
/// 0xC000 forever.
pub fn game_boy(folder: &TempDir) -> PathBuf {
    let mut rom = vec![0; 0x8000];
    rom[0x100..0x104].copy_from_slice(&[0x00, 0xc3, 0x50, 0x01]); // nop; jp 0x150
    rom[0x104..0x108].copy_from_slice(&[0xce, 0xed, 0x66, 0x66]); // the beginning of the logo
    rom[0x134..0x138].copy_from_slice(b"LOOP");
    rom[0x143] = 0x80; // for the Game Boy Color
    rom[0x14d] = rom[0x134..0x14d].iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte).wrapping_sub(1));
    rom[0x150..0x156].copy_from_slice(&[0x21, 0x00, 0xc0, 0x34, 0x18, 0xfd]); // ld hl, 0xc000; inc (hl); jr back
    let path = folder.path().join("loop.gbc");
    std::fs::write(&path, &rom).unwrap();
    path
}

/// Starts a core that runs this ROM and these Lua scripts.
pub fn core(rom: Rom, paused: bool, scripts: Vec<PathBuf>) -> Embedded {
    let console =
        || -> framewire_emulator::embedded::Console { Box::new(super::console::collect as fn(Level, &str)) };
    Embedded::start(Config { paused, scripts, history: DEFAULT_HISTORY, console, ..Config::new(rom) })
        .unwrap()
}

/// The reply to a request.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// Reads one reply, and none of the bytes after it.
    pub fn read(stream: &mut impl Read) -> Reply {
        let mut reply = Reply::read_head(stream);
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        reply.body.resize(length, 0);
        stream.read_exact(&mut reply.body).unwrap();
        reply
    }

    /// Reads the head of a reply.
    fn read_head(stream: &mut impl Read) -> Reply {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "closed within a head: {head:?}");
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Reply { status, headers, body: Vec::new() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// How the other end ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    Closed,
    Reset,
}

/// Waits for the other end to close or reset the connection. Returns `None` if data comes instead, or if the connection
/// is still open after the read time-out.
pub fn closing(stream: &mut TcpStream) -> Option<Closing> {
    match stream.read(&mut [0]) {
        Ok(0) => Some(Closing::Closed),
        Ok(_) => None,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(_) => Some(Closing::Reset),
    }
}

/// Whether the other end closes or resets the connection, before data comes or the read time-out is over.
pub fn is_closed(stream: &mut TcpStream) -> bool {
    closing(stream).is_some()
}

/// Percent-encodes the characters that have a special meaning in a query.
pub fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
