//! The console page: a web page from which people watch and drive an emulator.
//!
//! `web` holds its files: one HTML file, styles, and JavaScript modules without a framework. Types are in JSDoc comments;
//! `tsc` checks them in `make lint`. The build script embeds the files as they are, so `cargo build` needs only Rust. This
//! crate serves nothing itself; the HTTP front end does.

/// A file of the page, as browsers get it.
#[derive(Debug)]
pub struct Asset {
    /// Its name, relative to the folder `/console/`; `index.html` is the page.
    pub path: &'static str,
    /// The value of the header `Content-Type`.
    pub content_type: &'static str,
    /// The value of the header `ETag`, with its quotes: a hash of the bytes.
    pub etag: &'static str,
    /// The contents.
    pub bytes: &'static [u8],
}

/// Every file of the page.
pub const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The page itself, for `/`.
pub fn page() -> &'static Asset {
    find("index.html").expect("the build script checks that it exists")
}

/// The file with this name.
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(asset: &Asset) -> &'static str {
        std::str::from_utf8(asset.bytes).expect("all files are text")
    }

    #[test]
    fn the_page_names_only_files_that_are_there() {
        let page = text(page());
        let named: Vec<&str> =
            page.split("=\"/console/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(named.contains(&"main.js"), "{named:?}");
        for name in named {
            assert!(find(name).is_some(), "index.html names {name}");
        }
    }

    #[test]
    fn modules_import_only_files_that_are_there() {
        let mut imports = 0;
        for asset in ASSETS.iter().filter(|asset| asset.path.ends_with(".js")) {
            let code = text(asset);
            for name in code.split(" from \"./").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(find(name).is_some(), "{} imports {name}", asset.path);
                imports += 1;
            }
        }
        assert!(imports > 10, "only {imports} imports were found");
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for asset in ASSETS {
            for (at, _) in text(asset).match_indices("://") {
                let start =
                    text(asset)[..at].rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |end| end + 1);
                let rest = &text(asset)[start..];
                assert!(
                    rest.starts_with("http://www.w3.org/"),
                    "{} has {:?}",
                    asset.path,
                    rest.lines().next().unwrap_or_default()
                );
            }
        }
    }
}
