//! Replies as they are kept.

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::MatchedPath;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;

/// A reply that is given again.
#[derive(Debug)]
pub(super) struct KeptReply {
    status: StatusCode,
    headers: Box<[(HeaderName, HeaderValue)]>,
    body: Bytes,
    /// The route that gave it, for those who count replies.
    route: Option<MatchedPath>,
}

impl KeptReply {
    /// A copy of a reply, next to the reply itself. `None` if its body is larger than `most` or cannot be read.
    pub(super) async fn of(response: Response, most: usize) -> (Response, Option<KeptReply>) {
        if response.body().size_hint().lower() > most as u64 {
            return (response, None);
        }
        let (parts, body) = response.into_parts();
        let Ok(body) = to_bytes(body, usize::MAX).await else {
            return (Response::from_parts(parts, Body::empty()), None);
        };
        if body.len() > most {
            return (Response::from_parts(parts, Body::from(body)), None);
        }
        let kept = KeptReply {
            status: parts.status,
            headers: parts.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            // The bytes themselves may hold a share of the memory for replies, which belongs to those under way.
            body: Bytes::copy_from_slice(&body),
            route: parts.extensions.get().cloned(),
        };
        (Response::from_parts(parts, Body::from(body)), Some(kept))
    }

    /// Its size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        self.body.len() + headers
    }

    /// The reply once more.
    pub(super) fn response(&self) -> Response {
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.status_mut() = self.status;
        for (name, value) in &self.headers {
            response.headers_mut().append(name.clone(), value.clone());
        }
        if let Some(route) = &self.route {
            response.extensions_mut().insert(route.clone());
        }
        response
    }
}
