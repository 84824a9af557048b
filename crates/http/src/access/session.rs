//! Browsers that have logged in. A page cannot send a token when it opens a WebSocket or an event stream, or loads an
//! `<img>`. So the browser gets a cookie in exchange for the token.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use framewire_protocol::hex::hex_digits;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use super::caller::Rights;
use super::token::{TokenError, random};
use crate::transport::connection::Peer;

/// How long a session lasts after the login.
pub(crate) const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// The largest number of sessions with the same rights at the same time. Another login ends the oldest of them.
const SESSIONS: usize = 256;
/// The number of random bytes in an id.
const RANDOM: usize = 32;

#[derive(Debug)]
struct Session {
    id: String,
    rights: Rights,
    end: Instant,
}

/// The sessions of browsers, the oldest first. They end when the server ends.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<Session>>);

impl Sessions {
    pub(crate) fn begin(&self, rights: Rights, now: Instant) -> Result<String, TokenError> {
        let id = hex_digits(&random::<RANDOM>()?);
        let mut sessions = self.0.lock();
        sessions.retain(|session| session.end > now);
        // Each kind of rights has its own limit, so read-only callers cannot end the sessions of others.
        let is_same = |session: &Session| session.rights == rights;
        if sessions.iter().filter(|session| is_same(session)).count() >= SESSIONS {
            let oldest = sessions.iter().position(is_same);
            oldest.and_then(|index| sessions.remove(index));
        }
        sessions.push_back(Session { id: id.clone(), rights, end: now + LIFETIME });
        Ok(id)
    }

    /// The rights of the browser that sends this id; `None` if there is no such session. The id is compared with those
    /// of all sessions, so the time does not depend on which one it matches.
    pub(crate) fn rights(&self, id: &str, now: Instant) -> Option<Rights> {
        let sessions = self.0.lock();
        let mut found = None;
        for session in sessions.iter().filter(|session| session.end > now) {
            if session.id.as_bytes().ct_eq(id.as_bytes()).into() {
                found = Some(session.rights);
            }
        }
        found
    }

    pub(crate) fn end(&self, id: &str) {
        self.0.lock().retain(|session| !bool::from(session.id.as_bytes().ct_eq(id.as_bytes())));
    }
}

/// The cookie's name. Cookies do not distinguish ports, so each server on a machine needs a cookie name of its own.
/// With TLS, the name has a prefix. Browsers then accept the cookie only over TLS from exactly this host (RFC 6265bis,
/// 4.1.3).
fn name(peer: &Peer, port: u16) -> String {
    let prefix = if peer.tls { "__Host-" } else { "" };
    format!("{prefix}framewire-{port}")
}

pub(crate) fn id_in_cookie<'a>(headers: &'a HeaderMap, peer: &Peer, port: u16) -> Option<&'a str> {
    // Most programs send no cookies. For them, this skips the work below.
    headers.get(COOKIE)?;
    let name = name(peer, port);
    let pairs = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    pairs
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// The header that sets the cookie with a session's id; an empty id deletes the cookie.
pub(crate) fn cookie(id: &str, peer: &Peer, port: u16) -> String {
    let name = name(peer, port);
    let age = if id.is_empty() { 0 } else { LIFETIME.as_secs() };
    let secure = if peer.tls { "; Secure" } else { "" };
    format!("{name}={id}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_its_rights_until_it_ends() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let full = sessions.begin(Rights::Full, start).unwrap();
        let read = sessions.begin(Rights::Read, start).unwrap();
        assert_eq!(sessions.rights(&full, start), Some(Rights::Full));
        assert_eq!(sessions.rights(&read, start), Some(Rights::Read));
        assert_eq!(sessions.rights("", start), None);
        assert_eq!(sessions.rights(&full, start + LIFETIME), None);
        sessions.end(&full);
        assert_eq!(sessions.rights(&full, start), None);
        assert_eq!(sessions.rights(&read, start), Some(Rights::Read));
    }

    #[test]
    fn a_login_beyond_the_limit_ends_the_oldest_session() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let first = sessions.begin(Rights::Full, start).unwrap();
        for _ in 0..SESSIONS {
            sessions.begin(Rights::Full, start).unwrap();
        }
        assert_eq!((sessions.rights(&first, start), sessions.0.lock().len()), (None, SESSIONS));
    }

    #[test]
    fn read_only_logins_end_no_session_with_full_rights() {
        let (sessions, start) = (Sessions::default(), Instant::now());
        let full = sessions.begin(Rights::Full, start).unwrap();
        let read = sessions.begin(Rights::Read, start).unwrap();
        for _ in 0..SESSIONS {
            sessions.begin(Rights::Read, start).unwrap();
        }
        assert_eq!(
            (sessions.rights(&full, start), sessions.rights(&read, start)),
            (Some(Rights::Full), None)
        );
    }

    #[test]
    fn the_id_is_found_among_other_cookies() {
        let peer = |tls| Peer::new([127, 0, 0, 1].into(), tls);
        let with = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, line.parse().unwrap());
            }
            headers
        };
        let headers = with(&["a=b; framewire-80=old", "framewire-5000=id; c"]);
        assert_eq!(id_in_cookie(&headers, &peer(false), 5000), Some("id"));
        assert_eq!(id_in_cookie(&headers, &peer(true), 5000), None, "this cookie was set without TLS");
        assert_eq!(id_in_cookie(&with(&["__Host-framewire-1=id"]), &peer(true), 1), Some("id"));
        assert_eq!(id_in_cookie(&with(&["framewire=id; =; ;;", "\u{e9}"]), &peer(false), 1), None);
    }
}
