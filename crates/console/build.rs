//! Writes the files of the console page to the build folder, and a Rust table that lists them: the page, its two
//! scripts and its style sheet, the script `code.js`, and pictures. The names of the page's scripts and style sheet
//! contain a hash of their contents, so that browsers can cache them.

#[path = "build/bundle.rs"]
mod bundle;

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use bundle::{Scripts, Sources};

/// The module that starts the page.
const ENTRY: &str = "main.js";
/// The module that the page `/docs` also uses. It is served under its own name.
const LIBRARY: &str = "code.js";

/// A file in the form in which it is served.
struct File {
    /// Its path under `/console/`.
    path: String,
    content_type: &'static str,
    bytes: Vec<u8>,
    /// Whether the path contains a hash of the contents. Then a new version of the file has a new path.
    immutable: bool,
}

fn main() {
    let web = Path::new("web");
    println!("cargo::rerun-if-changed=web");
    println!("cargo::rerun-if-changed=build");
    let mut sources = Sources::new();
    read_folder(web, web, &mut sources);
    let files = files(&sources).unwrap_or_else(|problem| panic!("web/{problem}"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write_table(&files, &out);
}

/// Adds all files of `folder`, which is `web` or a folder in it, to `sources`.
fn read_folder(web: &Path, folder: &Path, sources: &mut Sources) {
    for entry in fs::read_dir(folder).expect("web can be read") {
        let path = entry.expect("web can be read").path();
        if path.is_dir() {
            read_folder(web, &path, sources);
            continue;
        }
        let name = path.strip_prefix(web).expect("the file is in web").to_str().expect("names are ASCII");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("web/{name}: {error}"));
        sources.insert(name.replace('\\', "/"), text);
    }
}

fn files(sources: &Sources) -> Result<Vec<File>, String> {
    let page = sources.get("index.html").ok_or("index.html is not there")?;
    let styles: Vec<&str> = page.lines().filter_map(linked_style).collect();
    let unused = sources.keys().find(|name| name.ends_with(".css") && !styles.contains(&name.as_str()));
    if let Some(name) = unused {
        return Err(format!("{name}: index.html does not link it"));
    }
    let style = bundle::join_styles(sources, styles)?;
    let scripts = Scripts::join(sources, ENTRY)?;
    let style = File::hashed("style", "css", "text/css; charset=utf-8", style);
    let script = |name: &str, text: String| File::hashed(name, "js", "text/javascript; charset=utf-8", text);
    // The first script loads the second one, `later`, when a module of the second one is first needed. So the first
    // script contains the path of the second one.
    let later = script("later", scripts.later.clone());
    let app = script("app", scripts.first(&format!("./{}", later.path)));
    let mut text = String::new();
    // The line that loads the entry module becomes the links to the joined style sheet and to the first script. The
    // lines that link the separate style sheets are left out.
    for line in page.lines() {
        if line.contains(&format!("\"/console/{ENTRY}\"")) {
            writeln!(text, "<link rel=\"stylesheet\" href=\"/console/{}\">", style.path)
                .expect("writing to a string never fails");
            writeln!(text, "<script type=\"module\" src=\"/console/{}\"></script>", app.path)
                .expect("writing to a string never fails");
        } else if linked_style(line).is_none() {
            text.push_str(line);
            text.push('\n');
        }
    }
    if !text.contains(&app.path) {
        return Err(format!("index.html: no line loads /console/{ENTRY}"));
    }
    let page = File::named("index.html", "text/html; charset=utf-8", text);
    let library = bundle::join_library(sources, LIBRARY)?;
    let library = File::named(LIBRARY, "text/javascript; charset=utf-8", library);
    let mut files = vec![page, app, later, library, style];
    for (name, text) in sources {
        if name.ends_with(".svg") {
            files.push(File::named(name, "image/svg+xml", text.clone()));
        } else if name != "index.html" && !name.ends_with(".js") && !name.ends_with(".css") {
            return Err(format!("{name}: build.rs has no content type for it"));
        }
    }
    Ok(files)
}

/// The name of the style sheet, if this line of the page links one.
fn linked_style(line: &str) -> Option<&str> {
    line.strip_prefix("<link rel=\"stylesheet\" href=\"/console/")?.strip_suffix("\">")
}

impl File {
    fn named(path: &str, content_type: &'static str, text: String) -> File {
        File { path: path.to_owned(), content_type, bytes: text.into_bytes(), immutable: false }
    }

    fn hashed(name: &str, ending: &str, content_type: &'static str, text: String) -> File {
        let bytes = text.into_bytes();
        let path = format!("{name}-{:016x}.{ending}", hash(&bytes));
        File { path, content_type, bytes, immutable: true }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}

/// Writes `assets.rs`, and next to it the bytes of each file.
fn write_table(files: &[File], out: &Path) {
    let mut table = String::from("&[\n");
    for (number, File { path, content_type, bytes, immutable }) in files.iter().enumerate() {
        let etag = format!("\"{:016x}\"", hash(bytes));
        fs::write(out.join(number.to_string()), bytes).expect("the build folder can be written");
        fs::write(out.join(format!("{number}.gz")), gzip(bytes)).expect("the build folder can be written");
        writeln!(
            table,
            "Asset {{ path: {path:?}, content_type: {content_type:?}, etag: {etag:?}, immutable: {immutable}, \
             bytes: include_bytes!(\"{number}\"), gzip: include_bytes!(\"{number}.gz\") }},"
        )
        .expect("writing to a string never fails");
    }
    table.push(']');
    fs::write(out.join("assets.rs"), table).expect("the build folder can be written");
}
