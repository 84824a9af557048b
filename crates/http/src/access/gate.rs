//! Decides which requests are accepted.

use std::time::{Duration, Instant};

use axum::http::header::{AUTHORIZATION, ORIGIN, RETRY_AFTER, UPGRADE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use tracing::warn;

use super::Access;
use super::caller::{Caller, Reach, Rights};
use super::pages::{Pages, RequestOrigin};
use super::session::{self, Sessions};
use super::token::{Attempts, Tokens};
use crate::failure::Failure;
use crate::transport::connection::Peer;

/// The path at which a token is exchanged for a cookie.
pub(crate) const LOGIN: &str = "/v1/login";
/// The path at which a session ends.
pub(crate) const LOGOUT: &str = "/v1/logout";

/// The challenge of a 401, in the header `WWW-Authenticate`.
pub const CHALLENGE: &str = "Bearer realm=\"framewire\"";

/// The rules of access, the browsers that are logged in, and the callers that sent wrong tokens.
pub(crate) struct Gate {
    pages: Pages,
    /// The tokens; `None` if the server requires no token.
    pub(super) tokens: Option<Tokens>,
    pub(super) sessions: Sessions,
    attempts: Attempts,
    /// The server's own port.
    pub(super) port: u16,
}

/// The head of a request, and where it came from.
#[derive(Clone, Copy)]
pub(crate) struct RequestHead<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) method: &'a Method,
    pub(crate) target: &'a Uri,
    /// Whether programs may use any host name for this path.
    pub(crate) any_name: bool,
    pub(crate) headers: &'a HeaderMap,
}

impl<'a> RequestHead<'a> {
    pub(crate) fn path(&self) -> &'a str {
        self.target.path()
    }

    fn is_post(&self, path: &str) -> bool {
        *self.method == Method::POST && self.path() == path
    }

    /// Whether the path is that of the login or the logout. The method is not checked.
    pub(crate) fn has_session_path(&self) -> bool {
        matches!(self.path(), LOGIN | LOGOUT)
    }

    pub(crate) fn is_logout(&self) -> bool {
        self.is_post(LOGOUT)
    }
}

/// How an accepted request is handled.
#[derive(Debug)]
pub(crate) enum Admission<'a> {
    /// It continues to its route.
    Request(Caller, CorsPolicy),
    /// It is a browser's preflight request, which asks whether a page of this origin may send a request.
    Preflight(&'a HeaderValue),
    Login,
}

/// Which pages may use a reply in a browser.
#[derive(Debug)]
pub(crate) enum CorsPolicy {
    /// Only pages of this server may show and read it.
    Own,
    /// Any page may show it, and pages of this origin may also read it.
    Page(HeaderValue),
    /// Any page may show it, but no page of another origin may read it.
    Any,
}

impl Gate {
    pub(crate) fn new(access: &Access, port: u16) -> Gate {
        Gate {
            pages: access.pages.clone(),
            tokens: access.tokens.clone(),
            sessions: Sessions::default(),
            attempts: Attempts::default(),
            port,
        }
    }

    /// Decides from the head of a request whether the request is accepted.
    pub(crate) fn enter<'a>(&self, head: RequestHead<'a>) -> Result<Admission<'a>, Failure> {
        let RequestHead { peer, headers, .. } = head;
        let origin = self.pages.judge(&head);
        if let Ok(RequestOrigin::Preflight(origin)) = origin {
            return Ok(Admission::Preflight(origin));
        }
        let rights = match &self.tokens {
            None if !peer.is_local() => {
                return Err(unauthorized(
                    "this server has no token, so only callers on its own machine are accepted",
                ));
            }
            _ if head.is_post(LOGIN) => return origin.map(|_| Admission::Login),
            None => Rights::Full,
            // The token is checked before the origin, so a caller without a token gets no other information.
            Some(tokens) => self.identify(tokens, head, origin.as_ref().ok())?,
        };
        let cors = match origin? {
            // Accepted preflight requests have returned above.
            RequestOrigin::Own | RequestOrigin::Preflight(_) => CorsPolicy::Own,
            RequestOrigin::Page(origin) => CorsPolicy::Page(origin.clone()),
            RequestOrigin::Embedded => CorsPolicy::Any,
        };
        let caller = Caller { reach: Reach::of(peer, headers), rights, origin: peer.origin(), trace: None };
        Ok(Admission::Request(caller, cors))
    }

    fn identify(
        &self,
        tokens: &Tokens,
        head: RequestHead<'_>,
        origin: Option<&RequestOrigin<'_>>,
    ) -> Result<Rights, Failure> {
        if let Some(token) = bearer(head.headers)? {
            return self.rights(tokens, head.peer, token);
        }
        // A browser also sends the cookie if the request comes from another page of the same site, such as a page on
        // another port of this host. The cookie counts only for pages of this server.
        let mut session = None;
        if matches!(origin, Some(RequestOrigin::Own)) {
            let id = session::id_in_cookie(head.headers, head.peer, self.port);
            session = id.and_then(|id| self.sessions.rights(id, Instant::now()));
        }
        match session {
            Some(rights) if is_read_only(head) || head.headers.contains_key(ORIGIN) => Ok(rights),
            Some(_) => Err(Failure::forbidden(
                "a cookie is not enough for a request that changes something; send the header Authorization: Bearer TOKEN",
            )),
            None => Err(unauthorized(
                "send a token in the header Authorization: Bearer TOKEN, or log in with a browser at /",
            )),
        }
    }

    /// The rights of a caller that sends this token. A wrong token is an error and is counted.
    pub(super) fn rights(&self, tokens: &Tokens, peer: &Peer, shown: &[u8]) -> Result<Rights, Failure> {
        // A valid token is accepted even after many wrong ones from the same address, because several people may share
        // the address.
        tokens.rights(shown).ok_or_else(|| {
            let (now, origin) = (Instant::now(), peer.origin());
            if let Some(wait) = self.attempts.wait(origin, now) {
                return too_many_attempts(wait);
            }
            self.attempts.failed(origin, now);
            warn!("a wrong token came from {origin}");
            unauthorized("that token is not one of this server's")
        })
    }
}

/// The token in the header `Authorization`; `None` if there is no such header.
fn bearer(headers: &HeaderMap) -> Result<Option<&[u8]>, Failure> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), further) = (all.next(), all.next()) else { return Ok(None) };
    let (scheme, token) = header.as_bytes().split_at_checked("bearer ".len()).unwrap_or_default();
    if scheme.eq_ignore_ascii_case(b"bearer ") && further.is_none() {
        return Ok(Some(token.trim_ascii()));
    }
    Err(unauthorized("send exactly one header Authorization: Bearer TOKEN; other schemes are not accepted"))
}

/// Whether this is a GET or HEAD that opens no WebSocket. Browsers may send such requests without `Origin`. They send
/// all other requests with it.
fn is_read_only(head: RequestHead<'_>) -> bool {
    matches!(*head.method, Method::GET | Method::HEAD) && !head.headers.contains_key(UPGRADE)
}

fn unauthorized(message: impl Into<String>) -> Failure {
    let scheme = HeaderValue::from_static(CHALLENGE);
    Failure::new(StatusCode::UNAUTHORIZED, message).with_header(WWW_AUTHENTICATE, scheme)
}

fn too_many_attempts(wait: Duration) -> Failure {
    let seconds = wait.as_secs() + 1;
    unauthorized(format!(
        "that token is not one of this server's, and your address sent many wrong ones; wait {seconds} s before the next"
    ))
    .with_header(RETRY_AFTER, seconds.into())
}
