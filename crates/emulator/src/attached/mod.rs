//! An attached emulator: a stock mGBA in another process, reached through a link.
//!
//! - `watches`: the watches of this emulator, which continue after a reconnection;
//! - `shared`: the state that the link's task, the front ends and the refresh tasks share; also the deadlines of
//!   requests that wait for frames;
//! - `history`: keeps states, and goes back to them;
//! - `refresh`: tasks that find out which game is loaded, and restart the watches after a new connection.

mod history;
mod refresh;
mod shared;
mod watches;

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_link::{Config, Link, LinkError, Phase, Script};
use framewire_protocol::{Batch, Op, OpError, Outcome};
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio::task::AbortHandle;

use crate::history::check_may_go_back;
use crate::{
    Audio, Emulator, EmulatorError, Event, History, Kind, Pending, PendingPicture, Run, State, Video, Watch,
    WatchRequest,
};
use history::PreparedRewind;
use shared::{Advances, AttachedState};

/// The longest time to wait for the end of lockstep when the emulator is closed. If frames of an `advance` still have
/// to run, the wait is longer: see [`Advances`].
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// An attached emulator.
pub struct Attached {
    link: Arc<Link>,
    address: String,
    shared: Arc<AttachedState>,
    tasks: [AbortHandle; 3],
}

impl Attached {
    /// Starts to connect to the script at `config.address`, on `runtime`. The history may take `history` bytes of
    /// memory. With 0, no states are kept.
    pub fn start(config: Config, runtime: &Handle, history: usize) -> Attached {
        let address = config.address.clone();
        let shared = Arc::new(AttachedState::new(history));
        let link = Arc::new(Link::start_and_listen(config, runtime, AttachedState::listener(&shared)));
        shared.watches.connect(&link);
        let tasks = [
            runtime.spawn(refresh::game(link.clone(), shared.clone())).abort_handle(),
            runtime.spawn(refresh::watches(link.clone(), shared.clone())).abort_handle(),
            runtime.spawn(history::fetch_states(link.clone(), shared.clone())).abort_handle(),
        ];
        Attached { link, address, shared, tasks }
    }

    /// Ends the watches, ends lockstep if it is on, waits until open requests are answered, and closes the connection.
    pub async fn close(&self) {
        self.end_tasks();
        if self.shared.in_lockstep() {
            // Otherwise mGBA would wait in its frame until the script detects that the connection is closed.
            let end = Op::Lockstep { timeout: 0 }.into();
            let _ = submit(&self.link, &self.shared, end, Instant::now() + END_TIMEOUT).await;
        }
        self.link.close().await;
    }

    /// Ends the tasks and the watches.
    fn end_tasks(&self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.shared.watches.close();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.end_tasks();
    }
}

/// Passes a batch to the link. When the outcome arrives, applies the batch's effects to the shared state. If frames of
/// an earlier batch still have to run, the batch waits for them, and its deadline is extended: see [`Advances`].
fn submit(link: &Link, shared: &Arc<AttachedState>, mut batch: Batch, deadline: Instant) -> Pending {
    let (responder, mut pending) = Pending::new();
    let has_run = batch.ops.iter().any(|op| matches!(op, Op::Run { .. }));
    // If no caller waits for the outcome any more, the link withdraws the batch, and the script ends the run. A batch
    // with a key continues, because its caller may repeat it.
    let given_up = if has_run && batch.key.is_none() { Some(pending.given_up()) } else { None };
    let deadline = shared.advances.after(deadline);
    let advance = match batch.ops.last() {
        // A batch with a run is not added to the advances. The script answers other requests during a run, so their
        // deadlines need no extension. Also, the deadline of a run is far in the future, and would delay theirs by as
        // much.
        Some(Op::Advance { .. }) if !has_run => Some(Advances::begin(shared, deadline)),
        _ => None,
    };
    let effects = shared::effects(&batch);
    let reads = shared::reads_at(&batch);
    let rewind = match replace_rewind(link, shared, &mut batch) {
        Ok(rewind) => rewind,
        Err((index, error)) => {
            return Pending::ready(Ok(Outcome::refused(link.status().frame, index, error)));
        }
    };
    let shared = shared.clone();
    link.submit_unless(
        batch,
        deadline,
        given_up,
        Box::new(move |mut result| {
            if let Ok(outcome) = &mut result {
                if let Some(rewind) = rewind {
                    shared.fetcher.finish(rewind, outcome);
                }
                shared::check_reads(&reads, outcome);
                shared.apply(&effects, outcome);
            } else if rewind.is_some() {
                // If the script has loaded the state nevertheless, its event begins a new line of the history.
                shared.fetcher.forget_rewind();
            }
            drop(advance);
            responder.respond(result.map_err(Into::into));
        }),
    );
    pending
}

/// Replaces a `rewind` in a batch with operations that the script has. Returns `None` if nothing was replaced: the
/// batch has no `rewind`, or the script is mGBA-http's. If the `rewind` is refused, returns its index in the batch and
/// the error.
fn replace_rewind(
    link: &Link,
    shared: &AttachedState,
    batch: &mut Batch,
) -> Result<Option<PreparedRewind>, (usize, OpError)> {
    let rewind = batch.ops.iter().enumerate().find_map(|(index, op)| match *op {
        Op::Rewind { frame, line } => Some((index, frame, line)),
        _ => None,
    });
    let Some(rewind) = rewind else { return Ok(None) };
    let status = link.status();
    if status.script == Some(Script::MgbaHttp) {
        // mGBA-http's script does not report loaded states and resets, so there is no history. The link refuses the
        // operation.
        return Ok(None);
    }
    check_may_go_back(shared.watches.has_recording_or_replay(), shared.timeline_under_way())
        .and_then(|()| shared.fetcher.prepare(batch, rewind, status.frame))
        .map(Some)
        .map_err(|error| (rewind.0, error))
}

impl Emulator for Attached {
    fn submit(&self, batch: Batch, deadline: Instant) -> Pending {
        submit(&self.link, &self.shared, batch, deadline)
    }

    fn state(&self) -> State {
        let status = self.link.status();
        let connected = matches!(status.phase, Phase::Greeting | Phase::Ready);
        let lockstep = connected && self.shared.in_lockstep();
        let run = if !connected {
            Run::Unknown
        } else if status.stalled || status.phase == Phase::Greeting {
            Run::Stalled
        } else if lockstep {
            Run::Paused
        } else {
            Run::Running
        };
        let game = if connected { self.shared.game.lock().clone() } else { shared::Game::default() };
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
            library_build: None,
            address: Some(self.address.clone()),
            problem: status.problem,
            save_problem: None,
            patch: None,
            rom_problems: Vec::new(),
        }
    }

    fn checksum(&self) -> Option<u32> {
        let connected = matches!(self.link.phase(), Phase::Greeting | Phase::Ready);
        if connected { self.shared.game.lock().checksum } else { None }
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.shared.events.subscribe()
    }

    fn watch(&self, request: WatchRequest) -> Watch {
        self.shared.watches.watch(request)
    }

    fn video(&self) -> Option<Video> {
        None
    }

    fn picture_of(&self, _frame: u32) -> Option<PendingPicture> {
        None
    }

    fn audio(&self) -> Option<Audio> {
        None
    }

    fn history(&self) -> Option<Arc<History>> {
        let has_history = self.link.status().script != Some(Script::MgbaHttp);
        if has_history { Some(self.shared.fetcher.ask()) } else { None }
    }
}

impl From<LinkError> for EmulatorError {
    fn from(error: LinkError) -> EmulatorError {
        match error {
            LinkError::Absent { .. } => EmulatorError::NotConnected(error.to_string()),
            LinkError::Stalled { .. } | LinkError::Late { .. } | LinkError::Overdue { .. } => {
                EmulatorError::Deadline(error.to_string())
            }
            LinkError::Lost { .. } | LinkError::Broken { .. } | LinkError::Interrupted { .. } => {
                EmulatorError::Lost(error.to_string())
            }
            LinkError::Busy(open) => EmulatorError::Busy(open),
            LinkError::Stopped => EmulatorError::Stopped,
        }
    }
}
