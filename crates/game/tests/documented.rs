//! Checks the game files in the documentation and in the Python package.

use std::fs;
use std::path::{Path, PathBuf};

use framewire_game::GameFile;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Checks a game file as if it were in the folder of the demo game.
fn check(text: &str) -> GameFile {
    GameFile::parse(&root().join("rom").join("game.toml"), text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_examples_of_the_documentation_are_accepted() {
    let page = fs::read_to_string(root().join("docs/game-file.md")).unwrap();
    let mut blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole = blocks.next().unwrap();
    assert_eq!(check(whole).scenarios.len(), 1);
    // The others are parts of a scenario.
    let parts: Vec<&str> = blocks.collect();
    assert!(!parts.is_empty());
    for part in parts {
        check(&format!(
            "[game]\nname = \"x\"\nsymbols = [\"memory-map.toml\"]\n[scenario.numbers]\nactions = [\".\"]\n{part}"
        ));
    }
    // The page shows an error that begins with the name of the file; so do the real errors.
    let error =
        GameFile::parse(Path::new("demo.toml"), &whole.replace("[\"memory-map.toml\"]", "[]")).unwrap_err();
    assert!(error.to_string().starts_with("demo.toml:"), "{error}");
}

#[test]
fn the_game_file_of_the_python_package_is_accepted() {
    let file = check(&fs::read_to_string(root().join("python/framewire/data/demo.toml")).unwrap());
    assert_eq!(file.scenarios.keys().collect::<Vec<_>>(), ["memory", "pixels"]);
}
