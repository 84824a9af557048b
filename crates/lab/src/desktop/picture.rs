//! Pictures of the display.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use crate::{Error, Result};

/// A picture of a part of the display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// In pixels.
    pub width: u16,
    /// In pixels.
    pub height: u16,
    /// Red, green and blue of each pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// Writes the picture as a PNG file. Creates the folder if necessary.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let what = format!("write {}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::io(&what))?;
        }
        let file = BufWriter::new(File::create(path).map_err(Error::io(&what))?);
        let mut encoder = png::Encoder::new(file, self.width.into(), self.height.into());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.rgb)?;
            writer.finish()
        });
        written.map_err(|error| Error::io(what)(std::io::Error::other(error)))
    }
}
