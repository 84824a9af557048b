//! The documentation page `/docs`: it describes every route and can send requests. It is made from the OpenAPI
//! document.

mod fields;
mod form;
pub mod openapi;

use std::fmt::Write;
use std::sync::LazyLock;

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;

use self::form::FormWriter;
use crate::access::login::escaped;
use crate::compressed::{accepts_gzip, gzip};
use crate::v1;

/// The page with its style and its script, and the OpenAPI document, also at the paths that mGBA-http uses.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let css =
        async || ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("page.css")).into_response();
    let script = async || {
        ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("page.js")).into_response()
    };
    Router::new()
        .route("/docs", get(page))
        .route("/docs/page.css", get(css))
        .route("/docs/page.js", get(script))
        .route("/openapi.json", get(document))
        .route("/openapi/v1.json", get(document)) // mGBA-http's path
        .route("/scalar", get(page)) // mGBA-http's path
        .route("/scalar/v1", get(page)) // mGBA-http's path
}

async fn document(headers: HeaderMap) -> Response {
    static GZIP: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&openapi::json()));
    let kind = [(CONTENT_TYPE, "application/json"), (VARY, "Accept-Encoding")];
    if accepts_gzip(&headers) {
        return (kind, [(CONTENT_ENCODING, "gzip")], GZIP.as_slice()).into_response();
    }
    (kind, openapi::json()).into_response()
}

async fn page(headers: HeaderMap) -> Response {
    static PAGE: LazyLock<String> = LazyLock::new(write_page);
    static GZIP: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(PAGE.as_bytes()));
    let vary = [(VARY, "Accept-Encoding")];
    if accepts_gzip(&headers) {
        return (vary, [(CONTENT_ENCODING, "gzip")], Html(GZIP.as_slice())).into_response();
    }
    (vary, Html(PAGE.as_str())).into_response()
}

fn write_page() -> String {
    // The tests of the document make sure that it is valid JSON.
    let document: Value = serde_json::from_slice(&openapi::json()).unwrap_or_default();
    let page = FormWriter { document: &document };
    let mut groups: Vec<(String, String)> =
        v1::groups().into_iter().map(|name| (name, String::new())).collect();
    for (path, method, operation) in page.operations() {
        let tag = operation["tags"][0].as_str().unwrap_or("other");
        let index = groups.iter().position(|(name, _)| name == tag).unwrap_or_else(|| {
            groups.push((tag.to_owned(), String::new()));
            groups.len() - 1
        });
        page.write(&mut groups[index].1, path, method, operation);
    }
    // mGBA-http's routes come last, so that readers see Framewire's own routes first.
    groups.sort_by_key(|(_, rows)| !rows.contains("data-path=\"/v1"));
    let (mut links, mut text) = (String::new(), String::new());
    for (name, rows) in groups.iter().filter(|(_, rows)| !rows.is_empty()) {
        let name = escaped(name);
        let id = format!("group-{}", name.replace(' ', "-"));
        // Writing to a string cannot fail.
        let _ = writeln!(links, "<li><a href=\"#{id}\">{name}</a></li>");
        let _ = writeln!(text, "<section id=\"{id}\"><h2>{name}</h2>\n{rows}</section>");
    }
    include_str!("page.html")
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
        .replace("{{links}}", &links)
        .replace("{{groups}}", &text)
}
