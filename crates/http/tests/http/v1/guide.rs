//! Runs the examples of `docs/api.md` with curl, as the page shows them but with the address of the test server. Sends
//! their operations over JSON-RPC too. Also runs the examples of operations in `docs/json-rpc.md`.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::json_of;
use super::live::client::Rpc;
use crate::support::{Server, repository};

/// The language and the text of each code block, in the order of the page.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    page.split("\n```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap()).collect()
}

/// Shell code that replaces `curl` in the examples with a wrapper. The wrapper also appends request bodies that are
/// JSON objects to the file `$BODIES`.
const CURL: &str = r#"set -e
curl() {
  for word; do case "$word" in "{"*) printf '%s\0' "$word" >>"$BODIES";; esac; done
  command curl --silent --show-error "$@"
}
"#;

/// The operations in the bodies that the examples have sent so far, in order. Each has the `encoding` of its body.
fn sent_operations(server: &Server) -> Vec<Value> {
    let bodies = std::fs::read_to_string(server.file("bodies")).unwrap();
    let mut all = Vec::new();
    for body in bodies.split_terminator('\0') {
        let Ok(body) = serde_json::from_str::<Value>(body) else { panic!("not JSON: {body}") };
        for operation in ["ops", "then"].iter().filter_map(|list| body[list].as_array()).flatten() {
            let mut operation = operation.clone();
            if let Some(encoding) = body.get("encoding") {
                operation["encoding"] = encoding.clone();
            }
            all.push(operation);
        }
    }
    all
}

/// The name of an operation that is written as in a batch.
fn name(operation: &Value) -> &str {
    operation["op"].as_str().unwrap_or_else(|| panic!("no name: {operation}"))
}

/// Sends operations as JSON-RPC methods. None may fail.
fn send_as_methods(server: &Server, operations: &[Value]) {
    let mut rpc = Rpc::open(server);
    let mut cheat = Value::Null;
    for operation in operations {
        // Earlier operations may still hold keys.
        server.request("DELETE", "/v1/input", b"");
        let mut params = operation.as_object().unwrap().clone();
        params.remove("op");
        // The cheat's id differs from the id in the example. In `remove_cheat`, the id 0 stands for all cheats.
        if ["enable_cheat", "remove_cheat"].contains(&name(operation)) && params["id"] != 0 {
            params["id"] = cheat.clone();
        }
        let result = rpc.result(name(operation), params.into());
        assert!(result["frame"].is_u64(), "{operation}: {result}");
        if name(operation) == "add_cheat" {
            cheat = result["value"].clone();
        }
    }
}

/// The names of the operations that `GET /v1/operations` lists.
fn listed_operations(server: &Server) -> BTreeSet<String> {
    let table = json_of(&server.get("/v1/operations"), 200);
    let rows = ["operations", "conveniences"].iter().flat_map(|list| table[list].as_array().unwrap());
    rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// Runs commands in a shell. Returns the last line that the last command printed. The other commands must not get an
/// error reply, which this function recognizes by the text `about:blank`.
fn run(commands: &str, server: &Server) -> String {
    let commands = commands.replace("127.0.0.1:5000", &server.address.to_string());
    let last = commands.rfind("\ncurl ").map_or(0, |at| at + 1);
    let (others, last) = commands.split_at(last);
    let script = format!("{{ {others}:; }} >&2\n{last}");
    let output = Command::new("sh")
        .args(["-c", &format!("{CURL}{script}")])
        .env("BODIES", server.file("bodies"))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !err.contains("about:blank"), "{script}\n{out}\n{err}");
    out.lines().last().unwrap_or_default().to_owned()
}

/// Checks that a reply has all fields that the page shows, with values of the same kinds.
fn check(shown: &Value, given: &Value, place: &str) {
    match (shown, given) {
        (Value::Object(shown), Value::Object(given)) => {
            for (name, shown) in shown {
                let given = given.get(name).unwrap_or_else(|| panic!("{place}.{name} is not in {given:?}"));
                check(shown, given, &format!("{place}.{name}"));
            }
        }
        (Value::Array(shown), Value::Array(given)) => {
            assert_eq!(shown.len(), given.len(), "{place}");
            shown.iter().zip(given).for_each(|(shown, given)| check(shown, given, place));
        }
        _ => assert_eq!(
            std::mem::discriminant(shown),
            std::mem::discriminant(given),
            "{place}: {shown} {given}"
        ),
    }
}

#[test]
fn every_example_of_the_api_page_works_and_gets_the_reply_shown() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: there is no curl here");
        return;
    }
    let server = Server::with(|app| app.access.scripts = true);
    let page = std::fs::read_to_string(repository("docs/api.md")).unwrap();
    let mut printed = None;
    let mut compared = 0;
    for (language, text) in blocks(&page) {
        match (language, printed.take()) {
            ("sh", _) => {
                // Earlier examples may still hold keys, because the test does not pause between examples.
                server.request("DELETE", "/v1/input", b"");
                printed = Some(run(text, &server));
            }
            ("json", Some(printed)) => {
                assert_eq!(text.contains("about:blank"), printed.contains("about:blank"), "{printed}");
                let given: Value =
                    serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{text}: {printed}"));
                check(&serde_json::from_str(text).expect(text), &given, "");
                compared += 1;
            }
            _ => {}
        }
    }
    assert!(compared > 8, "{compared} replies were compared");

    let operations = sent_operations(&server);
    let shown: BTreeSet<String> = operations.iter().map(|operation| name(operation).to_owned()).collect();
    assert_eq!(shown, listed_operations(&server), "operations with an example, and all operations");
    send_as_methods(&server, &operations);
}

#[test]
fn the_methods_in_the_json_rpc_page_work_and_get_the_replies_shown() {
    let server = Server::start();
    let page = std::fs::read_to_string(repository("docs/json-rpc.md")).unwrap();
    let (_, section) = page.split_once("## Operations as methods\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    let messages: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect(line)).collect();
    let mut rpc = Rpc::open(&server);
    // The game sets up its memory in its first frames.
    rpc.result("wait", json!({"until": "u32[frame] > 10"}));
    let mut shown = BTreeSet::new();
    for pair in messages.chunks(2) {
        let [request, reply] = pair else { panic!("without a reply: {pair:?}") };
        let method = request["method"].as_str().unwrap();
        let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
        let given = rpc.result(method, params);
        check(&reply["result"], &given, method);
        // The frame counters differ from those on the page, but values must be equal.
        assert_eq!(reply["result"].get("value"), given.get("value"), "{method}");
        assert_eq!(request["id"], reply["id"], "{method}");
        shown.insert(method.to_owned());
    }
    let expected = ["evaluate", "freeze", "frozen", "read_text", "run", "unfreeze", "write_many"];
    assert_eq!(shown, expected.map(str::to_owned).into());
}
