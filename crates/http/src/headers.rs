//! Framewire's own headers, and the security headers of replies.

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The value of the frame counter when the content of the reply was read.
pub(crate) const FRAME: HeaderName = HeaderName::from_static("framewire-frame");
/// The width of a picture in pixels.
pub(crate) const WIDTH: HeaderName = HeaderName::from_static("framewire-width");
/// The height of a picture in pixels.
pub(crate) const HEIGHT: HeaderName = HeaderName::from_static("framewire-height");

/// The headers that pages of allowed origins can read, in addition to those that browsers let every page read.
pub(crate) const EXPOSED: &str = "allow, content-disposition, etag, framewire-frame, framewire-height, framewire-width, location, \
    mcp-session-id, retry-after, www-authenticate, x-request-id";

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The Content Security Policy of replies that are not pages. If a browser shows such a reply as a page, that page may
/// do nothing.
const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The Content Security Policy of pages that do not set one. They may only use this server, and other pages may not put
/// them in a frame.
const OWN: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// The content type, with its parameters; empty if there is none.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
}

/// Adds the security headers to a reply. `shared` says whether pages of other origins may show it.
pub(crate) fn add_security_headers(headers: &mut HeaderMap, shared: bool) {
    let is_page = content_type(headers).starts_with("text/html");
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(if is_page { OWN } else { NOTHING });
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_page {
        // With "no-referrer", browsers would send `null` as the origin of a page's own forms.
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    }
    let readers = if shared { "cross-origin" } else { "same-origin" };
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static(readers));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_can_read_the_headers_of_pictures() {
        let exposed: Vec<&str> = EXPOSED.split(", ").collect();
        assert!(exposed.is_sorted(), "{exposed:?}");
        for name in [FRAME, WIDTH, HEIGHT] {
            assert!(exposed.contains(&name.as_str()), "{name}");
        }
    }
}
