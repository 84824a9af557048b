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
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return simd.vectorize(
            #[inline(always)]
            || drop_by_shuffles(simd, from, to),
        );
    }
    drop_by_words(from, to);
}

/// Four pixels at a time, by an instruction that moves bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn drop_by_shuffles(simd: pulp::x86::V3, from: &[u8], to: &mut [u8]) {
    const ORDER: [u8; 16] = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80];
    let order = pulp::cast(ORDER);
    let (mut from, mut to) = (from, to);
    // Each time, four bytes too many are written, and then the next pixels over them.
    while let (Some((pixels, rest)), Some(packed)) = (from.split_first_chunk(), to.first_chunk_mut()) {
        let pixels: [u8; 16] = *pixels;
        *packed = pulp::cast::<_, [u8; 16]>(simd.ssse3._mm_shuffle_epi8(pulp::cast(pixels), order));
        (from, to) = (rest, &mut to[12..]);
    }
    drop_by_words(from, to);
}

/// Four pixels are three words, which is several times faster than byte by byte.
fn drop_by_words(from: &[u8], to: &mut [u8]) {
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
        // Three rows, wide and narrow ones, neither of multiples of four pixels nor without gaps.
        for width in 1..40u32 {
            let stride = width as usize * 4 + 12;
            let pixels: Vec<u8> = (0..stride * 3).map(|at| at as u8).collect();
            let frame = Frame { width, height: 3, stride, pixels: &pixels };
            let pixels = frame.rows().flat_map(|row| row.chunks_exact(4));
            let expected: Vec<u8> = pixels.flat_map(|pixel| &pixel[..3]).copied().collect();
            assert_eq!(frame.to_rgb(), expected, "{width} pixels");
            let mut words = vec![0; expected.len()];
            let rows = frame.rows().zip(words.chunks_exact_mut(width as usize * 3));
            rows.for_each(|(from, to)| drop_by_words(from, to));
            assert_eq!(words, expected, "{width} pixels, without vector instructions");
        }
    }
}
