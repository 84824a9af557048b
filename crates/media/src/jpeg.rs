//! Whole pictures as JPEG, for programs that accept nothing else.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use crate::image::Image;

/// The quality, from 1 to 100. The pictures are small and have hard edges, which lower qualities blur.
const QUALITY: u8 = 92;

/// Encodes a picture as a JPEG file, without chroma subsampling.
pub fn encode(image: Image) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    // Writing into a vector cannot fail, and the length of an image's data was checked when the `Image` was made.
    let written = encoder.encode(image.pixels(), image.width(), image.height(), ColorType::Rgb);
    debug_assert!(written.is_ok(), "{written:?}");
    file
}
