//! The files that are generated from the table of operations. They are in git because Lua's tests read them without Cargo.
//!
//! `make generate` writes them. Without it, the test fails if one of them is not what the table gives.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use framewire_protocol::op::{ArgInfo, ArgKind, Effect, OPS, OpInfo, ResultKind};

#[test]
fn generated_files_are_what_the_table_gives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let write = std::env::var_os("FRAMEWIRE_GENERATE").is_some();
    let files = [
        ("lua/src/optable.lua", lua()),
        ("luajit/framewire/emulator/operations.lua", luajit()),
        ("docs/operations.md", document()),
    ];
    for (name, text) in files {
        let path = root.join(name);
        if write {
            fs::write(&path, &text).unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{name} is not what crates/protocol/src/op/table.rs gives; run `make generate`"
        );
    }
}

const NOTE: &str =
    "Generated from crates/protocol/src/op/table.rs by `make generate`: change the table, not this file.";

/// The script's table.
fn lua() -> String {
    let mut text = format!(
        "-- The operations: codes, names, results, and arguments with their types and, if they are fewer than the type has,\n\
         -- the numbers that are accepted.\n-- {NOTE}\n\nreturn {{\n"
    );
    for info in OPS {
        let format: String = info.args.iter().map(|arg| arg.kind.pack_format()).collect();
        let args: Vec<String> = info.args.iter().map(lua_argument).collect();
        let marker = info.marker.map_or(String::new(), |marker| format!(", message = \"{marker}\""));
        writeln!(
            text,
            "  {{ code = {:#04x}, name = \"{}\", change = {}, result = \"{}\"{marker},\n    format = \"<{format}\", \
             arguments = {} }},",
            info.code,
            info.name,
            info.effect == Effect::Change,
            result(info.result),
            lua_list(&args),
        )
        .unwrap();
    }
    text + "}\n"
}

fn lua_list(items: &[String]) -> String {
    if items.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", items.join(", ")) }
}

fn lua_argument(arg: &ArgInfo) -> String {
    // A text that mGBA takes as a C string may hold no NUL, and a path may hold commas in a text message.
    let kind = match (arg.kind, arg.name) {
        (ArgKind::Text, "path") => "path",
        (ArgKind::Text, "message") => "text",
        (ArgKind::Text, _) => "name",
        (kind, _) => kind.name(),
    };
    match narrower(arg) {
        Some((low, high)) => format!("{{ \"{}\", \"{kind}\", {low}, {high} }}", arg.name),
        None => format!("{{ \"{}\", \"{kind}\" }}", arg.name),
    }
}

/// The accepted numbers, if they are fewer than the type has.
fn narrower(arg: &ArgInfo) -> Option<(i64, i64)> {
    let all = match arg.kind {
        ArgKind::U8 => (0, u8::MAX.into()),
        ArgKind::U16 => (0, u16::MAX.into()),
        ArgKind::U32 => (0, u32::MAX.into()),
        ArgKind::I32 => (i32::MIN.into(), i32::MAX.into()),
        ArgKind::Bool | ArgKind::Text | ArgKind::Bytes => return None,
    };
    arg.range.filter(|range| *range != all)
}

fn result(kind: ResultKind) -> &'static str {
    match kind {
        ResultKind::None => "none",
        ResultKind::Bool => "bool",
        ResultKind::Int => "int",
        ResultKind::Text => "text",
        ResultKind::Bytes => "bytes",
        ResultKind::Names => "names",
    }
}

/// The LuaJIT library's table.
fn luajit() -> String {
    let mut text = format!(
        "--- The operations: their codes, and the types of their arguments in order.\n-- {NOTE}\n\nreturn {{\n"
    );
    for info in OPS {
        let types: Vec<String> = info.args.iter().map(|arg| format!("\"{}\"", arg.kind.name())).collect();
        let types = lua_list(&types);
        writeln!(text, "  {} = {{ code = {:#04x}, types = {types} }},", info.name, info.code).unwrap();
    }
    text + "}\n"
}

/// The reference for people.
fn document() -> String {
    let mut text = format!(
        "# Operations\n\n<!-- {NOTE} -->\n\n\
         An operation is one thing that a client asks of an emulator. `POST /v1/batch` takes operations by name ([api.md](api.md));\n\
         a link sends their codes ([protocol.md](protocol.md)). An operation that *reads* may be repeated freely; one that\n\
         *changes* something is performed exactly once.\n\n\
         Numbers are unsigned (`u8`, `u16`, `u32`) or signed (`i32`). `watch` and `unwatch` are for links only. `run`\n\
         and `evaluate` are written as JSON in batches ([api.md](api.md#runs)), and as bytes by a link, and so are `freeze`,\n\
         `unfreeze` and `frozen`. Batches write `read_at` and `write_at` as `read` and `write`, and `append_keys` as `input`.\n\n\
         | code | operation | effect | arguments | result | what it does |\n| --- | --- | --- | --- | --- | --- |\n"
    );
    for info in OPS {
        let effect = match info.effect {
            Effect::Read => "reads",
            Effect::Change => "changes",
        };
        let args: Vec<String> = info.args.iter().map(documented).collect();
        let result = result(info.result);
        let OpInfo { code, name, doc, .. } = info;
        writeln!(text, "| {code:#04x} | `{name}` | {effect} | {} | {result} | {doc} |", args.join("<br>"))
            .unwrap();
    }
    text
}

fn documented(arg: &ArgInfo) -> String {
    let range = narrower(arg).map_or(String::new(), |(low, high)| format!(" from {low} to {high}"));
    format!("`{}` ({}{range}): {}", arg.name, arg.kind.name(), arg.doc)
}
