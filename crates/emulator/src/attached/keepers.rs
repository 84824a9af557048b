//! Tasks that keep up to date what a reconnection or another game changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_link::{Link, Phase, Script};
use framewire_protocol::{Batch, Op};
use tokio::time::{sleep, timeout};

use super::board::{Board, Game};
use super::submit;

/// How long an answer may take; and how often mGBA-http's script, which has no events, is asked for the game's title and code.
const IDENTIFY: Duration = Duration::from_secs(1);
/// How long until what could not be asked is tried again.
const RETRY: Duration = Duration::from_millis(50);

fn is_ready(link: &Link) -> bool {
    let status = link.status();
    status.phase == Phase::Ready && !status.stalled
}

/// Keeps the board's game up to date. Framewire's script reports another game by an event, so it is asked after that and after
/// each connection only: a request at other times would keep a frame waiting in lockstep.
pub(super) async fn identify(link: Arc<Link>, board: Arc<Board>) {
    loop {
        if link.status().script == Some(Script::MgbaHttp) {
            let _ = timeout(IDENTIFY, board.game_changed.notified()).await;
        } else {
            board.game_changed.notified().await;
        }
        while !ask_for_game(&link, &board).await {
            sleep(RETRY).await;
        }
    }
}

/// Asks which game it is. False if there was no answer.
async fn ask_for_game(link: &Link, board: &Arc<Board>) -> bool {
    if !is_ready(link) {
        return false;
    }
    let batch = Batch::new(vec![Op::GameTitle {}, Op::GameCode {}, Op::Checksum {}]);
    let Ok(outcome) = submit(link, board, batch, Instant::now() + IDENTIFY).await else { return false };
    board.identified(outcome.frame, Game::from(outcome));
    true
}

/// Begins watches anew that the script has forgotten.
pub(super) async fn renew(link: Arc<Link>, board: Arc<Board>) {
    loop {
        let Some((id, op)) = board.watches.next_forgotten() else {
            board.watches.notified().await;
            continue;
        };
        if !is_ready(&link) {
            sleep(RETRY).await;
            continue;
        }
        match submit(&link, &board, op.into(), Instant::now() + IDENTIFY).await {
            // Unless that began it, such as where another game has no such memory.
            Ok(_) => board.watches.give_up(id),
            Err(_) => sleep(RETRY).await,
        }
    }
}
