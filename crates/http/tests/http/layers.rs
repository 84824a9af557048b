//! Checks that no module of this crate imports from a layer above its own. ARCHITECTURE.md describes the layers.

use std::fs;
use std::path::Path;

/// The modules of each layer, the lowest first.
const LAYERS: [&[&str]; 8] = [
    &["compressed", "failure", "headers", "limits", "metrics", "problem"],
    &["access", "transport"],
    &["operations", "reading"],
    &["feeds", "idempotency", "pictures", "sockets", "storage"],
    &["routing"],
    &["compat", "v1"],
    &["console", "docs", "plain", "rpc"],
    &["app"],
];

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|modules| modules.contains(&module));
    found.unwrap_or_else(|| panic!("the module {module} is in no layer; add it here and in ARCHITECTURE.md"))
}

/// Calls `check` with the path and the text of each source file.
fn visit(folder: &Path, check: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, check);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            check(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn no_module_imports_from_a_layer_above_its_own() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    visit(&source, &mut |path, text| {
        let inside = path.strip_prefix(&source).unwrap();
        let first = inside.iter().next().unwrap().to_str().unwrap();
        let module = first.trim_end_matches(".rs");
        if module == "lib" {
            return;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            for rest in line.split("crate::").skip(1) {
                let names = rest.strip_prefix('{').map_or(rest, |all| all.split('}').next().unwrap_or(all));
                let is_list = rest.starts_with('{');
                for name in names.split(", ").take(if is_list { usize::MAX } else { 1 }) {
                    let used: String = name
                        .chars()
                        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                        .collect();
                    if !used.is_empty() && layer(&used) > layer(module) {
                        wrong.push(format!("{}:{}: {}", inside.display(), number + 1, line.trim()));
                    }
                }
            }
        }
    });
    assert!(wrong.is_empty(), "imports from a layer above:\n{}", wrong.join("\n"));
}
