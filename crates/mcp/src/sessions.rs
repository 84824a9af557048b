//! Sessions of MCP over HTTP, for clients of MCP's revisions before 2026-07-28. A session belongs to the sender that
//! opened it. `HttpHost::sender` says who the sender of a request is.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::Stream;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

/// The largest number of sessions.
const MAX: usize = 64;
/// The largest number of sessions of one sender.
const MAX_EACH: usize = 16;
/// A session ends if it gets no message for this long.
const IDLE: Duration = Duration::from_secs(4 * 3600);
/// A session that was not used for this long ends if its sender opens another session and there is no room for it.
const REPLACEABLE: Duration = Duration::from_secs(600);
/// How long a client whose connection broke can ask for a reply again. The time is short because replies with pictures
/// are large.
const KEPT: Duration = Duration::from_secs(5);

tokio::task_local! {
    /// The sender of the request that is being answered. The SDK does not pass it to the methods of a session manager.
    static SENDER: String;
}

/// The sessions of a server.
pub(crate) struct Sessions {
    manager: LocalSessionManager,
    open: Mutex<HashMap<SessionId, Open>>,
}

struct Open {
    sender: String,
    used: Instant,
}

/// Why a request cannot use a session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionsError {
    /// There are too many sessions.
    #[error("{MAX} sessions are open, or {MAX_EACH} of this sender; end one of them with DELETE")]
    Full,
    /// The session does not exist, or it belongs to another sender.
    #[error("there is no such session; send initialize to open one")]
    Unknown,
    /// An error of the SDK.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

impl Sessions {
    pub(crate) fn new() -> Sessions {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE);
        manager.session_config.completed_cache_ttl = KEPT;
        // With a retry time, the SDK sends an event without data, which older clients cannot read.
        manager.session_config.sse_retry = None;
        Sessions { manager, open: Mutex::default() }
    }

    /// Runs `response`, which answers a request of this sender.
    pub(crate) async fn answer<T>(&self, sender: String, response: impl Future<Output = T>) -> T {
        SENDER.scope(sender, response).await
    }

    /// Whether this sender can open a session. If there is no room, this first ends the session that the sender has not
    /// used for the longest time, if that time is at least [`REPLACEABLE`].
    pub(crate) async fn make_room(&self, sender: &str) -> bool {
        let replaced = {
            let open = self.open.lock();
            if has_room(&open, sender) {
                return true;
            }
            let own = open.iter().filter(|(_, session)| session.sender == sender);
            let oldest = own.min_by_key(|(_, session)| session.used);
            oldest.filter(|(_, session)| session.used.elapsed() >= REPLACEABLE).map(|(id, _)| id.clone())
        };
        let Some(id) = replaced else { return false };
        // A session that cannot be closed has ended already.
        let _ = self.close_session(&id).await;
        has_room(&self.open.lock(), sender)
    }

    /// Whether this sender has a session with this id.
    pub(crate) fn has(&self, id: &str, sender: &str) -> bool {
        self.open.lock().get(id).is_some_and(|session| session.sender == sender)
    }

    /// Records that the sender of the request uses a session now. Returns false if there is no such session, or if it
    /// belongs to another sender.
    fn note_use(&self, id: &SessionId) -> bool {
        let mut open = self.open.lock();
        let Some(session) = open.get_mut(id) else { return false };
        // Without a sender, this is not a request: the SDK or `make_room` ends the session.
        let is_own = SENDER.try_with(|sender| *sender == session.sender).unwrap_or(true);
        if is_own {
            session.used = Instant::now();
        }
        is_own
    }
}

fn has_room(open: &HashMap<SessionId, Open>, sender: &str) -> bool {
    open.len() < MAX && open.values().filter(|session| session.sender == sender).count() < MAX_EACH
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionsError> {
        let sender = SENDER.try_with(String::clone).map_err(|_| SessionsError::Unknown)?;
        if !has_room(&self.open.lock(), &sender) {
            return Err(SessionsError::Full);
        }
        let (id, transport) = self.manager.create_session().await?;
        {
            let mut open = self.open.lock();
            if has_room(&open, &sender) {
                open.insert(id.clone(), Open { sender, used: Instant::now() });
                return Ok((id, transport));
            }
        }
        // Other requests took the room in the meantime.
        self.manager.close_session(&id).await?;
        Err(SessionsError::Full)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionsError> {
        Ok(self.manager.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionsError> {
        Ok(self.note_use(id) && self.manager.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionsError> {
        // Without a sender, this is not a request: the SDK closes a session that has ended, or `make_room` closes one.
        // The session may be gone already.
        if !self.note_use(id) && SENDER.try_with(|_| ()).is_ok() {
            return Err(SessionsError::Unknown);
        }
        self.open.lock().remove(id);
        Ok(self.manager.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        Ok(self.manager.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionsError> {
        Ok(self.manager.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        Ok(self.manager.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        Ok(self.manager.resume(id, last_event_id).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn opened(sessions: &Sessions, sender: &str) -> Result<SessionId, SessionsError> {
        sessions.answer(sender.to_owned(), sessions.create_session()).await.map(|(id, _)| id)
    }

    #[tokio::test]
    async fn only_the_sender_that_opened_a_session_can_use_it() {
        let sessions = Sessions::new();
        let id = opened(&sessions, "a").await.unwrap();
        let has =
            async |sender: &str| sessions.answer(sender.to_owned(), sessions.has_session(&id)).await.unwrap();
        assert!(has("a").await && !has("b").await);
        let closed = sessions.answer("b".to_owned(), sessions.close_session(&id)).await;
        assert!(matches!(closed, Err(SessionsError::Unknown)) && has("a").await);
        sessions.answer("a".to_owned(), sessions.close_session(&id)).await.unwrap();
        assert!(!has("a").await);
    }

    #[tokio::test]
    async fn each_sender_has_a_limit_and_a_long_unused_session_is_replaced() {
        let sessions = Sessions::new();
        let mut all = Vec::new();
        for _ in 0..MAX_EACH {
            assert!(sessions.make_room("a").await);
            all.push(opened(&sessions, "a").await.unwrap());
        }
        assert!(!sessions.make_room("a").await && sessions.make_room("b").await);
        assert!(matches!(opened(&sessions, "a").await, Err(SessionsError::Full)));
        if let Some(session) = sessions.open.lock().get_mut(&all[3]) {
            session.used = session.used.checked_sub(REPLACEABLE).unwrap();
        }
        assert!(sessions.make_room("a").await);
        let still_open: Vec<bool> = all.iter().map(|id| sessions.open.lock().contains_key(id)).collect();
        assert_eq!(still_open.iter().position(|is_open| !is_open), Some(3));
        assert_eq!(still_open.iter().filter(|is_open| **is_open).count(), MAX_EACH - 1);
    }

    #[tokio::test]
    async fn all_senders_together_have_a_limit() {
        let sessions = Sessions::new();
        for number in 0..MAX {
            opened(&sessions, &format!("sender {}", number / MAX_EACH)).await.unwrap();
        }
        assert!(!sessions.make_room("another").await);
    }
}
