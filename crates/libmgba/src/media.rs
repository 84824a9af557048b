use std::path::Path;

use crate::core::{Core, write_file};
use crate::error::Error;
use crate::sys::Canvas;

/// The picture that the machine drew last, borrowed from the core.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// In pixels: 240 for a GBA, 160 for a Game Boy, 256 with a Super Game Boy's
    /// border.
    pub width: u32,
    /// In pixels: 160, 144 or 224.
    pub height: u32,
    /// Bytes from the start of a row to the start of the next.
    pub stride: usize,
    /// The rows, top to bottom: red, green, blue and one unused byte a pixel.
    pub pixels: &'a [u8],
}

impl Frame<'_> {
    /// The rows without the bytes between them, each `4 * width` bytes.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let len = self.width as usize * 4;
        self.pixels.chunks_exact(self.stride).take(self.height as usize).map(move |row| &row[..len])
    }

    /// One row, 4 bytes a pixel.
    ///
    /// # Panics
    ///
    /// If the picture has no such row.
    pub fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.stride..][..self.width as usize * 4]
    }

    /// A copy without gaps, three bytes a pixel: red, green and blue.
    pub fn to_rgb(&self) -> Vec<u8> {
        let (width, height) = (self.width as usize, self.height as usize);
        let mut bytes = vec![0; width * height * 3];
        for (from, to) in self.rows().zip(bytes.chunks_exact_mut(width * 3)) {
            drop_fourth_bytes(from, to);
        }
        bytes
    }

    /// A copy without gaps, four bytes a pixel: red, green, blue, and 255 for
    /// opaque.
    pub fn to_rgba(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.width as usize * self.height as usize * 4);
        for row in self.rows() {
            bytes.extend_from_slice(row);
        }
        for pixel in bytes.chunks_exact_mut(4) {
            pixel[3] = 0xFF;
        }
        bytes
    }
}

/// Copies pixels of four bytes without the fourth.
fn drop_fourth_bytes(from: &[u8], to: &mut [u8]) {
    // Four pixels are three words, which is several times faster than byte by byte.
    let (pixels, rest) = from.as_chunks::<16>();
    let (words, rest_to) = to.as_chunks_mut::<12>();
    for (pixels, words) in pixels.iter().zip(words) {
        let pixels = u128::from_le_bytes(*pixels);
        let [a, b, c, d] = [pixels, pixels >> 32, pixels >> 64, pixels >> 96].map(|pixel| pixel as u32);
        words[..4].copy_from_slice(&((a & 0xFF_FFFF) | (b << 24)).to_le_bytes());
        words[4..8].copy_from_slice(&(((b >> 8) & 0xFFFF) | (c << 16)).to_le_bytes());
        words[8..].copy_from_slice(&(((c >> 16) & 0xFF) | (d << 8)).to_le_bytes());
    }
    for (pixel, to) in rest.chunks_exact(4).zip(rest_to.chunks_exact_mut(3)) {
        to.copy_from_slice(&pixel[..3]);
    }
}

/// Picture and sound.
impl Core {
    /// The picture now, without copying it.
    pub fn frame(&self) -> Frame<'_> {
        let (width, height, stride, pixels) = self.handle.frame();
        Frame { width, height, stride, pixels }
    }

    /// Draws into `canvas` from now on, as rows of 256 pixels, or with `None` into
    /// memory of the core's own again. The picture of now is moved there. Gives
    /// back what the core drew into before. [`frame`](Core::frame) and screenshots
    /// show the picture wherever it is.
    ///
    /// # Panics
    ///
    /// If the canvas has less than [`PICTURE`](crate::PICTURE) words.
    pub fn draw_into(&mut self, canvas: Option<Canvas>) -> Option<Canvas> {
        self.handle.draw_into(canvas)
    }

    /// The picture now as a PNG file's bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Screenshot`].
    pub fn screenshot_png(&mut self) -> Result<Vec<u8>, Error> {
        self.handle.screenshot().map_err(|_| Error::Screenshot)
    }

    /// Writes the picture now to a PNG file.
    ///
    /// # Errors
    ///
    /// [`Error::Screenshot`] and [`Error::Io`].
    pub fn screenshot_file(&mut self, path: &Path) -> Result<(), Error> {
        let png = self.screenshot_png()?;
        write_file(path, &png)
    }

    /// Takes the sound made since the last call: left and right in turn. At most
    /// about ten frames' worth is kept; call it every frame to lose nothing.
    pub fn read_samples(&mut self) -> Vec<i16> {
        self.handle.read_audio()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rgb_has_the_first_three_bytes_of_each_pixel() {
        // A picture of 7x3 pixels in rows of 40 bytes: neither a multiple of four pixels nor without gaps.
        let pixels: Vec<u8> = (0..120).collect();
        let frame = Frame { width: 7, height: 3, stride: 40, pixels: &pixels };
        let expected: Vec<u8> =
            frame.rows().flat_map(|row| row.chunks_exact(4)).flat_map(|pixel| &pixel[..3]).copied().collect();
        assert_eq!(frame.to_rgb(), expected);
    }
}
