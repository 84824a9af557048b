//! Gets libmgba and compiles the shim against its headers.
//!
//! `tools/libmgba.sh` builds libmgba from source, once, as a static library. With the feature `system-libmgba`, the
//! installed library is used. Its headers are in `LIBMGBA_INCLUDE_DIR` (the folder that holds `mgba/core/core.h`) or,
//! if that is not set, in one of the usual folders of the system. The linker searches for the library in
//! `LIBMGBA_LIB_DIR`, if that is set, and in its own folders. Debian has no pkg-config file for libmgba, so pkg-config
//! is not used.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};

/// The script that builds libmgba, as a path from this crate's folder.
const SCRIPT: &str = "../../tools/libmgba.sh";
/// The variables that [`SCRIPT`] reads.
const SCRIPT_VARIABLES: [&str; 4] = ["FRAMEWIRE_LIBMGBA_DIR", "FRAMEWIRE_LIBMGBA_SOURCE", "CC", "CFLAGS"];

/// Features that are new or different in mGBA 0.11, as (header, words in it, macro for the shim). They are detected by
/// words in the headers: all development snapshots call themselves 0.11, so the version is not enough.
const FEATURES: [(&str, &str, &str); 5] = [
    ("mgba/core/core.h", "(*getGameInfo)", "FW_HAVE_GAME_INFO"),
    ("mgba/core/core.h", "(*currentVideoSize)", "FW_HAVE_CURRENT_VIDEO_SIZE"),
    ("mgba/core/core.h", "(*getAudioBuffer)", "FW_HAVE_AUDIO_BUFFER"),
    ("mgba/core/interface.h", "uint32_t sinceLast", "FW_HAVE_RUMBLE_TIME"),
    (
        "mgba/script/context.h",
        "mScriptContextTriggerCallback(struct mScriptContext*, const char* callback, struct",
        "FW_HAVE_CALLBACK_ARGUMENTS",
    ),
];

fn main() {
    println!("cargo::rerun-if-changed=shim");
    // `--all-features` turns both features on. Then libmgba is built from source.
    let system = is_on("SYSTEM_LIBMGBA") && !is_on("SOURCE_LIBMGBA");
    let include = if system { find_headers() } else { build_library().join("include") };
    println!("cargo::rerun-if-changed={}", include.join("mgba/core/core.h").display());
    compile_shim(&include);
    let built = if system { "the installed library".to_owned() } else { how_it_was_built(&include) };
    println!("cargo::rustc-env=FRAMEWIRE_LIBMGBA_BUILD={built}");
    // libmgba must be linked after the shim, which needs it.
    if system {
        println!("cargo::rustc-link-lib=mgba");
    } else {
        println!("cargo::rustc-link-lib=static=framewire_mgba");
    }
}

fn is_on(feature: &str) -> bool {
    env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
}

fn compile_shim(include: &Path) {
    let mut shim = cc::Build::new();
    shim.std("gnu11").warnings(true).extra_warnings(true);
    // Tests run many frames, and part of each frame's time is spent in the shim.
    if env::var("OPT_LEVEL").is_ok_and(|level| level == "0") {
        shim.opt_level(2);
    }
    // The compiler searches this folder anyway. Adding it could change the order of the search.
    if include != Path::new("/usr/include") {
        shim.include(include);
    }
    for (header, words, name) in FEATURES {
        let text = fs::read_to_string(include.join(header)).unwrap_or_default();
        if text.contains(words) {
            shim.define(name, None);
        }
    }
    let files = fs::read_dir("shim").unwrap_or_else(|error| fail(&format!("shim cannot be read: {error}")));
    let mut sources: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    sources.retain(|path| path.extension().is_some_and(|ending| ending == "c"));
    sources.sort();
    shim.files(sources);
    shim.compile("framewire_mgba_shim");
}

/// Builds libmgba if it was not built before. Returns the folder of the library and its headers.
fn build_library() -> PathBuf {
    println!("cargo::rerun-if-changed={SCRIPT}");
    // The script runs these programs to record a profile, with which the compiler optimises libmgba.
    println!("cargo::rerun-if-changed=programs");
    for name in SCRIPT_VARIABLES {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let run = Command::new(SCRIPT).stderr(Stdio::inherit()).output();
    let run = run.unwrap_or_else(|error| fail(&format!("{SCRIPT} could not be run: {error}")));
    if !run.status.success() {
        fail(&format!("{SCRIPT} could not build libmgba; its messages are below"));
    }
    let folder = PathBuf::from(String::from_utf8_lossy(&run.stdout).trim_end());
    println!("cargo::rustc-link-search=native={}", folder.join("lib").display());
    folder
}

/// The script's description of the library. It is in the file `built`, next to the folder of the headers.
fn how_it_was_built(include: &Path) -> String {
    let file = include.with_file_name("built");
    println!("cargo::rerun-if-changed={}", file.display());
    let text = fs::read_to_string(&file)
        .unwrap_or_else(|error| fail(&format!("{} cannot be read: {error}", file.display())));
    text.trim_end().to_owned()
}

/// The folder of the installed library's headers.
fn find_headers() -> PathBuf {
    println!("cargo::rerun-if-env-changed=LIBMGBA_INCLUDE_DIR");
    println!("cargo::rerun-if-env-changed=LIBMGBA_LIB_DIR");
    if let Some(dir) = env::var_os("LIBMGBA_LIB_DIR") {
        println!("cargo::rustc-link-search=native={}", dir.display());
    }
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
    fail(&format!(
        "the headers of libmgba (mGBA 0.10.1 or newer) were not found in {}. On Debian or Ubuntu: \
         apt install libmgba-dev; elsewhere set LIBMGBA_INCLUDE_DIR and LIBMGBA_LIB_DIR; or build without the \
         feature system-libmgba",
        looked.join(", ")
    ))
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1)
}
