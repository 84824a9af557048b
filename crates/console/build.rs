//! Lists the files of `web` in a Rust table, in the build folder. The files are served as they are; only the page itself
//! gains a line for each module.

use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Where `index.html` gets the lines that make a browser fetch all modules at once, rather than one import after the other.
const PRELOADS: &str = "<!-- modules -->";

/// One file as it is served.
struct File {
    /// Its path under `/console/`.
    path: String,
    content_type: &'static str,
    bytes: Vec<u8>,
}

fn main() {
    let web = Path::new("web");
    println!("cargo::rerun-if-changed=web");
    let mut sources = Vec::new();
    list(web, &mut sources);
    sources.sort();
    let mut files: Vec<File> = sources.iter().map(|source| read(web, source)).collect();
    preload_modules(&mut files);
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write_table(&files, &out);
}

fn list(folder: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("web can be read") {
        let path = entry.expect("web can be read").path();
        if path.is_dir() {
            list(&path, sources);
        } else {
            sources.push(path);
        }
    }
}

fn read(web: &Path, source: &Path) -> File {
    let path = source.strip_prefix(web).expect("the source is in web").to_str().expect("names are ASCII");
    let content_type = match source.extension().and_then(|extension| extension.to_str()) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => panic!("web/{path}: build.rs has no content type for it"),
    };
    let bytes = fs::read(source).expect("a file of web can be read");
    File { path: path.replace('\\', "/"), content_type, bytes }
}

fn preload_modules(files: &mut [File]) {
    let mut preloads = String::new();
    for file in files.iter().filter(|file| file.path.ends_with(".js")) {
        writeln!(preloads, "<link rel=\"modulepreload\" href=\"/console/{}\">", file.path)
            .expect("a string can be written");
    }
    let page = files.iter_mut().find(|file| file.path == "index.html").expect("web/index.html is the page");
    let text = str::from_utf8(&page.bytes).expect("index.html is text");
    assert!(text.contains(PRELOADS), "index.html lacks {PRELOADS}");
    page.bytes = text.replace(PRELOADS, preloads.trim_end()).into_bytes();
}

/// Writes `assets.rs`, and the bytes of each file next to it.
fn write_table(files: &[File], out: &Path) {
    let mut table = String::from("&[\n");
    for (number, File { path, content_type, bytes }) in files.iter().enumerate() {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let etag = format!("\"{:016x}\"", hasher.finish());
        fs::write(out.join(number.to_string()), bytes).expect("the build folder can be written");
        writeln!(
            table,
            "Asset {{ path: {path:?}, content_type: {content_type:?}, etag: {etag:?}, bytes: include_bytes!(\"{number}\") }},"
        )
        .expect("a string can be written");
    }
    table.push(']');
    fs::write(out.join("assets.rs"), table).expect("the build folder can be written");
}
