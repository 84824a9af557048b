//! The examples of `docs/api.md` are run as they stand there, by curl.

use std::process::Command;

use serde_json::Value;

use crate::support::{Server, repository};

/// The blocks of code in the order of the page: their language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    page.split("\n```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap()).collect()
}

/// Runs commands in a shell. Returns what the last of them printed; the others must not be refused.
fn run(commands: &str, server: &Server) -> String {
    let commands = commands.replace("127.0.0.1:5000", &server.address.to_string());
    let last = commands.rfind("\ncurl ").map_or(0, |at| at + 1);
    let (others, last) = commands.split_at(last);
    let script = format!("{{ {others}:; }} >&2\n{last}");
    let curl = "set -e; curl() { command curl --silent --show-error \"$@\"; }\n";
    let output = Command::new("sh").args(["-c", &format!("{curl}{script}")]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !err.contains("about:blank"), "{script}\n{out}\n{err}");
    out.lines().last().unwrap_or_default().to_owned()
}

/// Whether what the page shows has the same fields as what came back.
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
fn every_example_works_and_is_answered_as_shown() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: there is no curl here");
        return;
    }
    let server = Server::start();
    let page = std::fs::read_to_string(repository("docs/api.md")).unwrap();
    let mut printed = None;
    let mut compared = 0;
    for (language, text) in blocks(&page) {
        match (language, printed.take()) {
            ("sh", _) => {
                // Nobody reads as fast as the examples are run here.
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
}
