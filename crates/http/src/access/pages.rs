//! Decides which web pages may send requests.
//!
//! A browser sends the requests of any page that is open in it, with all rights of the user. Headers that a page cannot
//! forge show where such a request comes from: `Origin` names the page, and `Host` is the name that the page uses for
//! this server. In a DNS rebinding attack, the page's own name resolves to this machine, so `Host` has that foreign
//! name. Browsers leave `Origin` out of simple GETs, such as those of `<img>`. No route changes anything by GET. Over
//! HTTPS, or to a server on the same machine, browsers also send `Sec-Fetch-Site`, which shows whether a foreign page
//! sent such a GET.
//!
//! On `/healthz`, `/screen.png`, mGBA-http's routes and `/mgbaendpoint`, programs may call this server by any name, as
//! they may call mGBA-http: there `Host` is checked only for browsers. Elsewhere it is checked for all clients.

use axum::http::header::{
    ACCEPT_LANGUAGE, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, REFERER, USER_AGENT, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::net::{IpAddr, Ipv6Addr};

use super::gate::RequestHead;
use crate::failure::Failure;
use crate::headers::EXPOSED;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The origins and host names that are accepted in addition to the default ones. By default, the server accepts
/// requests from programs and from its own pages, and the host name must be an IP address or `localhost`.
#[derive(Debug, Clone, Default)]
pub struct Pages {
    origins: Names,
    hosts: Names,
}

/// A setting of [`Pages`] that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The text is not the origin of a page.
    #[error(
        "{0:?} is not an origin; write it as browsers send it, such as http://localhost:3000, null or file:// for files, or * for any page"
    )]
    Origin(String),
    /// The text is not a host name.
    #[error("{0:?} is not a host name; write it without a port, such as desk.local, or * for any name")]
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

/// Where an accepted request comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestOrigin<'a> {
    /// It comes from a program, from a page of this server, or from a person who followed a link.
    Own,
    /// From an allowed page, which may read the reply.
    Page(&'a HeaderValue),
    /// From an allowed page that shows the reply, for example in an `<img>`, but cannot read it.
    Embedded,
    /// A browser's preflight request, which asks whether an allowed page of this origin may send a request.
    Preflight(&'a HeaderValue),
}

impl Pages {
    /// Accepts requests from pages of this origin, such as `http://localhost:3000`. With `*`, it accepts requests from
    /// all pages.
    ///
    /// # Errors
    /// [`PageError::Origin`].
    pub fn allow_origin(&mut self, origin: &str) -> Result<(), PageError> {
        if origin != "*" && !is_origin(origin) {
            return Err(PageError::Origin(origin.to_owned()));
        }
        self.origins.add(origin);
        Ok(())
    }

    /// Accepts requests with this host name. With `*`, it accepts any host name.
    ///
    /// # Errors
    /// [`PageError::Host`].
    pub fn allow_host(&mut self, name: &str) -> Result<(), PageError> {
        if name != "*" && !is_host(name) {
            return Err(PageError::Host(name.to_owned()));
        }
        self.hosts.add(name);
        Ok(())
    }

    /// Decides from the head of a request whether the request is accepted.
    pub(crate) fn judge<'a>(&self, head: &RequestHead<'a>) -> Result<RequestOrigin<'a>, Failure> {
        let RequestHead { method, headers, .. } = *head;
        let host = headers.get(HOST);
        if !head.any_name || is_of_browser(headers) {
            // A request target in absolute form replaces the header `Host` (RFC 9112, 3.2.2).
            if let Some(name) = head.target.host() {
                self.check_name(name)?;
            }
            if let Some(host) = host {
                self.check_name(without_port(&String::from_utf8_lossy(host.as_bytes())))?;
            }
        }
        let Some(origin) = headers.get(ORIGIN) else { return self.judge_unnamed(method, headers) };
        if host.is_some_and(|host| is_served_under(host, origin, head.peer.tls)) {
            return Ok(RequestOrigin::Own);
        }
        let name = String::from_utf8_lossy(origin.as_bytes());
        if !self.origins.have(&name) {
            return Err(foreign_page(&name));
        }
        let is_preflight = method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        Ok(if is_preflight { RequestOrigin::Preflight(origin) } else { RequestOrigin::Page(origin) })
    }

    /// Decides whether a request without `Origin` is accepted. A page cannot forge `Referer`; it can only omit that
    /// header.
    fn judge_unnamed<'a>(&self, method: &Method, headers: &HeaderMap) -> Result<RequestOrigin<'a>, Failure> {
        let says = |name: &HeaderName, wanted: &[u8]| {
            headers.get(name).is_some_and(|value| value.as_bytes() == wanted)
        };
        let foreign = says(&SEC_FETCH_SITE, b"cross-site") || says(&SEC_FETCH_SITE, b"same-site");
        // A person who follows a link sees the reply; the page that had the link does not.
        let link = || says(&SEC_FETCH_MODE, b"navigate") && says(&SEC_FETCH_DEST, b"document");
        if !foreign || matches!(*method, Method::GET | Method::HEAD) && link() {
            return Ok(RequestOrigin::Own);
        }
        let page = headers.get(REFERER).map(|page| String::from_utf8_lossy(page.as_bytes()));
        let origin = page.as_deref().and_then(origin_of);
        if self.origins.any || origin.is_some_and(|origin| self.origins.have(origin)) {
            return Ok(RequestOrigin::Embedded);
        }
        Err(origin.map_or_else(unknown_page, foreign_page))
    }

    fn check_name(&self, name: &str) -> Result<(), Failure> {
        if is_address(name) || is_localhost(name) || self.hosts.have(name) {
            return Ok(());
        }
        let advice = if is_host(name) {
            format!(", or start framewire with --allow-host {name}")
        } else {
            String::new()
        };
        Err(Failure::forbidden(format!(
            "this server does not accept the host name {name}; use its IP address or localhost{advice}"
        )))
    }
}

/// Adds the headers that let the page read the reply. With the same headers, the reply to a browser's preflight request
/// allows the page to send its request.
pub(crate) fn allow_page(origin: &HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.append(VARY, HeaderValue::from_static("origin"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE"),
    );
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "authorization, content-type, idempotency-key, last-event-id, mcp-method, mcp-name, mcp-protocol-version, \
             mcp-session-id, traceparent, x-request-id",
        ),
    );
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

/// Whether a browser may have sent this request. Each of the headers below is a sign of a browser. A page cannot remove
/// `Accept-Language` from its requests. It also cannot remove `Origin` from requests to which the browser adds it.
fn is_of_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN)
        || headers.contains_key(ACCEPT_LANGUAGE)
        || headers.contains_key(SEC_FETCH_SITE)
        || headers.get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"))
}

fn foreign_page(name: &str) -> Failure {
    let advice = if is_origin(name) {
        format!("if it should, start framewire with --allow-origin {name}")
    } else {
        "its Origin is not one that a browser sends".to_owned()
    };
    Failure::forbidden(format!("the web page {name} may not drive this emulator; {advice}"))
}

/// The refusal for a page that the browser does not name.
fn unknown_page() -> Failure {
    Failure::forbidden(
        "a web page of another origin may not drive this emulator; if it should, start framewire with --allow-origin and \
         its origin, such as http://localhost:3000",
    )
}

/// Whether this can be the origin of a page: a scheme and a host, `null`, or `file://` for a file.
fn is_origin(name: &str) -> bool {
    let host = name.split_once("://").map(|(_, host)| host);
    let has_host = host.is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ', '*']));
    has_host || matches!(name, "null" | "file://")
}

/// Whether this can be the name of a machine.
fn is_host(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', ':', ' ', '*'])
}

/// Whether a page of `origin` was served under `host`. `https` is accepted even if this server has no TLS, because a
/// proxy in front of it may use TLS.
fn is_served_under(host: &HeaderValue, origin: &HeaderValue, tls: bool) -> bool {
    let origin = origin.as_bytes();
    let plain = if tls { None } else { origin.strip_prefix(b"http://") };
    let name = plain.or_else(|| origin.strip_prefix(b"https://"));
    name.is_some_and(|name| name.eq_ignore_ascii_case(host.as_bytes()))
}

/// The origin of an address: that of `http://localhost:3000/tool?x=1` is `http://localhost:3000`.
fn origin_of(address: &str) -> Option<&str> {
    let host = address.find("://")? + 3;
    let end = address[host..].find(['/', '?', '#']).map_or(address.len(), |end| host + end);
    Some(&address[..end])
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

/// Whether a name is `localhost` or a name under it. Browsers resolve these to this machine themselves (RFC 6761, 6.3).
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next();
    last.is_some_and(|last| last.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::connection::Peer;
    use axum::http::Uri;

    /// Judges a request for one of mGBA-http's routes. Returns whether its origin is [`RequestOrigin::Own`].
    fn judge(pages: &Pages, method: &Method, headers: &HeaderMap, tls: bool) -> Result<bool, Failure> {
        let target = Uri::from_static("/core/step");
        let peer = Peer::new([127, 0, 0, 1].into(), tls);
        let head = RequestHead { peer: &peer, method, target: &target, any_name: true, headers };
        pages.judge(&head).map(|origin| origin == RequestOrigin::Own)
    }

    fn judged(pages: &Pages, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        headers.insert(ACCEPT_LANGUAGE, "en".parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        judge(pages, &Method::POST, &headers, false).is_ok()
    }

    #[test]
    fn addresses_and_localhost_are_accepted_and_other_names_are_not() {
        let none = Pages::default();
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
            judge(&Pages::default(), &Method::GET, &headers, false).is_ok()
        };
        assert!(judged(None));
        assert!(judged(Some(("user-agent", "curl/8.0"))));
        assert!(!judged(Some(("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"))));
        assert!(!judged(Some(("accept-language", "*"))));
        assert!(!judged(Some(("origin", "http://emulator:5000"))));
    }

    #[test]
    fn pages_of_this_server_are_accepted_and_others_are_not() {
        let none = Pages::default();
        assert!(judged(&none, "localhost:5000", Some("http://localhost:5000")));
        for origin in
            ["http://localhost:3000", "https://evil.example", "null", "http://localhost:5000.evil.example"]
        {
            assert!(!judged(&none, "localhost:5000", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn allowed_origins_and_host_names_are_accepted() {
        let mut some = Pages::default();
        some.allow_origin("http://localhost:3000").unwrap();
        some.allow_host("desk").unwrap();
        assert!(judged(&some, "desk:5000", Some("http://localhost:3000")));
        assert!(judged(&some, "desk:5000", Some("http://desk:5000")));
        assert!(!judged(&some, "desk:5000", Some("http://localhost:3001")));
        let mut any = Pages::default();
        any.allow_origin("*").unwrap();
        any.allow_host("*").unwrap();
        assert!(judged(&any, "anything", Some("null")));
    }

    #[test]
    fn invalid_origins_and_names_are_refused() {
        for origin in ["file://", "null", "*", "http://localhost:3000", "chrome-extension://abc"] {
            assert!(Pages::default().allow_origin(origin).is_ok(), "{origin}");
        }
        for origin in ["", "desk", "localhost:3000", "http://", "http://desk/", "http://*.example"] {
            assert!(Pages::default().allow_origin(origin).is_err(), "{origin}");
        }
        for host in ["", "desk:5000", "http://desk", "*.example"] {
            assert!(Pages::default().allow_host(host).is_err(), "{host}");
        }
    }

    #[test]
    fn each_option_that_a_refusal_suggests_is_accepted() {
        let advice = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "localhost:5000".parse().unwrap());
            headers.insert(ACCEPT_LANGUAGE, "en".parse().unwrap());
            headers.insert(name, value.parse().unwrap());
            let refused = judge(&Pages::default(), &Method::POST, &headers, false).unwrap_err();
            refused.message().split_once("--allow-").map(|(_, advice)| advice.to_owned())
        };
        for origin in ["file://", "null", "http://localhost:3000", "http://a http://b", "", "x", "http://a/b"]
        {
            let Some(advice) = advice("origin", origin) else { continue };
            let accepted = advice
                .strip_prefix("origin ")
                .is_some_and(|origin| Pages::default().allow_origin(origin).is_ok());
            assert!(accepted, "{origin}: {advice}");
        }
        assert_eq!(advice("origin", "file://").as_deref(), Some("origin file://"));
        assert_eq!(advice("origin", "http://a/b"), None);
        assert_eq!(advice("host", "desk:5000").as_deref(), Some("host desk"));
        assert_eq!(advice("host", "[x]:1"), Some("host [x]".to_owned()));
    }

    #[test]
    fn with_tls_a_page_over_plain_http_is_foreign() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:5000".parse().unwrap());
        headers.insert(ORIGIN, "http://localhost:5000".parse().unwrap());
        assert!(judge(&Pages::default(), &Method::POST, &headers, true).is_err());
        headers.insert(ORIGIN, "https://localhost:5000".parse().unwrap());
        for tls in [true, false] {
            assert!(judge(&Pages::default(), &Method::POST, &headers, tls).unwrap());
        }
    }

    #[test]
    fn embedding_in_a_foreign_page_is_refused_and_links_may_be_followed() {
        let judged = |pages: &Pages, method, lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "localhost:5000".parse().unwrap());
            for (name, value) in lines {
                headers.insert(*name, value.parse().unwrap());
            }
            judge(pages, &method, &headers, false).ok()
        };
        let mut tool = Pages::default();
        tool.allow_origin("http://localhost:3000").unwrap();
        let none = Pages::default();
        let link = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let frame = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        for site in ["cross-site", "same-site"] {
            let image =
                [("sec-fetch-site", site), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")];
            let with = |more: &[(&'static str, &'static str)]| [&image[..1], more].concat();
            assert_eq!(judged(&none, Method::GET, &image), None);
            assert_eq!(judged(&none, Method::GET, &with(&frame)), None);
            assert_eq!(judged(&none, Method::GET, &with(&link)), Some(true));
            assert_eq!(judged(&none, Method::POST, &with(&link)), None);
            assert_eq!(judged(&tool, Method::GET, &image), None, "no header names the page of the tool");
            let of = |page| [&image[..], &[("referer", page)]].concat();
            assert_eq!(judged(&tool, Method::GET, &of("http://localhost:3000/x")), Some(false));
            assert_eq!(judged(&tool, Method::GET, &of("http://localhost:3000.evil.example/")), None);
            assert_eq!(judged(&none, Method::GET, &of("http://localhost:3000/x")), None);
        }
        for site in ["same-origin", "none"] {
            assert_eq!(judged(&none, Method::GET, &[("sec-fetch-site", site)]), Some(true));
        }
    }
}
