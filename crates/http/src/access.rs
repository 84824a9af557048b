//! Which web pages may drive the emulator.
//!
//! A browser sends a request for any page that is open in it, with whatever rights the user has. Two headers that a page
//! cannot forge tell such a request apart: `Origin` names the page, and `Host` the name under which the page knew this
//! server, which is a foreign one when a page has its own name resolve to this machine (DNS rebinding). Browsers leave
//! `Origin` out of simple GETs; no route changes anything by GET.
//!
//! Programs may call this server by any name, as mGBA-http lets them: `Host` counts only where a browser wrote it.

use axum::http::header::{
    ACCEPT_LANGUAGE, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, USER_AGENT, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::net::{IpAddr, Ipv6Addr};

use crate::failure::Failure;

/// What is accepted beside programs, the server's own pages, IP addresses and `localhost`: nothing by default.
#[derive(Debug, Clone, Default)]
pub struct Access {
    origins: Names,
    hosts: Names,
}

/// A setting of [`Access`] that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// Not the origin of a page.
    #[error(
        "{0:?} is no origin; write it as browsers send it, such as http://localhost:3000, null, or * for any page"
    )]
    Origin(String),
    /// Not a name.
    #[error("{0:?} is no host name; write it without a port, such as desk.local, or * for any name")]
    Host(String),
}

#[derive(Debug, Clone, Default)]
struct Names {
    any: bool,
    listed: Vec<String>,
}

impl Names {
    fn add(&mut self, name: &str) {
        match name {
            "*" => self.any = true,
            name => self.listed.push(name.to_owned()),
        }
    }

    fn have(&self, name: &str) -> bool {
        self.any || self.listed.iter().any(|listed| listed.eq_ignore_ascii_case(name))
    }
}

/// A request that may go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admitted<'a> {
    /// It comes from a program or from a page of this server.
    Own,
    /// From an allowed page, which may read the reply if it is named there.
    Page(&'a HeaderValue),
    /// A browser's question whether that page may send a request.
    Question(&'a HeaderValue),
}

impl Access {
    /// Accepts requests of pages of this origin, such as `http://localhost:3000`, or of any for `*`.
    ///
    /// # Errors
    /// [`AccessError::Origin`].
    pub fn allow_origin(&mut self, origin: &str) -> Result<(), AccessError> {
        let host = origin.split_once("://").map(|(_, host)| host);
        let sound = host.is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ', '*']));
        if !sound && !matches!(origin, "null" | "*") {
            return Err(AccessError::Origin(origin.to_owned()));
        }
        self.origins.add(origin);
        Ok(())
    }

    /// Accepts requests that know this server under this name, or under any for `*`.
    ///
    /// # Errors
    /// [`AccessError::Host`].
    pub fn allow_host(&mut self, name: &str) -> Result<(), AccessError> {
        if name.is_empty() || name != "*" && name.contains(['/', ':', ' ', '*']) {
            return Err(AccessError::Host(name.to_owned()));
        }
        self.hosts.add(name);
        Ok(())
    }

    /// Judges a request by its head.
    pub(crate) fn judge<'a>(&self, method: &Method, headers: &'a HeaderMap) -> Result<Admitted<'a>, Failure> {
        let host = headers.get(HOST);
        if let Some(host) = host.filter(|_| is_of_browser(headers)) {
            self.check_host(host)?;
        }
        let Some(origin) = headers.get(ORIGIN) else { return Ok(Admitted::Own) };
        if host.is_some_and(|host| is_of(origin, host)) {
            return Ok(Admitted::Own);
        }
        let name = String::from_utf8_lossy(origin.as_bytes());
        if !self.origins.have(&name) {
            return Err(forbidden(format!(
                "the web page {name} may not drive this emulator; if it should, start framewire with \
                 --allow-origin {name}"
            )));
        }
        let asks = method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        Ok(if asks { Admitted::Question(origin) } else { Admitted::Page(origin) })
    }

    fn check_host(&self, host: &HeaderValue) -> Result<(), Failure> {
        let text = String::from_utf8_lossy(host.as_bytes());
        let name = without_port(&text);
        if is_address(name) || is_localhost(name) || self.hosts.have(name) {
            return Ok(());
        }
        Err(forbidden(format!(
            "this server does not go by the name {name}; ask for it by its IP address or as localhost, or start \
             framewire with --allow-host {name}"
        )))
    }
}

/// Lets the page read the reply; the answer to a question is in `headers` alone.
pub(crate) fn tell_page(origin: &HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(VARY, HeaderValue::from_static("origin"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type, idempotency-key"));
}

/// Whether a browser may have sent this. Any of these says so; the language and the origin no page can leave out.
fn is_of_browser(headers: &HeaderMap) -> bool {
    let names_itself =
        || headers.get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"));
    headers.contains_key(ORIGIN) || headers.contains_key(ACCEPT_LANGUAGE) || names_itself()
}

fn forbidden(message: String) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, message)
}

/// Whether a page of `origin` was served under `host`.
fn is_of(origin: &HeaderValue, host: &HeaderValue) -> bool {
    let origin = origin.as_bytes();
    let at = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    at.is_some_and(|at| at.eq_ignore_ascii_case(host.as_bytes()))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok(),
    }
}

/// `localhost` and names under it, which browsers resolve to this machine themselves (RFC 6761, 6.3).
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next();
    last.is_some_and(|last| last.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(access: &Access, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        headers.insert(ACCEPT_LANGUAGE, "en".parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        access.judge(&Method::POST, &headers).is_ok()
    }

    #[test]
    fn addresses_and_localhost_are_accepted_and_other_names_are_not() {
        let none = Access::default();
        for host in
            ["127.0.0.1", "192.168.1.7:5000", "[::1]:5000", "localhost:5000", "LOCALHOST", "a.localhost."]
        {
            assert!(judged(&none, host, None), "{host}");
        }
        for host in
            ["evil.example:5000", "localhost.evil.example", "127.0.0.1.evil.example", "evil", "", "[x]:1"]
        {
            assert!(!judged(&none, host, None), "{host}");
        }
    }

    #[test]
    fn programs_may_use_any_name_and_browsers_are_known_by_their_headers() {
        let judged = |header: Option<(&'static str, &str)>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "emulator:5000".parse().unwrap());
            if let Some((name, value)) = header {
                headers.insert(name, value.parse().unwrap());
            }
            Access::default().judge(&Method::GET, &headers).is_ok()
        };
        assert!(judged(None));
        assert!(judged(Some(("user-agent", "curl/8.0"))));
        assert!(!judged(Some(("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"))));
        assert!(!judged(Some(("accept-language", "*"))));
        assert!(!judged(Some(("origin", "http://emulator:5000"))));
    }

    #[test]
    fn pages_of_this_server_are_accepted_and_others_are_not() {
        let none = Access::default();
        assert!(judged(&none, "localhost:5000", Some("http://localhost:5000")));
        for origin in
            ["http://localhost:3000", "https://evil.example", "null", "http://localhost:5000.evil.example"]
        {
            assert!(!judged(&none, "localhost:5000", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn what_is_listed_is_accepted() {
        let mut some = Access::default();
        some.allow_origin("http://localhost:3000").unwrap();
        some.allow_host("desk").unwrap();
        assert!(judged(&some, "desk:5000", Some("http://localhost:3000")));
        assert!(judged(&some, "desk:5000", Some("http://desk:5000")));
        assert!(!judged(&some, "desk:5000", Some("http://localhost:3001")));
        let mut any = Access::default();
        any.allow_origin("*").unwrap();
        any.allow_host("*").unwrap();
        assert!(judged(&any, "anything", Some("null")));
    }

    #[test]
    fn what_is_no_origin_or_name_is_refused() {
        for origin in ["", "desk", "localhost:3000", "http://", "http://desk/", "http://*.example"] {
            assert!(Access::default().allow_origin(origin).is_err(), "{origin}");
        }
        for host in ["", "desk:5000", "http://desk", "*.example"] {
            assert!(Access::default().allow_host(host).is_err(), "{host}");
        }
    }
}
