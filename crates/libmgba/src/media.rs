use std::path::Path;

use crate::core::{Core, write_file};
use crate::error::Error;
use crate::sys::{Canvas, drop_fourth_bytes};

/// The picture that the console drew last, borrowed from the core.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The width in pixels: 240 for a GBA, 160 for a Game Boy, 256 with a Super Game Boy's border.
    pub width: u32,
    /// The height in pixels: 160, 144 or 224.
    pub height: u32,
    /// Bytes from the start of a row to the start of the next.
    pub stride: usize,
    /// The rows, from top to bottom. A pixel is red, green, blue and one unused byte.
    pub pixels: &'a [u8],
}

impl Frame<'_> {
    /// The rows without the bytes between them. Each row has `4 * width` bytes.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let len = self.width as usize * 4;
        self.pixels.chunks_exact(self.stride).take(self.height as usize).map(move |row| &row[..len])
    }

    /// A row, with 4 bytes for each pixel.
    ///
    /// # Panics
    /// If the picture has no such row.
    pub fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.stride..][..self.width as usize * 4]
    }

    /// A copy without gaps. A pixel has three bytes: red, green and blue.
    pub fn to_rgb(&self) -> Vec<u8> {
        let (width, height) = (self.width as usize, self.height as usize);
        let mut bytes = vec![0; width * height * 3];
        for (from, to) in self.rows().zip(bytes.chunks_exact_mut(width * 3)) {
            drop_fourth_bytes(from, to);
        }
        bytes
    }
}

/// Picture and sound.
impl Core {
    /// The current picture, without a copy.
    pub fn frame(&self) -> Frame<'_> {
        let (width, height, stride, pixels) = self.handle.frame();
        Frame { width, height, stride, pixels }
    }

    /// Draws into `canvas` from now on, in rows of 256 pixels. `None` means the core's own memory again. The current
    /// picture is copied to the new place. Returns the previous canvas. [`frame`](Core::frame) and screenshots work
    /// with and without a canvas.
    ///
    /// # Panics
    /// If the canvas has fewer than [`PICTURE`](crate::PICTURE) words.
    pub fn draw_into(&mut self, canvas: Option<Canvas>) -> Option<Canvas> {
        self.handle.draw_into(canvas)
    }

    /// The current picture as the bytes of a PNG file.
    ///
    /// # Errors
    /// [`Error::Screenshot`].
    pub fn screenshot_png(&mut self) -> Result<Vec<u8>, Error> {
        self.handle.screenshot().map_err(|_| Error::Screenshot)
    }

    /// Writes the current picture to a PNG file.
    ///
    /// # Errors
    /// [`Error::Screenshot`], [`Error::Io`], and [`Error::NotAFile`] for a pipe or a device.
    pub fn screenshot_file(&mut self, path: &Path) -> Result<(), Error> {
        let png = self.screenshot_png()?;
        write_file(path, &png)
    }

    /// Takes the sound since the last call, left and right samples in turn. If about ten frames of sound are waiting,
    /// newer sound is dropped. Call this after every frame to lose nothing.
    pub fn read_samples(&mut self) -> Vec<i16> {
        self.handle.read_audio()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rgb_has_the_first_three_bytes_of_each_pixel() {
        // Three rows of many widths, which need not be multiples of four pixels, with gaps between the rows.
        for width in 1..40u32 {
            let stride = width as usize * 4 + 12;
            let pixels: Vec<u8> = (0..stride * 3).map(|at| at as u8).collect();
            let frame = Frame { width, height: 3, stride, pixels: &pixels };
            let pixels = frame.rows().flat_map(|row| row.chunks_exact(4));
            let expected: Vec<u8> = pixels.flat_map(|pixel| &pixel[..3]).copied().collect();
            assert_eq!(frame.to_rgb(), expected, "{width} pixels");
        }
    }
}
