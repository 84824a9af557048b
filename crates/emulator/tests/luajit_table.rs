//! LuaJIT's table of operations is the protocol's.

use std::collections::BTreeSet;
use std::process::Command;

use framewire_protocol::op::OPS;

const PRINT: &str = "
for name, operation in pairs(require 'framewire.emulator.operations') do
  print(operation.code, name, table.concat(operation.types, ' '))
end";

#[test]
fn luajit_has_the_protocols_table() {
    let output = Command::new("luajit")
        .args(["-e", PRINT])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../luajit"))
        .output()
        .expect("LuaJIT on the path (apt-get install luajit)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let theirs: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let ours: BTreeSet<String> = OPS
        .iter()
        .map(|info| {
            let kinds: Vec<&str> = info.args.iter().map(|arg| arg.kind.name()).collect();
            format!("{}\t{}\t{}", info.code, info.name, kinds.join(" "))
        })
        .collect();
    assert_eq!(theirs, ours);
}
