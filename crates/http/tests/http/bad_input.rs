//! For every parameter of mGBA-http's routes, sends every kind of value that the parameter does not accept.

use framewire_http::compat::{ECHO, Kind, Param, ROUTES, Route, Verb};

use super::support::{Reply, Server};

/// A value that the parameter accepts.
pub fn good(param: &Param) -> &'static str {
    match param.kind {
        Kind::Integer { .. } | Kind::LuaNumber { .. } => "0",
        Kind::Boolean => "true",
        Kind::Button | Kind::Buttons => "A",
        Kind::Name if param.name == "regName" => "r0",
        Kind::Name => "wram",
        Kind::Text => "x",
        Kind::Path => concat!(env!("CARGO_TARGET_TMPDIR"), "/bad-input"),
    }
}

/// Values that the parameter does not accept, encoded for a URL.
fn bad(param: &Param) -> Vec<String> {
    let fixed: &[&str] = match param.kind {
        Kind::Integer { .. } => {
            &["abc", "0x1", "1.5", "1e3", "99999999999999999999", "-99999999999", "%00", "1,2", "--1", "%ff"]
        }
        Kind::LuaNumber { .. } => {
            &["abc", "", "0x", "0xg", "-1", "-0x1", "1.5", "4294967296", "0x100000000", "1e99", "%ff"]
        }
        Kind::Boolean => &["", "yes", "1", "%ff"],
        Kind::Text => &["%ff", "%c3%28"],
        Kind::Name => &["", "nonsense", "%ff", "%00", "wram,iwram"],
        Kind::Path => &["", "a%00b", "%ff"],
        Kind::Button | Kind::Buttons => &["", "a", "START", "C", "0", "A,B", "A+", "%ff", "A%00"],
    };
    let mut values: Vec<String> = fixed.iter().map(|value| (*value).to_owned()).collect();
    if let Kind::Integer { min, max } = param.kind {
        values.extend([min - 1, max + 1].map(|number| number.to_string()));
    }
    if let Kind::LuaNumber { max } = param.kind {
        values.push((u64::from(max) + 1).to_string());
    }
    if param.default.is_none() && matches!(param.kind, Kind::Integer { .. }) {
        values.push(String::new());
    }
    values
}

/// Sends a request to `route`. Its query contains `pairs` in place of `param`; the other parameters have good values.
fn ask(server: &Server, route: &Route, param: &Param, pairs: &str) -> Reply {
    let others = route.params.iter().filter(|other| other.name != param.name);
    let mut query: Vec<String> = others.map(|other| format!("{}={}", other.name, good(other))).collect();
    query.push(pairs.to_owned());
    let target = format!("{}?{}", route.path, query.join("&"));
    match route.verb {
        Verb::Get => server.get(&target),
        Verb::Post => server.request("POST", &target, b"[00]"),
    }
}

#[track_caller]
fn assert_refused(reply: &Reply, route: &Route, param: &Param, pairs: &str) {
    let text = reply.text();
    assert_eq!(reply.status, 400, "{} with {pairs:?}: {text}", route.path);
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(text.contains(param.name), "{} with {pairs:?} does not name the parameter: {text}", route.path);
}

#[test]
fn wrong_values_are_400_and_the_error_names_the_parameter() {
    let server = Server::start();
    for route in ROUTES.iter().chain(&ECHO) {
        for param in route.params {
            for value in bad(param) {
                let pairs = format!("{}={value}", param.name);
                assert_refused(&ask(&server, route, param, &pairs), route, param, &pairs);
            }
        }
    }
}

#[test]
fn missing_parameters_are_400_unless_they_have_a_default() {
    let server = Server::start();
    for route in ROUTES.iter().chain(&ECHO) {
        for param in route.params {
            for pairs in ["", "unknown=1", "&&="] {
                let reply = ask(&server, route, param, pairs);
                match param.default {
                    None => assert_refused(&reply, route, param, pairs),
                    Some(_) => assert_eq!(reply.status, 200, "{}: {}", route.path, reply.text()),
                }
            }
        }
    }
}

#[test]
fn a_parameter_given_twice_is_400_unless_it_is_a_list() {
    let server = Server::start();
    for route in ROUTES.iter().chain(&ECHO) {
        for param in route.params {
            let (name, value) = (param.name, good(param));
            let pairs = format!("{name}={value}&{}={value}", name.to_uppercase());
            let reply = ask(&server, route, param, &pairs);
            match param.kind {
                Kind::Buttons => assert_eq!(reply.status, 200, "{}: {}", route.path, reply.text()),
                _ => assert_refused(&reply, route, param, &pairs),
            }
        }
    }
}

#[test]
fn one_bad_button_in_a_list_is_400_and_presses_no_button() {
    let server = Server::start();
    let reply = server.post("/mgba-http/button/addmany?buttons=A&buttons=Q&buttons=B");
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("\"Q\""), "{}", reply.text());
    assert_eq!(server.text("/core/getkeys"), "0");
}

#[test]
fn errors_say_which_values_are_accepted() {
    let server = Server::start();
    let cases = [
        ("POST", "/core/write8?address=0x02000100&value=300", "from 0 to 255"),
        ("POST", "/core/write16?address=0x02000100&value=-1", "from 0 to 65535"),
        ("POST", "/core/write32?address=0x02000100&value=4294967296", "from 0 to 4294967295"),
        ("POST", "/core/addkey?key=10", "from 0 to 9"),
        ("POST", "/core/setkeys?keys=1024", "from 0 to 1023"),
        ("POST", "/core/savestatebuffer?flags=32", "from 0 to 31"),
        ("POST", "/core/writeregister?regName=r0&value=4294967296", "from -2147483648 to 4294967295"),
        ("POST", "/mgba-http/button/hold?button=A&duration=-1", "from 0 to 2147483647"),
        ("GET", "/core/readrange?address=0&length=16777217", "from 0 to 16777216"),
        ("GET", "/core/read8?address=zz", "hex after 0x"),
        ("GET", "/core/readregister?regName=r99", "cpsr"),
        ("GET", "/memorydomain/size?memoryDomain=WRAM", "iwram"),
        ("GET", "/mgba-http/button/get?button=start", "Start"),
        ("POST", "/core/loadsavefile?path=x&temporary=maybe", "true or false"),
    ];
    for (method, target, accepted) in cases {
        let reply = server.request(method, target, b"");
        assert_eq!(reply.status, 400, "{target}");
        assert!(reply.text().contains(accepted), "{target}: no {accepted:?} in {}", reply.text());
    }
}

#[test]
fn a_refused_write_writes_nothing() {
    let server = Server::start();
    server.post_ok("/core/write8?address=0x02000100&value=7", "");
    assert_eq!(server.post("/core/write8?address=0x02000100&value=300").status, 400);
    assert_eq!(server.text("/core/read8?address=0x02000100"), "7");
}

#[test]
fn a_wrong_method_is_405_and_the_reply_lists_the_right_ones() {
    let server = Server::start();
    for route in &ROUTES {
        let (wrong, allow) = match route.verb {
            Verb::Get => (["POST", "PUT", "DELETE", "OPTIONS"], "GET, HEAD"),
            Verb::Post => (["GET", "HEAD", "PATCH", "FOO"], "POST"),
        };
        for method in wrong {
            let reply = server.request(method, route.path, b"");
            assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {}", route.path);
        }
    }
    let reply = server.request("DELETE", "/mgbaendpoint", b"");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD, POST")));
}

#[test]
fn get_routes_answer_head_without_a_body() {
    let server = Server::start();
    for path in ["/core/getgametitle", "/healthz", "/screen.png"] {
        let reply = server.request("HEAD", path, b"");
        assert_eq!((reply.status, reply.body.len()), (200, 0), "{path}");
    }
}

#[test]
fn unknown_paths_are_404_and_say_where_to_look() {
    let server = Server::start();
    for path in [
        "/core",
        "/core/",
        "/core/read9",
        "/core//read8",
        "/core/read8/x",
        "/core/read8//",
        "/%ff",
        "/core/read8%20",
    ] {
        let reply = server.get(path);
        assert_eq!(reply.status, 404, "{path}");
        assert!(reply.text().contains("/openapi.json"), "{}", reply.text());
    }
}

#[test]
fn a_url_with_a_character_that_must_be_encoded_gets_a_message() {
    let server = Server::start();
    for target in ["/console/log?message=<hi>", "/console/log?message=\"hi\"", "/mgbaendpoint?message=a>b"] {
        let reply = server.post(target);
        assert_eq!(reply.status, 400, "{target}");
        assert!(reply.text().contains("%3C for <"), "{target}: {:?}", reply.text());
    }
    let reply = server.get("/v1/memory/score?type=\"u8\"");
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{}", reply.text());
}
