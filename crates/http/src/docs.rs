//! The page for people: every route with its parameters, written from the same tables as the OpenAPI document.

use std::fmt::Write;
use std::sync::LazyLock;

use axum::response::Html;

use crate::compat::{ECHO, ROUTES, RequestBody, Route, Verb};

const HEAD: &str = include_str!("docs.html");

/// `GET /docs`.
pub(crate) async fn page() -> Html<&'static str> {
    static PAGE: LazyLock<String> = LazyLock::new(write_page);
    Html(&PAGE)
}

fn write_page() -> String {
    let mut rows = String::new();
    for route in ECHO.iter().chain(&ROUTES) {
        write_row(&mut rows, route);
    }
    HEAD.replace("{{version}}", env!("CARGO_PKG_VERSION")).replace("{{rows}}", &rows)
}

fn write_row(rows: &mut String, route: &Route) {
    let method = match route.verb {
        Verb::Get => "GET",
        Verb::Post => "POST",
    };
    let path = match (route.verb, route.params) {
        (Verb::Get, []) => format!("<a href=\"{0}\">{0}</a>", route.path),
        _ => route.path.to_owned(),
    };
    let mut takes: Vec<String> = Vec::new();
    match route.body {
        RequestBody::Ignored => {}
        RequestBody::Savestate => {
            takes.push("<b>body</b>: a savestate as hex pairs, such as [d3,00,ea].".to_owned())
        }
        RequestBody::Message => takes.push("<b>body</b>: the text.".to_owned()),
    }
    for param in route.params {
        let default = param.default.map(|default| format!(" Left out, it is {default}.")).unwrap_or_default();
        let (name, doc, accepts) = (param.name, param.doc, escaped(&param.kind.accepts()));
        takes.push(format!("<b>{name}</b>: {doc} It takes {accepts}.{default}"));
    }
    let (doc, takes) = (escaped(route.doc()), takes.join("<br>"));
    // Writing to a string cannot fail.
    let _ = writeln!(rows, "<tr><td>{method}<td><code>{path}</code><td>{doc}<td>{takes}");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
