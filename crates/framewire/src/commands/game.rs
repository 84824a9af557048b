//! `--rom`: runs a game in this process for one command. The command uses the game through the HTTP API, as on a
//! server.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_emulator::Embedded;
use framewire_emulator::embedded::{Config, Options, Patching, Speed};
use framewire_http::{Access, App, Emulators, Served, Token, Tokens};
use framewire_protocol::sequence;
use framewire_symbols::SymbolFiles;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

use super::client::{Address, Client, refused};
use super::{Failure, field, state};
use crate::{choose, output, symbols};

/// The largest number of frames in one `advance` request.
const FRAMES: u64 = 3600;
/// The timeout of an `advance` request. The server lets a request with [`FRAMES`] frames wait for the same time:
/// [`DEADLINE`] plus 50 ms for each frame.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How long the server waits for the core, in addition to the time for frames. It is long enough for a slow machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// The arguments that start a game.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A game in place of a server")]
pub struct GameArgs {
    /// Start this ROM for this command only, without a window, instead of using a server; its battery save is neither
    /// read nor written
    #[arg(long, value_name = "FILE")]
    pub rom: Option<PathBuf>,
    /// Read names of addresses from this .sym, .map or .toml file, or a character table from this .tbl file; can
    /// be repeated
    #[arg(long, value_name = "FILE", requires = "rom")]
    symbols: Vec<PathBuf>,
    /// First load this savestate
    #[arg(long = "from", value_name = "FILE", requires = "rom")]
    state: Option<PathBuf>,
    /// Then run this number of frames
    #[arg(long, value_name = "FRAMES", requires = "rom", default_value_t = 0, hide_default_value = true,
        value_parser = super::whole(0, u32::MAX))]
    after: u32,
    /// Then play these keys, such as 'Start:2 .:60'
    #[arg(long, value_name = "SEQUENCE", requires = "rom")]
    keys: Option<String>,
}

/// A game, which is paused at first, and its server. Both end with this process.
pub struct Game {
    /// Runs the server. `None` only while this value is being dropped.
    runtime: Option<Runtime>,
    address: SocketAddr,
    token: Token,
}

impl GameArgs {
    /// Starts the ROM, if one is named.
    pub fn start(&self) -> Result<Option<Game>, Failure> {
        let Some(rom) = &self.rom else { return Ok(None) };
        let bytes = framewire_libmgba::read_patched_rom(rom, &Patching::NextTo)
            .map_err(|error| Failure::Input(format!("--rom: {}", output::causes_in_a_line(&error))))?;
        let symbols = symbols::load(&self.symbols, bytes == choose::DEMO_ROM)
            .map_err(|error| Failure::Input(output::causes_in_a_line(error.as_ref())))?;
        let options = Options { patching: Patching::NextTo, ..Options::default() };
        let config = choose::config_without_save(Some(rom), options);
        let config = Config { speed: Speed::Unlimited, paused: true, ..config };
        let core = Embedded::start(config)
            .map_err(|error| Failure::Input(format!("--rom: {}", output::causes_in_a_line(&error))))?;
        serve(core, symbols).map(Some).map_err(|error| {
            Failure::Refused(format!(
                "cannot start a server for {}: {}",
                rom.display(),
                output::causes_in_a_line(error.as_ref())
            ))
        })
    }

    /// Brings the game to the point where the command begins: loads the state, runs frames and plays keys.
    pub fn prepare(&self, client: &Client) -> Result<(), Failure> {
        if let Some(file) = &self.state {
            let state = state::load_file(file)?;
            client.upload("/v1/state", &state).map_err(|failure| failure.with_file(file))?;
        }
        advance(client, self.after.into())?;
        if let Some(keys) = &self.keys {
            play(client, keys)?;
        }
        Ok(())
    }
}

/// Starts a server for the core. Only this process has the server's token.
fn serve(core: Embedded, symbols: Arc<SymbolFiles>) -> anyhow::Result<Game> {
    let token = Token::random()?;
    let served = Served::new("rom", Arc::new(core)).with_symbols(symbols);
    let tokens = Tokens::new(Some(token.clone()), None)?;
    let app = App {
        access: Access { tokens, ..Access::default() },
        log_requests: false,
        ..App::new(Emulators::new(served)?, DEADLINE)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    runtime.spawn(framewire_http::serve(listener, app, Box::pin(std::future::pending())));
    Ok(Game { runtime: Some(runtime), address, token })
}

impl Game {
    /// A client of the game's server.
    pub fn client(&self) -> Result<Client, Failure> {
        Client::new(Address {
            url: format!("http://{}", self.address),
            emulator: None,
            token: Some(self.token.reveal().to_owned()),
            certificate: None,
        })
    }

    /// Runs the game until the condition `until` of `/v1/wait` is true, for at most `frames` frames. Returns `None` if
    /// that takes longer than `limit`. No frame runs before the wait has begun. If the condition does not become true,
    /// the game stops after the last frame, so that another wait can continue there.
    pub fn wait(&self, until: &str, frames: u32, limit: Option<Duration>) -> Result<Option<Value>, Failure> {
        const WAIT: u64 = 1;
        const ADVANCE: u64 = 2;
        let broken = |error: &(dyn std::error::Error + 'static)| {
            Failure::Connection(format!("the game ended: {}", output::causes_in_a_line(error)))
        };
        // When the server first needs a symbol, it prepares the names from the symbol files. If the wait had to do
        // that, the request to advance would overtake it. This request makes the server prepare the names now.
        self.client()?.get("/v1/symbols?contains=frame")?;
        let mut socket = self.socket().map_err(|error| broken(error.as_ref()))?;
        let send = |socket: &mut WebSocket<TcpStream>, id: u64, method: &str, params: Value| {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            socket.send(Message::text(request.to_string())).map_err(|error| broken(&error))
        };
        // The emulator gets the requests of a connection in order.
        send(&mut socket, WAIT, "wait", json!({"until": until, "frames": frames}))?;
        let mut left = u64::from(frames);
        let advance = |socket: &mut WebSocket<TcpStream>, left: &mut u64| {
            let step = FRAMES.min(*left);
            *left -= step;
            if step == 0 { Ok(()) } else { send(socket, ADVANCE, "v1.advance", json!({"frames": step})) }
        };
        advance(&mut socket, &mut left)?;
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let time = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if time == Some(Duration::ZERO) {
                return Ok(None);
            }
            socket.get_ref().set_read_timeout(time).map_err(|error| broken(&error))?;
            match socket.read() {
                Ok(Message::Text(text)) => {
                    let reply: Value = serde_json::from_str(&text).unwrap_or_default();
                    let result = Game::result(&reply)?;
                    if reply["id"] == WAIT {
                        return Ok(Some(result.clone()));
                    }
                    advance(&mut socket, &mut left)?;
                }
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    fn socket(&self) -> anyhow::Result<WebSocket<TcpStream>> {
        let mut request = format!("ws://{}/v1/ws", self.address).into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {}", self.token.reveal()).parse()?);
        Ok(tungstenite::client(request, TcpStream::connect(self.address)?)?.0)
    }

    /// The result in a reply.
    fn result(reply: &Value) -> Result<&Value, Failure> {
        if let Some(problem) = reply.pointer("/error/data") {
            let status = problem["status"].as_u64().unwrap_or_default();
            let detail = problem["detail"].as_str().map_or_else(|| reply.to_string(), str::to_owned);
            return Err(refused(status.try_into().unwrap_or_default(), &detail));
        }
        field(reply, "result")
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        // A request may still be waiting, because `wait` gave up on it; do not wait for that request.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs frames.
fn advance(client: &Client, frames: u64) -> Result<(), Failure> {
    let mut left = frames;
    while left > 0 {
        let step = left.min(FRAMES);
        client.change_within("POST", "/v1/advance", &json!({"frames": step}).to_string(), TIMEOUT, None)?;
        left -= step;
    }
    Ok(())
}

/// Plays keys and runs all frames of the sequence, including frames without keys at its end. Returns the reply of
/// `POST /v1/input`.
pub fn play(client: &Client, sequence: &str) -> Result<Value, Failure> {
    let body = json!({"sequence": sequence}).to_string();
    let reply = client.change("POST", "/v1/input", &body)?.json()?;
    advance(client, frames(sequence))?;
    Ok(reply)
}

/// The number of frames of a sequence that the server has accepted.
fn frames(sequence: &str) -> u64 {
    let presses = sequence::parse(sequence).unwrap_or_default();
    presses.iter().map(|(_, frames)| u64::from(*frames)).sum()
}

#[cfg(test)]
mod tests {
    use framewire_emulator::embedded::Rom;

    use super::*;

    #[test]
    fn a_wait_misses_no_frame_after_another_wait() {
        let config =
            Config { speed: Speed::Unlimited, paused: true, ..Config::new(Rom::Bytes(choose::DEMO_ROM)) };
        let game = serve(Embedded::start(config).unwrap(), symbols::load(&[""; 0], true).unwrap()).unwrap();
        for frames in [5, FRAMES as u32 + 5] {
            let now = || {
                let reply = game.client().unwrap().get("/core/currentframe").unwrap();
                str::from_utf8(&reply.body).unwrap().parse::<u64>().unwrap()
            };
            let end = now() + u64::from(frames);
            let reply = game.wait("frame < 0", frames, None).unwrap().unwrap();
            assert_eq!(reply, json!({"held": false, "frame": end, "frames": frames}));
            assert_eq!(now(), end, "the game stops");
            let next = format!("frame == {}", end + 1);
            let reply = game.wait(&next, 1, None).unwrap().unwrap();
            assert_eq!(reply, json!({"held": true, "frame": end + 1, "frames": 1}));
        }
    }

    #[test]
    fn frames_of_a_sequence_include_a_pause_at_its_end() {
        for (sequence, expected) in [("A", 1), ("A:2 .:10", 12), (" Up+B:30  . ", 31), ("A:2,B:3", 5)] {
            assert_eq!(frames(sequence), expected, "{sequence}");
        }
    }
}
