//! Whole pictures as JPEG, for programs that take nothing else.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use crate::image::Image;

/// Of 100. The pictures are small and have hard edges, which lower qualities smear.
const QUALITY: u8 = 92;

/// The picture as a JPEG file, its colours as finely sampled as its brightness.
pub fn encode(image: Image) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    // Fails only on what cannot be here: a writer that fails, or data of another length.
    let written = encoder.encode(image.pixels(), image.width(), image.height(), ColorType::Rgb);
    debug_assert!(written.is_ok(), "{written:?}");
    file
}
