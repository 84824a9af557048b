//! Lets requests in.

use std::time::{Duration, Instant};

use axum::http::header::{AUTHORIZATION, ORIGIN, RETRY_AFTER, UPGRADE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use tracing::warn;

use super::Access;
use super::attempts::Attempts;
use super::caller::{Caller, Peer, Rights};
use super::login::LOGIN;
use super::pages::Admitted;
use super::permit::Permit;
use super::session;
use super::session::Sessions;
use super::token::Tokens;
use crate::compat;
use crate::failure::Failure;

/// Paths under `/v1`, and what is below them, where other methods than GET need not change anything: where they have an
/// emulator do something, its operations are judged one by one.
const JUDGED_LATER: [&str; 5] = ["/v1/batch", "/v1/wait", "/v1/watches", "/v1/search", "/v1/logout"];

/// The challenge of a 401, in the header `WWW-Authenticate`.
pub const CHALLENGE: &str = "Bearer realm=\"framewire\"";

/// What the tokens and pages are compared with, and what is remembered of callers.
pub(crate) struct Gate {
    access: Access,
    pub(super) sessions: Sessions,
    attempts: Attempts,
    /// The server's own port.
    pub(super) port: u16,
}

/// The head of a request, and where it came from.
#[derive(Clone, Copy)]
pub(crate) struct Visit<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) method: &'a Method,
    pub(crate) target: &'a Uri,
    /// Whether programs may call the server by any name there.
    pub(crate) any_name: bool,
    pub(crate) headers: &'a HeaderMap,
}

impl<'a> Visit<'a> {
    pub(crate) fn path(&self) -> &'a str {
        self.target.path()
    }
}

/// What a request is that may go on.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    /// A request of this caller, for a page that may read the reply if it is named there.
    Request(Caller, Audience),
    /// A browser's question whether that page may send a request.
    Question(&'a HeaderValue),
    /// Somebody wants to log in.
    Login,
}

/// Whom a browser may show a reply.
#[derive(Debug)]
pub(crate) enum Audience {
    /// Pages of this server.
    Own,
    /// This page, which may read it.
    Page(HeaderValue),
    /// Any page, without reading it.
    Any,
}

impl Gate {
    pub(crate) fn new(access: Access, port: u16) -> Gate {
        Gate { access, sessions: Sessions::default(), attempts: Attempts::default(), port }
    }

    /// What a caller may have the emulators do; `None` if there is nothing to check.
    pub(crate) fn permit(&self, caller: &Caller) -> Option<Permit> {
        Permit::of(caller, self.access.files.as_ref())
    }

    /// Judges a request by its head.
    pub(crate) fn enter<'a>(&self, visit: Visit<'a>) -> Result<Entry<'a>, Failure> {
        let Visit { peer, method, headers, .. } = visit;
        let path = visit.path();
        let admitted = self.access.pages.judge(&visit);
        if let Ok(Admitted::Question(origin)) = admitted {
            return Ok(Entry::Question(origin));
        }
        let rights = match &self.access.tokens {
            None if peer.is_local() => Rights::Full,
            None => {
                return Err(unauthorized(
                    "this server has no token, so only callers on its own machine are let in",
                ));
            }
            Some(_) if method == Method::POST && path == LOGIN => return admitted.map(|_| Entry::Login),
            // Who shows no token learns nothing else.
            Some(tokens) => self.identify(tokens, visit, admitted.as_ref().ok())?,
        };
        let audience = match admitted? {
            Admitted::Own | Admitted::Question(_) => Audience::Own,
            Admitted::Page(origin) => Audience::Page(origin.clone()),
            Admitted::Embedded => Audience::Any,
        };
        self.may(rights, method, path)?;
        let caller = Caller { reach: peer.reach(headers), rights, origin: peer.origin(), trace: None };
        Ok(Entry::Request(caller, audience))
    }

    /// Refuses what these rights do not reach as far as its method and path tell.
    pub(crate) fn may(&self, rights: Rights, method: &Method, path: &str) -> Result<(), Failure> {
        if rights == Rights::Full || may_only_look(method, path) {
            return Ok(());
        }
        Err(Failure::new(
            StatusCode::FORBIDDEN,
            format!("the token that was shown may only look, and {method} {path} changes something"),
        ))
    }

    fn identify(
        &self,
        tokens: &Tokens,
        visit: Visit<'_>,
        admitted: Option<&Admitted<'_>>,
    ) -> Result<Rights, Failure> {
        if let Some(shown) = bearer(visit.headers)? {
            return self.rights(tokens, visit.peer, shown);
        }
        // Cookies are sent for whoever makes the browser ask; one counts only for pages of this server.
        let session = session::shown(visit.headers, visit.peer, self.port)
            .filter(|_| matches!(admitted, Some(Admitted::Own)))
            .and_then(|id| self.sessions.rights(id, Instant::now()));
        match session {
            Some(rights) if only_looks(visit) || visit.headers.contains_key(ORIGIN) => Ok(rights),
            Some(_) => Err(Failure::new(
                StatusCode::FORBIDDEN,
                "a cookie alone changes nothing; show the token by the header Authorization: Bearer TOKEN",
            )),
            None => Err(unauthorized(
                "show a token: Authorization: Bearer TOKEN, or in a browser by logging in at /",
            )),
        }
    }

    /// What whoever shows this token may do.
    pub(super) fn rights(&self, tokens: &Tokens, peer: &Peer, shown: &[u8]) -> Result<Rights, Failure> {
        // A right token is let in however many wrong ones came from there: others may share the address.
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

    /// The tokens, where one has to be shown.
    pub(super) fn tokens(&self) -> Option<&Tokens> {
        self.access.tokens.as_ref()
    }
}

/// The token that a header shows.
fn bearer(headers: &HeaderMap) -> Result<Option<&[u8]>, Failure> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), further) = (all.next(), all.next()) else { return Ok(None) };
    let (scheme, token) = header.as_bytes().split_at_checked("bearer ".len()).unwrap_or_default();
    match scheme.eq_ignore_ascii_case(b"bearer ") && further.is_none() {
        true => Ok(Some(token.trim_ascii())),
        false => Err(unauthorized("one header Authorization: Bearer TOKEN is accepted, and no other scheme")),
    }
}

/// Whether a request can be one that changes nothing.
fn may_only_look(method: &Method, path: &str) -> bool {
    let is_below =
        |base: &&str| path.strip_prefix(*base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    matches!(*method, Method::GET | Method::HEAD)
        || JUDGED_LATER.iter().any(is_below)
        || compat::find(path).is_some()
}

/// Whether a browser sends this for any page without naming it. A WebSocket is opened by GET.
fn only_looks(visit: Visit<'_>) -> bool {
    matches!(*visit.method, Method::GET | Method::HEAD) && !visit.headers.contains_key(UPGRADE)
}

fn unauthorized(message: impl Into<String>) -> Failure {
    let scheme = HeaderValue::from_static(CHALLENGE);
    Failure::new(StatusCode::UNAUTHORIZED, message).with_header(WWW_AUTHENTICATE, scheme)
}

fn too_many_attempts(wait: Duration) -> Failure {
    let seconds = wait.as_secs() + 1;
    unauthorized(format!(
        "that token is not one of this server's, and many wrong ones came from there; wait {seconds} s before the next"
    ))
    .with_header(RETRY_AFTER, seconds.into())
}
