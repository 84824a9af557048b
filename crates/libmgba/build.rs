//! Finds the installed libmgba and compiles the shim against its headers.
//!
//! Looked up in this order: `LIBMGBA_INCLUDE_DIR` (the folder that holds
//! `mgba/core/core.h`) and `LIBMGBA_LIB_DIR` (the folder that holds the
//! library), then the usual folders of the system. Debian ships no pkg-config
//! file for libmgba, so none is asked for.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;

const SOURCES: [&str; 10] = [
    "buffer.c",
    "clock.c",
    "core.c",
    "log.c",
    "media.c",
    "memory.c",
    "save.c",
    "script.c",
    "state.c",
    "text_buffer.c",
];
const HEADERS: [&str; 3] = ["fw.h", "internal.h", "text_buffer.h"];

/// What came or changed in mGBA 0.11, told apart by the headers' own words:
/// development snapshots all call themselves 0.11, so a version number would
/// not tell. (header, words in it, macro for the shim)
const FEATURES: [(&str, &str, &str); 4] = [
    ("mgba/core/core.h", "(*getGameInfo)", "FW_HAVE_GAME_INFO"),
    ("mgba/core/core.h", "(*currentVideoSize)", "FW_HAVE_CURRENT_VIDEO_SIZE"),
    ("mgba/core/core.h", "(*getAudioBuffer)", "FW_HAVE_AUDIO_BUFFER"),
    (
        "mgba/script/context.h",
        "mScriptContextTriggerCallback(struct mScriptContext*, const char* callback, struct",
        "FW_HAVE_CALLBACK_ARGUMENTS",
    ),
];

fn main() {
    println!("cargo::rerun-if-env-changed=LIBMGBA_INCLUDE_DIR");
    println!("cargo::rerun-if-env-changed=LIBMGBA_LIB_DIR");
    for file in SOURCES.iter().chain(&HEADERS) {
        println!("cargo::rerun-if-changed=shim/{file}");
    }

    let include = find_headers();
    println!("cargo::rerun-if-changed={}", include.join("mgba/core/core.h").display());

    let mut shim = cc::Build::new();
    shim.std("gnu11").warnings(true).extra_warnings(true);
    // A system folder goes without saying, and naming it can upset its order.
    if include != Path::new("/usr/include") {
        shim.include(&include);
    }
    for (header, words, name) in FEATURES {
        let text = fs::read_to_string(include.join(header)).unwrap_or_default();
        if text.contains(words) {
            shim.define(name, None);
        }
    }
    shim.files(SOURCES.map(|file| format!("shim/{file}")));
    shim.compile("framewire_mgba_shim");

    if let Some(dir) = env::var_os("LIBMGBA_LIB_DIR") {
        println!("cargo::rustc-link-search=native={}", dir.display());
    }
    println!("cargo::rustc-link-lib=mgba");
}

fn find_headers() -> PathBuf {
    let candidates: Vec<PathBuf> = match env::var_os("LIBMGBA_INCLUDE_DIR") {
        Some(dir) => vec![dir.into()],
        None => ["/usr/include", "/usr/local/include", "/opt/homebrew/include"].map(PathBuf::from).into(),
    };
    for dir in &candidates {
        if dir.join("mgba/core/core.h").is_file() && dir.join("mgba/flags.h").is_file() {
            return dir.clone();
        }
    }
    let looked: Vec<_> = candidates.iter().map(|d| d.display().to_string()).collect();
    println!(
        "cargo::error=the headers of libmgba (mGBA 0.10.1 or newer) were not found in {}",
        looked.join(", ")
    );
    println!(
        "cargo::error=on Debian or Ubuntu: apt install libmgba-dev (`make setup` does it); \
         elsewhere set LIBMGBA_INCLUDE_DIR and LIBMGBA_LIB_DIR"
    );
    exit(1)
}
