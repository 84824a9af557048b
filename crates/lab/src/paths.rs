//! Paths in this checkout.

use std::path::{Path, PathBuf};

/// The checkout's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The demo game.
#[must_use]
pub fn rom() -> PathBuf {
    root().join("rom/framewire-demo.gba")
}

/// The script that a user loads into mGBA.
#[must_use]
pub fn script() -> PathBuf {
    framewire_script::PATH.into()
}

/// The folder of this build profile, such as `target/debug`. The running program or test is in it or in its subfolder
/// `deps`.
#[must_use]
pub fn profile_dir() -> PathBuf {
    let program = std::env::current_exe().expect("a running program has a path");
    let folder = program.parent().expect("a program is in a folder");
    let folder = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    folder.expect("cargo keeps tests in <profile>/deps").to_path_buf()
}
