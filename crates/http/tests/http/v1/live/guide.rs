//! Runs the examples of docs/watches.md that press keys and wait for the effect.

use std::process::Command;

use serde_json::json;

use super::client::Rpc;
use super::script::connected;
use crate::support::{Server, repository};
use crate::v1::posted;

/// How many times each example without a watch runs. If the wait came after the tap, most runs would miss the
/// condition.
const ROUNDS: usize = 10;
/// How many times the example with a watch runs. It takes longer, because curl ends only at the next line of the
/// stream.
const WATCHES: usize = 2;

/// A code block in this language under the heading "Press keys and wait for the result". `number` counts from 0.
fn example(language: &str, number: usize) -> String {
    let page = std::fs::read_to_string(repository("docs/watches.md")).unwrap();
    let (_, section) = page.split_once("### Press keys and wait").unwrap();
    let block = section.split(&format!("```{language}\n")).nth(number + 1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

/// Waits until the game reads the keys and sees none.
fn wait_until_no_key_is_seen(server: &Server) {
    let waited = posted(server, "/v1/wait", &json!({"until": "u32[frame] > 10 and held == 0"}));
    assert_eq!(waited["held"], true);
}

fn wait_and_tap(server: &Server) {
    let mut rpc = Rpc::open(server);
    for round in 0..ROUNDS {
        wait_until_no_key_is_seen(server);
        rpc.send(example("json", 0));
        let replies = rpc.receive().unwrap();
        assert_eq!(replies[0]["result"]["held"], true, "{round}: {replies}");
        let pressed = &replies[1]["result"]["value"]["first"];
        assert!(replies[0]["result"]["frame"].as_u64() >= pressed.as_u64(), "{round}: {replies}");
    }
}

/// Runs a shell example, and returns what it prints.
fn printed(server: &Server, number: usize) -> String {
    let script = example("sh", number).replace("127.0.0.1:5000", &server.address.to_string());
    let output = Command::new("sh").args(["-e", "-c", &script]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run(server: &Server) {
    for round in 0..ROUNDS {
        wait_until_no_key_is_seen(server);
        let done: serde_json::Value = serde_json::from_str(&printed(server, 0)).unwrap();
        assert_eq!(done["why"], "condition", "{round}: {done}");
    }
}

fn watch_and_tap(server: &Server) {
    for round in 0..WATCHES {
        wait_until_no_key_is_seen(server);
        let said = printed(server, 1);
        assert!(said.contains("\"held & 1\":{\"new\":1,\"old\":0}"), "{round}: {said}");
    }
}

#[test]
fn the_examples_notice_a_condition_that_holds_for_one_frame() {
    let server = Server::start();
    assert_eq!(server.send("POST", "/v1/speed", &json!({"speed": "unlimited"})).status, 200);
    run(&server);
    wait_and_tap(&server);
    watch_and_tap(&server);
}

#[test]
fn the_examples_notice_a_condition_that_holds_for_one_frame_in_an_attached_mgba() {
    let (_core, server) = connected();
    run(&server);
    wait_and_tap(&server);
    watch_and_tap(&server);
}
