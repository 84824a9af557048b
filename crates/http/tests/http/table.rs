//! Compares the table of routes with mGBA-http's, and tries every route with a real core.

use framewire_http::compat::{Kind, Param, ROUTES, Reply, RequestBody, Route, Verb};
use framewire_protocol::Effect;
use framewire_protocol::op::{OPS, ResultKind};

use super::support::{Server, encoded};

const REFERENCE: &str = include_str!("../data/mgba-http-0.10.0-routes.tsv");

/// A route as a row of mGBA-http's table.
fn row(route: &Route) -> String {
    let method = match route.verb {
        Verb::Get => "GET",
        Verb::Post => "POST",
    };
    let params: Vec<String> = route.params.iter().map(typed).collect();
    let body = match route.body() {
        RequestBody::Savestate => "text/plain",
        _ => "",
    };
    format!("{method}\t{}\t{}\t{body}\t{}", route.path, params.join(" "), route.message)
}

fn typed(param: &Param) -> String {
    let kind = match param.kind {
        Kind::Integer { .. } => "integer",
        Kind::Boolean => "boolean",
        Kind::LuaNumber { .. } | Kind::Text | Kind::Name | Kind::Path => "string",
        Kind::Button => "button",
        Kind::Buttons => "button[]",
    };
    format!("{}:{kind}{}", param.name, if param.default.is_some() { "?" } else { "" })
}

#[test]
fn the_routes_are_those_of_mgba_http() {
    let reference = REFERENCE.lines().filter(|line| !line.starts_with('#')).skip(1);
    // The column of example replies is left out.
    let mut expected: Vec<String> = reference
        .map(|line| line.split('\t').enumerate().filter(|(column, _)| *column != 4).map(|(_, cell)| cell))
        .map(|cells| cells.collect::<Vec<_>>().join("\t"))
        .collect();
    let mut actual: Vec<String> = ROUTES.iter().map(row).collect();
    expected.sort();
    actual.sort();
    assert_eq!(actual, expected);
}

#[test]
fn every_route_has_a_description_and_the_result_of_its_operation_and_get_changes_nothing() {
    for route in &ROUTES {
        assert!(route.doc.ends_with('.'), "the description of {} is not a sentence", route.path);
        if let Some(op) = OPS.iter().find(|op| op.marker == Some(route.message)) {
            assert_eq!(route.op.result, op.result, "{}", route.path);
            // Browsers leave `Origin` out of simple GETs, so a route with GET must not change anything.
            assert!(
                op.effect == Effect::Read || route.verb == Verb::Post,
                "{} changes something",
                route.path
            );
        }
    }
}

/// A query that gives every parameter its smallest or largest value. The parameter `length` always gets at most 64.
fn query(route: &Route, server: &Server, largest: bool) -> String {
    let value = |param: &Param| match param.kind {
        Kind::Integer { min, max } => (if largest { max } else { min }).to_string(),
        Kind::LuaNumber { max } if param.name == "length" => max.min(64).to_string(),
        Kind::LuaNumber { max } => (if largest { max } else { 0 }).to_string(),
        Kind::Boolean => largest.to_string(),
        Kind::Text => "text".to_owned(),
        Kind::Name if param.name == "regName" => "r0".to_owned(),
        Kind::Name => "wram".to_owned(),
        Kind::Path => encoded(&server.file(&route.message.replace('.', " "))),
        Kind::Button => if largest { "L" } else { "A" }.to_owned(),
        Kind::Buttons => if largest { "L&buttons=R" } else { "A" }.to_owned(),
    };
    let pairs: Vec<String> =
        route.params.iter().map(|param| format!("{}={}", param.name, value(param))).collect();
    format!("?{}", pairs.join("&"))
}

/// Every route works with its smallest and largest arguments. Each path is tried as it is spelled, in upper and lower
/// case, and with a slash at the end.
#[test]
fn every_route_works_at_both_ends_of_its_ranges() {
    let server = Server::start();
    for route in &ROUTES {
        let (method, body): (_, &[u8]) = match (route.verb, route.body()) {
            (Verb::Get, _) => ("GET", b""),
            (Verb::Post, RequestBody::Savestate) => ("POST", b"[00]"),
            (Verb::Post, _) => ("POST", b"ignored"),
        };
        let spellings = [
            route.path.to_owned(),
            route.path.to_uppercase(),
            format!("{}/", route.path),
            route.path.to_lowercase(),
        ];
        for (path, largest) in spellings.iter().zip([false, true, false, true]) {
            let target = format!("{path}{}", query(route, &server, largest));
            let reply = server.request(method, &target, body);
            assert_eq!(reply.status, 200, "{target}: {}", reply.text());
            assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"), "{target}");
            assert_form(route, &reply.text());
        }
    }
}

/// Checks that a reply has the form that the route's kind of result requires.
fn assert_form(route: &Route, text: &str) {
    let fits = match route.reply {
        Reply::Plain(ResultKind::None) => text.is_empty(),
        Reply::Plain(ResultKind::Bool) => matches!(text, "true" | "false"),
        Reply::Plain(ResultKind::Int) => text.parse::<i64>().is_ok(),
        Reply::Plain(ResultKind::Bytes) => {
            text.split(',').all(|pair| pair.len() == 2 && u8::from_str_radix(pair, 16).is_ok())
                || text.is_empty()
        }
        Reply::Plain(ResultKind::Names) => text.split(',').all(|name| !name.is_empty()),
        Reply::Plain(ResultKind::Text) | Reply::Buttons | Reply::Raw => true,
    };
    assert!(fits, "{}: {text:?}", route.path);
}
