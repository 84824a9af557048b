//! Tests that the script has the same table of operations as the protocol. The script runs in the Lua of a real core.

use std::collections::BTreeMap;
use std::sync::Arc;

use framewire_libmgba::{Core, Level};
use framewire_protocol::Effect;
use framewire_protocol::op::{OPS, OpInfo};
use framewire_script::SCRIPT;
use parking_lot::Mutex;

use super::support::DEMO;

/// With `testing`, the script does not start its server, and makes its table of operations public.
const SETTINGS: &str = r"
local before = {}
for name in pairs(_G) do before[name] = true end
framewire = {testing = true, before = before}
";
const PRINT: &str = r#"
for name in pairs(_G) do
  if not framewire.before[name] then console:log("global " .. name) end
end
for code, op in pairs(framewire.operations) do
  console:log(("%d %s %s %s %s"):format(code, op.name, op.effect, op.format, op.result))
end
console:log("version " .. framewire.version)
"#;

fn row(info: &OpInfo) -> String {
    let effect = match info.effect {
        Effect::Read => "read",
        Effect::Change => "change",
    };
    let format: String = info.args.iter().map(|arg| arg.kind.pack_format()).collect();
    format!("{} {effect} <{format} {}", info.name, info.result.name())
}

#[test]
fn the_script_has_the_operations_of_the_protocol_and_the_version_of_this_crate() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let mut core = Core::from_bytes(DEMO).expect("the demo game");
    let sink = Arc::clone(&lines);
    core.attach_scripts(move |level, line| {
        assert_eq!(level, Level::Info, "{line}");
        sink.lock().push(line.to_owned());
    })
    .expect("Lua");
    core.run_script_source("settings", SETTINGS).expect("settings");
    core.run_script_source("framewire.lua", SCRIPT).expect("the script");
    core.run_script_source("print", PRINT).expect("the table");

    let lines = lines.lock();
    let pairs = lines.iter().map(|line| line.split_once(' ').expect("a code and its row"));
    let (globals, rows): (Vec<_>, Vec<_>) = pairs.partition(|(key, _)| *key == "global");
    assert_eq!(globals, [("global", "framewire")]);
    let mut theirs: BTreeMap<&str, &str> = rows.into_iter().collect();
    assert_eq!(theirs.remove("version"), Some(env!("CARGO_PKG_VERSION")));
    let ours: Vec<(String, String)> = OPS.iter().map(|info| (info.code.to_string(), row(info))).collect();
    let ours: BTreeMap<&str, &str> = ours.iter().map(|(code, row)| (code.as_str(), row.as_str())).collect();
    assert_eq!(theirs, ours);
}
