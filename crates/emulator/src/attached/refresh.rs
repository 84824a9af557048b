//! Two tasks. One finds out which game is loaded, after a new connection and when another game is loaded. The other
//! restarts the watches after a new connection, and ends the watches that could not be ended in the script earlier.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_link::{Link, Phase, Script};
use framewire_protocol::{Batch, Op};
use tokio::time::{sleep, timeout};

use super::shared::{AttachedState, Game};
use super::submit;

/// The longest time to wait for an answer. Also the time after which mGBA-http's script is asked again which game is
/// loaded, because it sends no events.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The time before a failed request is repeated.
const RETRY: Duration = Duration::from_millis(50);

/// Whether the script can be expected to answer at once.
pub(super) fn is_ready(link: &Link) -> bool {
    let status = link.status();
    status.phase == Phase::Ready && !status.stalled
}

/// Keeps the shared state's facts about the game up to date. Framewire's script sends an event when another game is
/// loaded. So this task asks which game is loaded only after such an event and after each new connection. More requests
/// would delay frames in lockstep. It asks mGBA-http's script regularly.
pub(super) async fn game(link: Arc<Link>, shared: Arc<AttachedState>) {
    loop {
        if link.status().script == Some(Script::MgbaHttp) {
            let _ = timeout(ANSWER_TIMEOUT, shared.game_changed.notified()).await;
        } else {
            shared.game_changed.notified().await;
        }
        while !ask_for_game(&link, &shared).await {
            sleep(RETRY).await;
        }
    }
}

/// Asks for the game's title, code and checksum. Returns false if there was no answer.
async fn ask_for_game(link: &Link, shared: &Arc<AttachedState>) -> bool {
    if !is_ready(link) {
        return false;
    }
    let batch = Batch::new(vec![Op::GameTitle {}, Op::GameCode {}, Op::Checksum {}]);
    let Ok(outcome) = submit(link, shared, batch, Instant::now() + ANSWER_TIMEOUT).await else {
        return false;
    };
    shared.set_game(outcome.frame, Game::from(outcome));
    true
}

/// Restarts the watches that a new connection does not have. First waits until the game is known, because most watches
/// belong to one game. Also sends again the requests to end watches for which the link had no room earlier.
pub(super) async fn watches(link: Arc<Link>, shared: Arc<AttachedState>) {
    loop {
        let unended = shared.watches.take_unended();
        if !unended.is_empty() {
            sleep(RETRY).await;
            unended.into_iter().for_each(|id| shared.watches.send_end(id));
        }
        let Some((id, op)) = shared.watches.next_forgotten() else {
            shared.watches.unfinished.notified().await;
            continue;
        };
        if !is_ready(&link) || !shared.knows_game() {
            sleep(RETRY).await;
            continue;
        }
        match submit(&link, &shared, op.into(), Instant::now() + ANSWER_TIMEOUT).await {
            // If the watch has started, this has no effect. Otherwise the script refused it, for example because the
            // loaded game does not have its memory.
            Ok(_) => shared.watches.give_up(id),
            Err(_) => sleep(RETRY).await,
        }
    }
}
