//! The page: `docs/study.md`, from the files alone.

use std::path::Path;

use super::folder::Folder;

/// Writes the page.
pub fn write(_folder: &Folder, _page: &Path) -> anyhow::Result<()> {
    Ok(())
}
