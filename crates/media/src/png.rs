//! Whole pictures as PNG.

use std::io::Cursor;

use png::{BitDepth, ColorType, Compression, Transformations};

use crate::image::{Image, ImageError, checked_size};

/// The pixels of a PNG file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// Three bytes per pixel, as in an [`Image`].
    pub rgb: Vec<u8>,
}

/// Why a file cannot be read as a picture.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The file is not a PNG, or it is damaged.
    #[error("the file is not a readable PNG: {0}")]
    Unreadable(#[from] png::DecodingError),
    /// The picture's size is out of range.
    #[error(transparent)]
    Size(#[from] ImageError),
}

/// Encodes a picture as a PNG file. The compression is fast, but not the best possible. Like mGBA's screenshots, the
/// file is in true colour, which every program can read.
pub fn encode(image: Image) -> Vec<u8> {
    encode_rgb(image.width().into(), image.height().into(), image.pixels())
}

impl Pixels {
    /// Encodes the pixels like [`encode`]. There may be more of them than an [`Image`] can have. `rgb` must have three
    /// bytes for each pixel.
    pub fn encode(&self) -> Vec<u8> {
        encode_rgb(self.width, self.height, &self.rgb)
    }
}

fn encode_rgb(width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_compression(Compression::Fast);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_color(ColorType::Rgb);
    // Writing into a vector cannot fail. `Image` has checked the length of its data; that of `Pixels` must be right.
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(rgb));
    debug_assert!(written.is_ok(), "{written:?}");
    file
}

/// The width and height of a PNG file in pixels, from its header.
///
/// # Errors
/// If the file does not begin with the header of a PNG.
pub fn size(file: &[u8]) -> Result<(u32, u32), PngError> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    let info = decoder.read_header_info()?;
    Ok((info.width, info.height))
}

/// Decodes a PNG file, such as an emulator's screenshot. Transparency is ignored.
///
/// # Errors
/// If the file is not a PNG, or its picture is larger than [`MAX_PIXELS`](crate::MAX_PIXELS).
pub fn decode(file: &[u8]) -> Result<Pixels, PngError> {
    let (width, height) = size(file)?;
    let count = checked_size(width, height)?;
    let mut decoder = png::Decoder::new(Cursor::new(file));
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info()?;
    let (colour, _) = reader.output_color_type();
    let samples = colour.samples();
    let mut bytes = vec![0; count * samples];
    reader.next_frame(&mut bytes)?;
    let rgb = match samples {
        3 => bytes,
        4 => bytes.as_chunks().0.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect(),
        _ => bytes.chunks_exact(samples).flat_map(|grey| [grey[0]; 3]).collect(),
    };
    Ok(Pixels { width, height, rgb })
}
