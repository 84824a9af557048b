//! The names of headers that are Framewire's own.

use axum::http::HeaderName;

/// The frame counter of what a reply holds.
pub(crate) const FRAME: HeaderName = HeaderName::from_static("framewire-frame");
/// The width of a picture in pixels.
pub(crate) const WIDTH: HeaderName = HeaderName::from_static("framewire-width");
/// The height of a picture in pixels.
pub(crate) const HEIGHT: HeaderName = HeaderName::from_static("framewire-height");

/// What pages of allowed origins can read of a reply, in addition to what browsers show to every page.
pub(crate) const EXPOSED: &str = "allow, content-disposition, etag, framewire-frame, framewire-height, framewire-width, location, \
    retry-after, www-authenticate, x-request-id";

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
