//! Tasks that refresh what a new connection or another game changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_link::{Link, Phase, Script};
use framewire_protocol::{Batch, Op};
use tokio::time::{sleep, timeout};

use super::shared::{AttachedState, Game};
use super::submit;

/// Longest time for an answer. Also the time between two requests for the game's title and code from mGBA-http's script,
/// which has no events.
const IDENTIFY: Duration = Duration::from_secs(1);
/// Time before a failed request is repeated.
const RETRY: Duration = Duration::from_millis(50);

pub(super) fn is_ready(link: &Link) -> bool {
    let status = link.status();
    status.phase == Phase::Ready && !status.stalled
}

/// Keeps the shared state's game up to date. Framewire's script sends an event when another game is loaded. So this task
/// asks for the game only after such an event and after each new connection; in lockstep, other requests would delay frames.
pub(super) async fn game(link: Arc<Link>, shared: Arc<AttachedState>) {
    loop {
        if link.status().script == Some(Script::MgbaHttp) {
            let _ = timeout(IDENTIFY, shared.game_changed.notified()).await;
        } else {
            shared.game_changed.notified().await;
        }
        while !ask_for_game(&link, &shared).await {
            sleep(RETRY).await;
        }
    }
}

/// Asks for the game. Returns false if there was no answer.
async fn ask_for_game(link: &Link, shared: &Arc<AttachedState>) -> bool {
    if !is_ready(link) {
        return false;
    }
    let batch = Batch::new(vec![Op::GameTitle {}, Op::GameCode {}, Op::Checksum {}]);
    let Ok(outcome) = submit(link, shared, batch, Instant::now() + IDENTIFY).await else { return false };
    shared.set_game(outcome.frame, Game::from(outcome));
    true
}

/// Restarts the watches that the script has forgotten. Waits until the game is known, because watches belong to one game.
pub(super) async fn watches(link: Arc<Link>, shared: Arc<AttachedState>) {
    loop {
        let Some((id, op)) = shared.watches.next_forgotten() else {
            shared.watches.notified().await;
            continue;
        };
        if !is_ready(&link) || !shared.knows_game() {
            sleep(RETRY).await;
            continue;
        }
        match submit(&link, &shared, op.into(), Instant::now() + IDENTIFY).await {
            // If the watch was started, this has no effect. If not, the loaded game may lack its memory.
            Ok(_) => shared.watches.give_up(id),
            Err(_) => sleep(RETRY).await,
        }
    }
}
