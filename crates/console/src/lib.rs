//! The console page: a web page on which people watch and control an emulator.
//!
//! `web` holds its files: one HTML file, styles, and JavaScript modules without a framework. Types are in JSDoc
//! comments; `tsc` checks them in `make lint`. The build script joins the modules into two scripts, and the styles
//! into one sheet. The second script has the code that the page loads when it is first needed, such as that of most
//! tools and dialogs. A third script, `code.js`, is for the page `/docs`. The build script also removes comments and
//! compresses the files. It is written in Rust, so `cargo build` needs no other tools. This crate only contains the
//! files; the HTTP front end serves them.

#[cfg(test)]
#[path = "../build/bundle.rs"]
mod bundle;

/// A file of the page, as browsers get it.
#[derive(Debug)]
pub struct Asset {
    /// Its path, relative to the folder `/console/`; `index.html` is the page.
    pub path: &'static str,
    /// The value of the header `Content-Type`.
    pub content_type: &'static str,
    /// The value of the header `ETag`, with its quotes: a hash of the bytes.
    pub etag: &'static str,
    /// Whether its path contains a hash of its contents, so that browsers can cache it forever.
    pub immutable: bool,
    /// The contents.
    pub bytes: &'static [u8],
    /// The contents, compressed with gzip.
    pub gzip: &'static [u8],
}

/// Every file of the page.
pub const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The page itself, for `/`.
pub fn page() -> &'static Asset {
    find("index.html").expect("the build script checks that it exists")
}

/// The file with this path.
pub fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn text(asset: &Asset) -> &'static str {
        std::str::from_utf8(asset.bytes).expect("all files are text")
    }

    #[test]
    fn the_page_links_only_files_that_exist() {
        let page = text(page());
        let named: Vec<&str> =
            page.split("=\"/console/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(named.len(), 4, "the icon twice, the style sheet, and the script: {named:?}");
        for name in named {
            assert!(find(name).is_some(), "index.html links {name}, which does not exist");
        }
    }

    #[test]
    fn the_page_is_small() {
        // The second script, and the module that the page `/docs` uses.
        let others = |path: &str| path.starts_with("later-") || path == "code.js";
        let at_first = || ASSETS.iter().filter(|asset| !others(asset.path));
        let size: usize = at_first().map(|asset| asset.gzip.len()).sum();
        assert!(size < 49_000, "at first, a browser loads {size} bytes in {} files", at_first().count());
    }

    #[test]
    fn compressed_files_have_the_same_contents() {
        for asset in ASSETS {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(asset.gzip).read_to_end(&mut plain).expect(asset.path);
            assert!(plain == asset.bytes, "{} differs after compression", asset.path);
        }
    }

    #[test]
    fn nothing_is_fetched_from_other_servers() {
        for asset in ASSETS {
            for (at, _) in text(asset).match_indices("://") {
                let start =
                    text(asset)[..at].rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |end| end + 1);
                let rest = &text(asset)[start..];
                assert!(
                    rest.starts_with("http://www.w3.org/"),
                    "{} contains the URL {:?}",
                    asset.path,
                    rest.lines().next().unwrap_or_default()
                );
            }
        }
    }
}
