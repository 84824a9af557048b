//! A stock mGBA elsewhere, reached through a link.
//!
//! - `watches`: the watches of this emulator, over the connections that come and go;
//! - `board`: what the link's task, the front ends and the keepers share;
//! - `advances`: which requests wait for frames that others have asked for;
//! - `keepers`: tasks that keep up to date what a reconnection or another game changes.

mod advances;
mod board;
mod keepers;
mod watches;

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_link::{Config, Link, LinkError, Phase, Script};
use framewire_protocol::{Batch, Op};
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use crate::{
    Audio, Emulator, EmulatorError, Event, Kind, Pending, PictureOf, Run, State, Video, Watch, WatchRequest,
};
use advances::Advances;
use board::Board;

/// How long the end of lockstep may take when the emulator is closed.
const FAREWELL: Duration = Duration::from_secs(1);

/// An attached emulator.
pub struct Attached {
    link: Arc<Link>,
    address: String,
    board: Arc<Board>,
    keepers: [AbortHandle; 2],
}

impl Attached {
    /// Starts connecting to the script at `config.address`, on `runtime`.
    pub fn start(config: Config, runtime: &Handle) -> Attached {
        let address = config.address.clone();
        let board = Arc::new(Board::new());
        let link = Arc::new(Link::start_and_listen(config, runtime, Board::listener(&board)));
        board.watches.connect(&link);
        let keepers = [
            runtime.spawn(keepers::identify(link.clone(), board.clone())).abort_handle(),
            runtime.spawn(keepers::renew(link.clone(), board.clone())).abort_handle(),
        ];
        Attached { link, address, board, keepers }
    }

    /// Waits until what is open is answered, then ends lockstep, if it is on, and closes the connection in good order.
    pub async fn close(&self) {
        self.retire();
        if self.board.in_lockstep() {
            // Without this the frame would go on waiting until the script notices that the link is gone.
            let end = Op::Lockstep { timeout: 0 }.into();
            let _ = submit(&self.link, &self.board, end, Instant::now() + FAREWELL).await;
        }
        self.link.close().await;
    }

    /// Ends the tasks, and the watches.
    fn retire(&self) {
        self.keepers.iter().for_each(AbortHandle::abort);
        self.board.watches.close();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.retire();
    }
}

/// Hands a batch to the link, and has the board note what it begins. While frames of an earlier batch are still to run, it
/// waits for them, and has its time after them.
fn submit(link: &Link, board: &Arc<Board>, batch: Batch, deadline: Instant) -> Pending {
    let (responder, pending) = Pending::new();
    let deadline = board.advances.after(deadline);
    let advance = matches!(batch.ops.last(), Some(Op::Advance { .. }));
    let advance = advance.then(|| Advances::begin(board, deadline));
    let noted = board::noted(&batch).map(|noted| (board.clone(), noted));
    link.submit(
        batch,
        deadline,
        Box::new(move |result| {
            if let (Some((board, noted)), Ok(outcome)) = (noted, &result) {
                board.note(&noted, outcome);
            }
            drop(advance);
            responder.respond(result.map_err(Into::into));
        }),
    );
    pending
}

impl Emulator for Attached {
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending {
        submit(&self.link, &self.board, batch, deadline)
    }

    fn state(&self) -> State {
        let status = self.link.status();
        let connected = matches!(status.phase, Phase::Greeting | Phase::Ready);
        let lockstep = connected && self.board.in_lockstep();
        let run = match connected {
            false => Run::Unknown,
            true if status.stalled || status.phase == Phase::Greeting => Run::Stalled,
            true if lockstep => Run::Paused,
            true => Run::Running,
        };
        let game = if connected { self.board.game.lock().clone() } else { board::Game::default() };
        State {
            kind: Kind::Attached,
            connected,
            run,
            speed: None,
            lockstep,
            frames_per_second: status.frames_per_second,
            frame: status.frame,
            title: game.title,
            code: game.code,
            checksum: game.checksum,
            script_version: status.script.map(|script| match script {
                Script::Framewire(version) => version,
                Script::MgbaHttp => "mGBA-http".to_owned(),
            }),
            library_version: None,
            address: Some(self.address.clone()),
            problem: status.problem,
            save_problem: None,
        }
    }

    fn checksum(&self) -> Option<u32> {
        let connected = matches!(self.link.phase(), Phase::Greeting | Phase::Ready);
        if connected { self.board.game.lock().checksum } else { None }
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.board.teller.subscribe()
    }

    fn watch(&self, request: WatchRequest) -> Watch {
        self.board.watches.watch(request)
    }

    fn video(&self) -> Option<Video> {
        None
    }

    fn picture_of(&self, _frame: u32) -> Option<PictureOf> {
        None
    }

    fn audio(&self) -> Option<Audio> {
        None
    }
}

impl From<LinkError> for EmulatorError {
    fn from(error: LinkError) -> EmulatorError {
        match error {
            LinkError::Absent { .. } => EmulatorError::NotConnected(error.to_string()),
            LinkError::Stalled { .. } | LinkError::Late { .. } | LinkError::Overdue { .. } => {
                EmulatorError::Deadline(error.to_string())
            }
            LinkError::Lost { .. } | LinkError::Interrupted { .. } => EmulatorError::Lost(error.to_string()),
            LinkError::Busy(open) => EmulatorError::Busy(open),
            LinkError::Stopped => EmulatorError::Stopped,
        }
    }
}
