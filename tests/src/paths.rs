//! Where things are in this checkout.

use std::path::{Path, PathBuf};

/// The checkout's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The demo game.
#[must_use]
pub fn rom() -> PathBuf {
    root().join("rom/framewire-demo.gba")
}

/// The script that a user loads into mGBA.
#[must_use]
pub fn script() -> PathBuf {
    root().join("lua/framewire.lua")
}

/// The folder that cargo builds this profile into, such as `target/debug`: the running test lies in its `deps`.
#[must_use]
pub fn profile_dir() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let deps = test.parent().expect("a program lies in a folder");
    deps.parent().expect("cargo keeps tests in <profile>/deps").to_path_buf()
}
