//! Generates files from the table of operations. They are in git because the Lua tests read them without Cargo.
//!
//! `make generate` runs this test to write the files. Otherwise, the test fails if one of them does not match the
//! table.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use framewire_protocol::op::{ArgInfo, ArgKind, Effect, OPS, OpInfo};

#[test]
fn generated_files_match_the_table() {
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
        assert!(found == text, "{name} does not match crates/protocol/src/op/table.rs; run `make generate`");
    }
}

const NOTE: &str =
    "Generated from crates/protocol/src/op/table.rs by `make generate`: change the table, not this file.";

/// The script's table.
fn lua() -> String {
    let mut text = format!(
        "-- The operations: codes, names, results, and arguments with their types. If an argument does not accept all\n\
         -- numbers of its type, its smallest and its largest number follow.\n-- {NOTE}\n\nreturn {{\n"
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
            info.result.name(),
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
    // The script checks these kinds of texts in different ways. A text that mGBA takes as a C string must not contain a
    // NUL. In a text message, a path and a logged message may contain commas, but a name may not.
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

/// The smallest and the largest accepted number, if the argument does not accept all numbers of its type.
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
         *changes* something is never performed twice.\n\n\
         Numbers are unsigned (`u8`, `u16`, `u32`) or signed (`i32`). `watch` and `unwatch` are for links only.\n\
         `script` is not accepted in batches; it is the route `POST /v1/script` ([api.md](api.md#scripts)). In\n\
         batches, `run`, `evaluate`, `freeze`, `unfreeze` and `frozen` have JSON forms ([api.md](api.md#runs)); a\n\
         link sends bytes. Three operations have other names in batches: `read_at` is `read`, `write_at` is `write`,\n\
         and `append_keys` is `input` with `append`.\n\n\
         | code | operation | effect | arguments | result | what it does |\n| --- | --- | --- | --- | --- | --- |\n"
    );
    for info in OPS {
        let effect = match info.effect {
            Effect::Read => "reads",
            Effect::Change => "changes",
        };
        let args: Vec<String> = info.args.iter().map(documented).collect();
        let result = info.result.name();
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
