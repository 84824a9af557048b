//! The OpenAPI document of watches and events.

use serde_json::{Value, json};

use crate::support::Server;
use crate::v1::json_of;

/// If two schemas had the same name, one would silently replace the other, and describe the wrong fields.
#[test]
fn the_document_describes_the_fields_of_requests_and_replies() {
    let server = Server::start();
    let document = json_of(&server.get("/openapi.json"), 200);
    let resolved = |content: &Value| -> Value {
        let schema = &content["content"]["application/json"]["schema"];
        let schema = schema["$ref"].as_str().map_or(Some(schema), |name| document.pointer(&name[1..]));
        schema.unwrap_or_else(|| panic!("{content}")).clone()
    };
    let wait = &document["paths"]["/v1/wait"]["post"];
    assert_eq!(resolved(&wait["requestBody"])["required"], json!(["until"]));
    json_of(&server.send("POST", "/v1/watches", &json!({"watch": ["score"]})), 201);
    for (path, given) in [
        ("/v1/wait", server.send("POST", "/v1/wait", &json!({"until": "1"}))),
        ("/v1/watches", server.get("/v1/watches")),
        ("/v1/emulators", server.get("/v1/emulators")),
        ("/v1/symbols", server.get("/v1/symbols")),
    ] {
        let operations = document["paths"][path].as_object().unwrap();
        let operation = operations.get("get").unwrap_or_else(|| &operations["post"]);
        let schema = resolved(&operation["responses"]["200"]);
        let given = json_of(&given, 200);
        let described: Vec<&String> =
            schema["properties"].as_object().unwrap_or_else(|| panic!("{path}: {schema}")).keys().collect();
        let given: Vec<&String> = given.as_object().unwrap().keys().collect();
        assert!(given.iter().all(|field| described.contains(field)), "{path}: {given:?} of {described:?}");
    }
    for (path, method) in
        [("/v1/watch", "get"), ("/v1/events", "get"), ("/v1/watches/{id}", "delete"), ("/v1/ws", "get")]
    {
        assert!(document["paths"][path][method].is_object(), "{method} {path}");
    }
}
