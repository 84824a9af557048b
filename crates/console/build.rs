//! Makes the page's files out of `web`: TypeScript loses its types and becomes what browsers run, the rest stays as it
//! is. The result is a table in Rust, in the build folder; nothing of it is committed.

#[path = "build/erase.rs"]
mod erase;

use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Where the page asks its browser to fetch all modules at once, rather than one import after the other.
const PRELOADS: &str = "<!-- modules -->";

/// One file as it is served.
struct File {
    /// Under `/console/`.
    path: String,
    content_type: &'static str,
    bytes: Vec<u8>,
}

fn main() {
    let web = Path::new("web");
    println!("cargo::rerun-if-changed=web");
    println!("cargo::rerun-if-changed=build");
    let mut sources = Vec::new();
    list(web, &mut sources);
    sources.sort();
    let mut files: Vec<File> = sources.iter().map(|source| file(web, source)).collect();

    let modules: String = files
        .iter()
        .filter(|file| file.path.ends_with(".js"))
        .map(|file| format!("<link rel=\"modulepreload\" href=\"/console/{}\">\n", file.path))
        .collect();
    let page = files.iter_mut().find(|file| file.path == "index.html").expect("web/index.html is the page");
    let text = String::from_utf8(std::mem::take(&mut page.bytes)).expect("index.html is text");
    assert!(text.contains(PRELOADS), "index.html says where its modules are named: {PRELOADS}");
    page.bytes = text.replace(PRELOADS, modules.trim_end()).into_bytes();

    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write_table(&files, &out);
}

fn list(folder: &Path, sources: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("web can be read") {
        let path = entry.expect("web can be read").path();
        match path.is_dir() {
            true => list(&path, sources),
            false => sources.push(path),
        }
    }
}

fn file(web: &Path, source: &Path) -> File {
    let name = source.strip_prefix(web).expect("it was found there").to_str().expect("names are plain");
    let name = name.replace('\\', "/");
    let bytes = fs::read(source).expect("a file of web can be read");
    match source.extension().and_then(|extension| extension.to_str()) {
        Some("ts") => {
            let text = String::from_utf8(bytes).expect("TypeScript is text");
            let code = erase::types(&name, &text).unwrap_or_else(|errors| panic!("web/{name}: {errors}"));
            File {
                path: name.replace(".ts", ".js"),
                content_type: "text/javascript; charset=utf-8",
                bytes: code.into(),
            }
        }
        Some("html") => File { path: name, content_type: "text/html; charset=utf-8", bytes },
        Some("css") => File { path: name, content_type: "text/css; charset=utf-8", bytes },
        Some("svg") => File { path: name, content_type: "image/svg+xml", bytes },
        _ => panic!("web/{name}: build.rs does not know what type it is served as"),
    }
}

/// `assets.rs` with the bytes of each file beside it.
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
