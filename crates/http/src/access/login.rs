//! The login page: a person enters the token, and the browser gets a cookie.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, SET_COOKIE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::gate::{Gate, LOGIN, LOGOUT, RequestHead};
use super::session;
use super::token::TokenError;
use crate::failure::Failure;
use crate::headers::content_type;
use crate::transport::connection::Peer;
use crate::transport::incoming::BodyReader;

/// The largest form in bytes: much more than a token and an address need.
const LARGEST_FORM: usize = 64 * 1024;

const FORM: &str = "application/x-www-form-urlencoded";
const PAGE: &str = include_str!("login.html");

/// The page's Content Security Policy: the page may use its own style and send its form to this server, and nothing
/// else.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style =
        PAGE.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap_or_default();
    let hash = BASE64_STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, style.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// Whether a browser will show the reply to a person.
pub(crate) fn wants_page(head: &RequestHead<'_>) -> bool {
    [Method::GET, Method::HEAD].contains(head.method) && accepts_page(head.headers)
}

fn accepts_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|kinds| kinds.to_str().ok()).is_some_and(|kinds| kinds.contains("text/html"))
}

/// Makes `response` the login page, with the reason why it is shown (`says`) and the address to open after the login.
pub(crate) fn login_page(mut response: Response, says: &str, next: &str) -> Response {
    let page = PAGE.replace("{{says}}", &escaped(says)).replace("{{next}}", &escaped(local(next)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.remove(axum::http::header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(page);
    response
}

impl Gate {
    /// Exchanges the token in a form, `token=…&next=…`, for a cookie.
    pub(crate) async fn login(
        &self,
        peer: &Peer,
        request: Request,
        bodies: &BodyReader,
    ) -> Result<Response, Failure> {
        let (parts, body) = request.into_parts();
        let kind = content_type(&parts.headers).split(';').next().unwrap_or_default();
        if !kind.trim().eq_ignore_ascii_case(FORM) {
            let message = format!("{LOGIN} takes a form: token=TOKEN, with Content-Type: {FORM}");
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let body = bodies.read_within(body, LARGEST_FORM).await?;
        let form: HashMap<String, String> = serde_html_form::from_bytes(&body)
            .map_err(|error| Failure::bad_request(format!("the form cannot be read: {error}")))?;
        let field = |name: &str| form.get(name).map(|text| text.trim()).unwrap_or_default();
        let next = local(field("next"));
        let Some(tokens) = &self.tokens else {
            return Err(Failure::new(StatusCode::NOT_FOUND, "this server needs no token"));
        };
        let rights = match self.rights(tokens, peer, field("token").as_bytes()) {
            Ok(rights) => rights,
            Err(failure) if accepts_page(&parts.headers) => {
                let says = failure.message().to_owned();
                return Ok(login_page(failure.into_response(), &says, next));
            }
            Err(failure) => return Err(failure),
        };
        let failed = |error: TokenError| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
        let id = self.sessions.begin(rights, Instant::now()).map_err(failed)?;
        let next = if accepts_page(&parts.headers) { Some(next) } else { None };
        Ok(with_cookie(&session::cookie(&id, peer, self.port), next))
    }

    pub(crate) fn logout(&self, head: RequestHead<'_>) -> Response {
        if let Some(id) = session::id_in_cookie(head.headers, head.peer, self.port) {
            self.sessions.end(id);
        }
        let next = if accepts_page(head.headers) { Some("/") } else { None };
        with_cookie(&session::cookie("", head.peer, self.port), next)
    }
}

/// A reply that sets a cookie: a redirect to `next`, or a 204 if there is no next page.
fn with_cookie(cookie: &str, next: Option<&str>) -> Response {
    let status = if next.is_some() { StatusCode::SEE_OTHER } else { StatusCode::NO_CONTENT };
    let mut response = status.into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        headers.insert(SET_COOKIE, cookie);
    }
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(next).ok()) {
        headers.insert(LOCATION, next);
    }
    response
}

/// The address if a browser can open it on this server, and otherwise the address of the start page. In an address that
/// begins with `//` or `/\`, browsers interpret the next part as the name of another server.
fn local(address: &str) -> &str {
    let plain = address.bytes().all(|byte| byte.is_ascii_graphic());
    let own = address.starts_with('/') && !address[1..].starts_with(['/', '\\']);
    let posted = matches!(address.split('?').next(), Some(LOGIN | LOGOUT));
    if plain && own && !posted { address } else { "/" }
}

/// Escapes a text for HTML, including attributes in double quotes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_redirects_only_to_pages_of_this_server() {
        for address in ["/", "/docs", "/screen.png?x=1&y=//2"] {
            assert_eq!(local(address), address);
        }
        for address in [
            "",
            "//evil.example",
            "/\\evil.example",
            "http://evil.example",
            "evil",
            "/\t/evil.example",
            "/a\r\nb",
            LOGIN,
            "/v1/logout?x=1",
        ] {
            assert_eq!(local(address), "/", "{address}");
        }
    }

    #[tokio::test]
    async fn the_login_page_keeps_the_status_and_its_texts_are_escaped() {
        let page = login_page(StatusCode::UNAUTHORIZED.into_response(), "<b>", "/\"><script>x</script>");
        assert_eq!(page.status(), StatusCode::UNAUTHORIZED);
        assert!(page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().contains("style-src 'sha256-"));
        let body = axum::body::to_bytes(page.into_body(), usize::MAX).await.unwrap();
        let text = str::from_utf8(&body).unwrap();
        for escaped in ["&lt;b>", "\"/&quot;>&lt;script>x&lt;/script>\""] {
            assert!(text.contains(escaped), "{escaped}: {text}");
        }
        assert!(!text.contains("<b>") && !text.contains("<script>"), "{text}");
    }
}
