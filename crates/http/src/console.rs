//! Serves the console page: `/` and the files under `/console/`.

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use framewire_console::Asset;

use crate::compressed;
use crate::failure::Failure;

/// The page's Content Security Policy. The page may use only its own files and this server, no other page may put it in
/// a frame, and its scripts cannot turn text into code or markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/", get(page)).route("/console/{*path}", get(file).fallback(other_methods))
}

async fn page(headers: HeaderMap) -> Response {
    answer(framewire_console::page(), &headers)
}

async fn file(Path(path): Path<String>, headers: HeaderMap) -> Response {
    match framewire_console::find(&path) {
        Some(asset) => answer(asset, &headers),
        None => Failure::no_such_path(&format!("/console/{path}")).into_response(),
    }
}

/// The answer to methods other than GET and HEAD: a 405 for the path of a file, and a 404 for other paths.
async fn other_methods(Path(path): Path<String>) -> Response {
    let whole = format!("/console/{path}");
    match framewire_console::find(&path) {
        Some(_) => Failure::wrong_method(&whole, "GET, HEAD").into_response(),
        None => Failure::no_such_path(&whole).into_response(),
    }
}

/// The file, or a 304 if the browser has it already. Each version of a file has its own entity tag.
fn answer(asset: &'static Asset, headers: &HeaderMap) -> Response {
    let same = |tag: &str| ["*", asset.etag].contains(&tag.trim().trim_start_matches("W/"));
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let known = tags.flat_map(|tags| tags.split(',')).any(same);
    let keep = if asset.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let fixed = [(CACHE_CONTROL, keep), (VARY, "Accept-Encoding"), (ETAG, asset.etag)];
    let policy = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    if known {
        return (StatusCode::NOT_MODIFIED, fixed, policy).into_response();
    }
    let kind = [(CONTENT_TYPE, asset.content_type)];
    if compressed::accepts_gzip(headers) {
        return (fixed, policy, kind, [(CONTENT_ENCODING, "gzip")], asset.gzip).into_response();
    }
    (fixed, policy, kind, asset.bytes).into_response()
}
