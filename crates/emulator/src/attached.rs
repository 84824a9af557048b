//! A stock mGBA elsewhere, reached through a link.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_link::{Config, Link, LinkError, Phase, Script};
use framewire_protocol::{Batch, Op, Outcome, Value};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use crate::event::Teller;
use crate::feed::Feed;
use crate::{Emulator, EmulatorError, Event, Kind, Pending, Run, State, Watch, WatchRequest};

/// How often the game is asked for its title and code, which change with the ROM.
const IDENTIFY: Duration = Duration::from_secs(1);

/// An attached emulator.
pub struct Attached {
    link: Arc<Link>,
    address: String,
    game: Arc<Mutex<Game>>,
    identifier: AbortHandle,
    teller: Teller,
}

#[derive(Debug, Clone, Default)]
struct Game {
    title: Option<String>,
    code: Option<String>,
}

impl Attached {
    /// Starts connecting to the script at `config.address`, on `runtime`.
    pub fn start(config: Config, runtime: &Handle) -> Attached {
        let address = config.address.clone();
        let link = Arc::new(Link::start(config, runtime));
        let game = Arc::new(Mutex::new(Game::default()));
        let identifier = runtime.spawn(identify(link.clone(), game.clone())).abort_handle();
        Attached { link, address, game, identifier, teller: Teller::new() }
    }

    /// Waits until what is open is answered, then closes the connection in good order.
    pub async fn close(&self) {
        self.identifier.abort();
        self.link.close().await;
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.identifier.abort();
    }
}

fn submit(link: &Link, batch: Batch, deadline: Instant) -> Pending {
    let (responder, pending) = Pending::new();
    link.submit(batch, deadline, Box::new(move |result| responder.respond(result.map_err(Into::into))));
    pending
}

/// Keeps `game` up to date as long as the link is ready.
async fn identify(link: Arc<Link>, game: Arc<Mutex<Game>>) {
    let mut period = Duration::from_millis(50);
    loop {
        tokio::time::sleep(period).await;
        let status = link.status();
        if status.phase != Phase::Ready || status.stalled {
            period = Duration::from_millis(50);
            continue;
        }
        let batch = Batch::new(vec![Op::GameTitle {}, Op::GameCode {}]);
        if let Ok(outcome) = submit(&link, batch, Instant::now() + IDENTIFY).await {
            *game.lock() = Game::from(outcome);
            period = IDENTIFY;
        }
    }
}

impl From<Outcome> for Game {
    fn from(outcome: Outcome) -> Game {
        let mut texts = outcome.results.into_iter().map(|result| match result {
            Ok(Value::Text(text)) => Some(text),
            _ => None,
        });
        Game { title: texts.next().flatten(), code: texts.next().flatten() }
    }
}

impl Emulator for Attached {
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending {
        submit(&self.link, batch, deadline)
    }

    fn state(&self) -> State {
        let status = self.link.status();
        let connected = matches!(status.phase, Phase::Greeting | Phase::Ready);
        let run = match connected {
            false => Run::Unknown,
            true if status.stalled || status.phase == Phase::Greeting => Run::Stalled,
            true => Run::Running,
        };
        let game = if connected { self.game.lock().clone() } else { Game::default() };
        State {
            kind: Kind::Attached,
            connected,
            run,
            speed: None,
            lockstep: false,
            frames_per_second: status.frames_per_second,
            frame: status.frame,
            title: game.title,
            code: game.code,
            script_version: status.script.map(|script| match script {
                Script::Framewire(version) => version,
                Script::MgbaHttp => "mGBA-http".to_owned(),
            }),
            library_version: None,
            address: Some(self.address.clone()),
            problem: status.problem,
        }
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.teller.subscribe()
    }

    fn watch(&self, request: WatchRequest) -> Watch {
        Watch::new(0, &request, Feed::new(), Box::new(|| {}))
    }
}

impl From<LinkError> for EmulatorError {
    fn from(error: LinkError) -> EmulatorError {
        match error {
            LinkError::Absent { .. } => EmulatorError::NotConnected(error.to_string()),
            LinkError::Stalled { .. } | LinkError::Overdue { .. } => {
                EmulatorError::Deadline(error.to_string())
            }
            LinkError::Lost { .. } | LinkError::Interrupted { .. } => EmulatorError::Lost(error.to_string()),
            LinkError::Busy(open) => EmulatorError::Busy(open),
            LinkError::Stopped => EmulatorError::Stopped,
        }
    }
}
