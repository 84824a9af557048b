//! Joins the parts in `lua/src` into `framewire.lua`. Each part becomes a function that runs once; `require` returns
//! its result.

use std::path::Path;
use std::{env, fs, io};

/// The parts. Each comes after the parts that it requires.
const PARTS: &[&[&str]] = &[
    // Parts that many other parts use.
    &["version", "ticks", "limits", "stopwatch", "log", "refusal", "eventqueue"],
    // Receiving and sending the bytes of one client.
    &["inbox", "connection"],
    // Parts that operations use.
    &["arguments", "holds", "timelines", "files"],
    // The emulated console.
    &["cartridgeram", "videoram", "workram", "memory", "code", "game", "emulator", "frozen"],
    // The operations.
    &["lockstep", "throttle", "watches", "runs", "evaluate", "optable", "operations", "readahead"],
    // The messages of clients.
    &["messages", "frames", "requests", "keyed", "sessions"],
    // Serving the clients.
    &["turn", "clients", "listener", "events", "steering", "window", "server"],
];

const NOTE: &str = "-- This file is built from the parts in lua/src: change the parts, not this file.\n";
const REQUIRE: &str = "local parts = {}\n\nlocal function require(name)\n  return parts[name]\nend\n";

fn main() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lua/src");
    println!("cargo::rerun-if-changed={}", source.display());
    let out = env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR");
    let script = bundle(&source).expect("every part in PARTS is a file in lua/src");
    fs::write(Path::new(&out).join("framewire.lua"), script).expect("OUT_DIR can be written to");
}

fn bundle(source: &Path) -> io::Result<String> {
    let part = |name: &str| fs::read_to_string(source.join(name).with_extension("lua"));
    let mut sections = vec![part("head")?, NOTE.to_owned(), REQUIRE.to_owned()];
    for name in PARTS.iter().copied().flatten() {
        sections.push(title(name));
        sections.push(format!("parts.{name} = (function()\n{}end)()\n", indented(&part(name)?)));
    }
    sections.push(title("main"));
    sections.push(part("main")?);
    Ok(sections.join("\n"))
}

fn title(name: &str) -> String {
    format!("{:-<120}\n", format!("---- {name} "))
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") };
    text.lines().map(line).collect()
}
