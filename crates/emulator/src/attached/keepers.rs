//! Tasks that keep up to date what a reconnection or another game changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_link::{Link, Phase};
use framewire_protocol::{Batch, Op};
use tokio::time::{sleep, timeout};

use super::board::{Board, Game};
use super::submit;

/// How often the game is asked for its title and code, which change with the ROM.
const IDENTIFY: Duration = Duration::from_secs(1);
/// How long until what could not be asked is tried again.
const RETRY: Duration = Duration::from_millis(50);

fn is_ready(link: &Link) -> bool {
    let status = link.status();
    status.phase == Phase::Ready && !status.stalled
}

/// Keeps the board's game up to date as long as the link is ready.
pub(super) async fn identify(link: Arc<Link>, board: Arc<Board>) {
    let mut period = RETRY;
    loop {
        let _ = timeout(period, board.game_changed.notified()).await;
        period = RETRY;
        if !is_ready(&link) {
            continue;
        }
        let batch = Batch::new(vec![Op::GameTitle {}, Op::GameCode {}, Op::Checksum {}]);
        if let Ok(outcome) = submit(&link, &board, batch, Instant::now() + IDENTIFY).await {
            board.identified(outcome.frame, Game::from(outcome));
            period = IDENTIFY;
        }
    }
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
