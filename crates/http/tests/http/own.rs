//! Framewire's own routes for health, the emulator's state and the screen, and the OpenAPI document with its page.

use serde_json::Value;

use framewire_http::compat::{ECHO, ROUTES, Verb};

use super::support::{Server, wait_for};

fn json(server: &Server, target: &str) -> Value {
    let reply = server.get(target);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{target}");
    serde_json::from_slice(&reply.body).unwrap()
}

#[test]
fn health_says_ok() {
    let health = json(&Server::start(), "/healthz");
    assert_eq!(health["status"], "ok");
    assert_eq!(health["connected"], true);
}

#[test]
fn the_emulators_state_is_reported() {
    let server = Server::start();
    wait_for("the title", || json(&server, "/v1/emulator")["title"] == "FRAMEWIRE");
    let state = json(&server, "/v1/emulator");
    assert_eq!(state["kind"], "embedded");
    assert_eq!(state["connected"], true);
    assert_eq!(state["run"], "running");
    let frame = |state: &Value| state["frame"].as_u64().unwrap();
    wait_for("a further frame", || frame(&json(&server, "/v1/emulator")) > frame(&state));
    wait_for("a rate near 60", || {
        (50.0..70.0).contains(&json(&server, "/v1/emulator")["frames_per_second"].as_f64().unwrap())
    });
}

#[test]
fn the_screen_is_a_picture_of_the_game() {
    let server = Server::start();
    let picture = || {
        let reply = server.get("/screen.png");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("image/png")));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        let picture = framewire_media::png::decode(&reply.body).unwrap();
        assert_eq!((picture.width, picture.height), (240, 160));
        picture.rgb
    };
    wait_for("something to see", || {
        let pixels = picture();
        pixels.iter().any(|byte| *byte != pixels[0])
    });
    // The demo game shows a lamp for each key, in another colour while the key is held.
    let unlit = picture();
    server.post_ok("/mgba-http/button/add?button=L", "");
    wait_for("the lamp", || lamp(&picture()) != lamp(&unlit));
}

/// The pixel in the middle of the lamp for L.
fn lamp(pixels: &[u8]) -> &[u8] {
    let map = std::fs::read_to_string(super::support::repository("rom/memory-map.toml")).unwrap();
    let map: toml::Table = map.parse().unwrap();
    let lamps = map["lamp"].as_array().unwrap();
    let lamp = lamps.iter().find(|lamp| lamp["key"].as_str() == Some("L")).unwrap();
    let at = |axis: &str| lamp[axis].as_integer().unwrap() as usize;
    &pixels[(at("y") * 240 + at("x")) * 3..][..3]
}

#[test]
fn the_openapi_document_describes_every_route_of_mgba_http() {
    let server = Server::start();
    let document = json(&server, "/openapi.json");
    assert_eq!(document, json(&server, "/openapi/v1.json"));
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut ids = Vec::new();
    for route in ROUTES.iter().chain(&ECHO) {
        let method = if route.verb == Verb::Get { "get" } else { "post" };
        let operation = &document["paths"][route.path][method];
        assert!(operation.is_object(), "{method} {}", route.path);
        ids.push(operation["operationId"].as_str().unwrap().to_owned());
        let names: Vec<&str> = operation["parameters"]
            .as_array()
            .map(|params| params.iter().map(|param| param["name"].as_str().unwrap()).collect())
            .unwrap_or_default();
        let mut expected: Vec<&str> = route.params.iter().map(|param| param.name).collect();
        if route.verb == Verb::Post {
            expected.push("Idempotency-Key");
        }
        assert_eq!(names, expected, "{}", route.path);
        for status in ["200", "400", "413", "502", "503", "504"] {
            assert!(operation["responses"][status].is_object(), "{} {status}", route.path);
        }
    }
    ids.sort();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all, "operation ids are unique");
    let references = document.to_string();
    for name in ["BadRequest", "TooLarge", "NoEmulator", "Busy", "Stalled"] {
        assert!(references.contains(&format!("#/components/responses/{name}")), "{name} is used");
        assert!(document["components"]["responses"][name].is_object(), "{name} is defined");
    }
    for path in ["/healthz", "/v1/emulator", "/screen.png"] {
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
}

#[test]
fn the_document_gives_ranges_and_defaults() {
    let document = json(&Server::start(), "/openapi.json");
    let params = |path: &str, method: &str| document["paths"][path][method]["parameters"].clone();
    let value = &params("/core/write8", "post")[1];
    assert_eq!((&value["schema"]["minimum"], &value["schema"]["maximum"]), (&0.into(), &255.into()));
    assert_eq!(value["required"], true);
    let flags = &params("/core/loadstatebuffer", "post")[0];
    assert_eq!((&flags["schema"]["default"], &flags["required"]), (&29.into(), &false.into()));
    let buttons = &params("/mgba-http/button/tapmany", "post")[0];
    assert_eq!(buttons["schema"]["items"]["$ref"], "#/components/schemas/Key");
    assert_eq!(document["components"]["schemas"]["Key"]["enum"].as_array().unwrap().len(), 10);
}

/// Calls `look` with the path and the content of every value in a JSON document.
fn visit(value: &serde_json::Value, place: &str, look: &mut impl FnMut(&str, &serde_json::Value)) {
    look(place, value);
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| visit(value, &format!("{place}/{name}"), look));
        }
        serde_json::Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| visit(item, &format!("{place}/{index}"), look));
        }
        _ => {}
    }
}

/// Client generators name types after titles, components and operations, and ignore the case of letters. In an earlier
/// version, two of them had the same name, and generated clients lacked `/v1/batch` and `/v1/tap`.
#[test]
fn no_two_types_of_a_generated_client_have_the_same_name() {
    let document = json(&Server::start(), "/openapi.json");
    let mut names: Vec<String> = Vec::new();
    let components = document["components"]["schemas"].as_object().unwrap();
    names.extend(components.keys().map(|name| name.to_lowercase()));
    visit(&document, "", &mut |_, value| names.extend(value["title"].as_str().map(str::to_lowercase)));
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            let word = id.chars().all(|char| char.is_ascii_alphanumeric())
                && id.starts_with(|c: char| c.is_ascii_lowercase());
            assert!(word, "{id} is not a name in camel case");
            // The name that openapi-generator gives to the parameters of an operation.
            names.push(format!("{}request", id.to_lowercase()));
        }
    }
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    let twice: Vec<&String> =
        unique.iter().filter(|name| names.iter().filter(|other| other == name).count() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn operations_and_written_values_have_their_own_schemas() {
    let document = json(&Server::start(), "/openapi.json");
    let schemas = &document["components"]["schemas"];
    let mapping = schemas["BatchOp"]["discriminator"]["mapping"].as_object().unwrap();
    assert_eq!(schemas["BatchOp"]["oneOf"].as_array().unwrap().len(), mapping.len());
    for (name, place) in mapping {
        let operation = document.pointer(&place.as_str().unwrap()[1..]).unwrap();
        let op = &operation["properties"]["op"];
        assert_eq!((&op["const"], &op["default"]), (&name.as_str().into(), &name.as_str().into()), "{name}");
    }
    let value = "#/components/schemas/Value";
    for holder in ["OpWrite", "NewContent"] {
        assert_eq!(schemas[holder]["properties"]["value"]["$ref"], value, "{holder}");
    }
}

#[test]
fn bodies_that_are_not_text_have_the_format_binary() {
    let document = json(&Server::start(), "/openapi.json");
    let mut binary = 0;
    visit(&document, "", &mut |place, value| {
        let Some(content) = value["content"].as_object() else { return };
        for (kind, content) in content {
            let text = ["json", "form", "text/"].iter().any(|part| kind.contains(part));
            if !text {
                assert_eq!(content["schema"]["format"], "binary", "{place} {kind}");
                binary += 1;
            }
        }
    });
    assert!(binary > 10, "{binary}");
}

#[test]
fn the_document_describes_tokens_and_errors() {
    let document = json(&Server::start(), "/openapi.json");
    let schemes = &document["components"]["securitySchemes"];
    assert_eq!(
        (&schemes["token"]["scheme"], &schemes["session"]["in"]),
        (&"bearer".into(), &"cookie".into())
    );
    assert_eq!(document["security"].as_array().unwrap().len(), 3, "nothing, a token or a cookie");
    for path in ["/v1/login", "/v1/logout"] {
        assert!(document["paths"][path]["post"]["responses"]["204"].is_object(), "{path}");
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.contains_key("401") && !responses.contains_key("429"), "{method} {path}");
            for (status, response) in responses {
                let description = response["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{method} {path} {status}: {response}");
            }
        }
    }
    let list = &document["paths"]["/v1/emulators"]["get"]["responses"];
    for status in ["404", "408", "501", "502", "504"] {
        assert_eq!(list[status], serde_json::Value::Null, "{status}");
    }
}

#[test]
fn the_document_describes_every_field_of_the_state() {
    let server = Server::start();
    let document = json(&server, "/openapi.json");
    for path in ["/healthz", "/v1/emulator"] {
        let schema =
            &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let referred = schema["$ref"].as_str().map(|place| document.pointer(&place[1..]).unwrap());
        let schema = referred.unwrap_or(schema);
        let described: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let given = json(&server, path);
        let mut given: Vec<&String> = given.as_object().unwrap().keys().collect();
        given.sort();
        assert_eq!(described, given, "{path}");
        let run = schema["properties"]["run"]["$ref"].as_str().unwrap().trim_start_matches('#');
        assert_eq!(document.pointer(run).unwrap()["enum"].as_array().unwrap().len(), 4, "{path}");
    }
}

#[test]
fn the_docs_page_shows_every_route() {
    let server = Server::start();
    let document = json(&server, "/openapi.json");
    for path in ["/docs", "/scalar", "/scalar/v1"] {
        let reply = server.get(path);
        assert_eq!(reply.status, 200);
        assert!(reply.header("content-type").unwrap().starts_with("text/html"));
        let text = reply.text();
        for route in &ROUTES {
            assert!(text.contains(route.path), "{path} shows {}", route.path);
        }
        for described in document["paths"].as_object().unwrap().keys() {
            assert!(text.contains(&format!("data-path=\"{described}\"")), "{path} shows {described}");
        }
        assert!(!text.contains("{{"), "{path} has an unfilled placeholder");
    }
    assert_eq!(server.post("/docs").status, 405);
}

#[test]
fn the_docs_page_shows_groups_fields_and_replies() {
    let server = Server::start();
    let page = server.text("/docs");
    let groups: Vec<&str> =
        page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(groups.len() > 10, "{groups:?}");
    for group in groups {
        assert!(page.contains(&format!("<section id=\"{group}\">")), "{group} is linked");
    }
    assert!(
        page.contains(">from <span class=\"must\">required</span></label>"),
        "the parameter `from` of /v1/snapshots/diff is required"
    );
    let operation = |id: &str| {
        let rest = page.split_once(&format!("<details id=\"{id}\"")).expect("the operation is there").1;
        rest.split("<details id=").next().unwrap_or_default()
    };
    let narrow = operation("narrowSearch");
    let (body, replies) = narrow.split_once("<summary>Replies</summary>").expect("it has replies");
    assert!(body.contains("<summary>Fields of the body</summary>"), "{body}");
    assert!(body.contains("<code>value</code> <span class=\"type\">integer, optional</span>"), "{body}");
    assert!(replies.contains("<strong>200</strong> The narrowed search."), "{replies}");
    assert!(replies.contains("<code>undoable</code> <span class=\"type\">integer</span>"), "{replies}");
}

#[test]
fn the_docs_page_uses_only_files_of_this_server() {
    let server = Server::start();
    let page = server.text("/docs");
    let foreign =
        page.split(['"', '\'']).find(|part| part.starts_with("http://") || part.starts_with("https://"));
    assert_eq!(foreign, None, "the page refers to another server");
    assert!(
        !page.contains("<style") && !page.contains("style=") && !page.contains("onclick"),
        "the page's content security policy forbids these"
    );
    for (path, kind) in [("/docs/page.css", "text/css"), ("/docs/page.js", "text/javascript")] {
        assert!(page.contains(path), "{path}");
        let reply = server.get(path);
        assert!(reply.status == 200 && reply.header("content-type").unwrap().starts_with(kind), "{path}");
    }
}
