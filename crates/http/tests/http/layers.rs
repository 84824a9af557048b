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

/// Returns the modules that an import names. `rest` is the text after `crate::`. It begins with one path, as in
/// `crate::name::Item`, or with a list, as in `crate::{one::Item, other::{Item, Another}}`.
fn modules(rest: &str) -> Vec<&str> {
    let word_end = |path: &'_ str| {
        let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        end.unwrap_or(path.len())
    };
    let Some(list) = rest.strip_prefix('{') else { return vec![&rest[..word_end(rest)]] };
    let (mut depth, mut starts) = (0, vec![0]);
    for (index, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => starts.push(index + 1),
            _ => {}
        }
    }
    let paths = starts.into_iter().map(|start| list[start..].trim_start());
    paths.map(|path| &path[..word_end(path)]).collect()
}

#[test]
fn modules_in_a_list_on_several_lines_are_found() {
    assert_eq!(modules("one::Item;"), ["one"]);
    assert_eq!(modules("{one::Item, other};"), ["one", "other"]);
    assert_eq!(
        modules("{\n    one::{Item, Another},\n    two_words,\n};\nuse x::{y, z};"),
        ["one", "two_words", ""]
    );
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
        let without_comment = |line: &'_ str| line.split("//").next().unwrap_or_default().to_owned();
        let code = code.lines().map(without_comment).collect::<Vec<String>>().join("\n");
        for (position, path) in code.match_indices("crate::") {
            for used in modules(&code[position + path.len()..]) {
                if !used.is_empty() && layer(used) > layer(module) {
                    let number = code[..position].matches('\n').count() + 1;
                    wrong.push(format!("{}:{number}: {used}", inside.display()));
                }
            }
        }
    });
    assert!(wrong.is_empty(), "imports from a layer above:\n{}", wrong.join("\n"));
}
