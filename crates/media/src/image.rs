/// The largest number of pixels in a picture. Each pixel can have a colour of its own, and a message stores the number
/// of colours in 16 bits. mGBA's largest picture, that of a Super Game Boy with its border, has 256 × 224 = 57,344
/// pixels.
pub const MAX_PIXELS: u32 = 65_535;

/// A picture's pixels: three bytes each, red, green and blue, in rows from the top without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image<'a> {
    width: u16,
    height: u16,
    pixels: &'a [u8],
}

/// Why a size, or a number of bytes, is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The picture would have no pixels or too many.
    #[error("a picture of {0} × {1} pixels; 1 to {MAX_PIXELS} pixels are accepted")]
    Size(u32, u32),
    /// The number of bytes does not match the size.
    #[error("{bytes} bytes for a picture of {width} × {height} pixels; each pixel has three bytes")]
    Bytes {
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
        /// The number of bytes.
        bytes: usize,
    },
}

impl<'a> Image<'a> {
    /// A picture of `width` × `height` pixels.
    ///
    /// # Errors
    /// If the size is out of range, or `pixels` has another length.
    pub fn new(width: u32, height: u32, pixels: &'a [u8]) -> Result<Image<'a>, ImageError> {
        let count = checked_size(width, height)?;
        if pixels.len() != count * 3 {
            return Err(ImageError::Bytes { width, height, bytes: pixels.len() });
        }
        // Neither number can exceed MAX_PIXELS, so both fit into 16 bits.
        Ok(Image { width: width as u16, height: height as u16, pixels })
    }

    /// The width in pixels.
    pub fn width(&self) -> u16 {
        self.width
    }

    /// The height in pixels.
    pub fn height(&self) -> u16 {
        self.height
    }

    /// The pixels' bytes.
    pub fn pixels(&self) -> &'a [u8] {
        self.pixels
    }
}

/// An owned picture, whose size is checked only once. So `pixels.as_ref()` must return the same bytes each time.
#[derive(Debug, Clone)]
pub struct Checked<P> {
    width: u16,
    height: u16,
    pixels: P,
}

impl<P: AsRef<[u8]>> Checked<P> {
    /// A picture of `width` × `height` pixels.
    ///
    /// # Errors
    /// The same as for [`Image::new`].
    pub fn new(width: u32, height: u32, pixels: P) -> Result<Checked<P>, ImageError> {
        let Image { width, height, .. } = Image::new(width, height, pixels.as_ref())?;
        Ok(Checked { width, height, pixels })
    }

    /// The picture.
    pub fn image(&self) -> Image<'_> {
        Image { width: self.width, height: self.height, pixels: self.pixels.as_ref() }
    }
}

/// The number of pixels of a picture of this size.
pub(crate) fn checked_size(width: u32, height: u32) -> Result<usize, ImageError> {
    match u64::from(width) * u64::from(height) {
        count if (1..=u64::from(MAX_PIXELS)).contains(&count) => Ok(count as usize),
        _ => Err(ImageError::Size(width, height)),
    }
}
