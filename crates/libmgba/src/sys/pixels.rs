//! Copies pixels. Uses faster instructions if the processor has them.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _mm_cvtsi128_si64, _mm_set_epi64x, _mm_setr_epi8, _mm_shuffle_epi8, _mm_unpackhi_epi64,
};

/// Copies pixels of four bytes without their fourth byte.
pub fn drop_fourth_bytes(from: &[u8], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("ssse3") {
        // SAFETY: this processor has the feature that the function is compiled for.
        return unsafe { drop_by_shuffles(from, to) };
    }
    drop_by_words(from, to);
}

/// Copies four pixels at a time, with an instruction that rearranges bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "ssse3")]
fn drop_by_shuffles(mut from: &[u8], mut to: &mut [u8]) {
    let order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    // Each iteration writes four bytes too many. The next iteration overwrites them, or `drop_by_words` does.
    while let (Some((pixels, rest)), Some(packed)) =
        (from.split_first_chunk::<16>(), to.first_chunk_mut::<16>())
    {
        let pixels = u128::from_le_bytes(*pixels);
        let shuffled = _mm_shuffle_epi8(_mm_set_epi64x((pixels >> 64) as i64, pixels as i64), order);
        let halves =
            [shuffled, _mm_unpackhi_epi64(shuffled, shuffled)].map(|half| _mm_cvtsi128_si64(half) as u64);
        *packed = (u128::from(halves[1]) << 64 | u128::from(halves[0])).to_le_bytes();
        (from, to) = (rest, &mut to[12..]);
    }
    drop_by_words(from, to);
}

/// Writes four pixels as three words, which is several times faster than byte by byte.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copied_alike_with_and_without_vector_instructions() {
        for width in 1..40 {
            let from: Vec<u8> = (0..width * 4).map(|at| at as u8).collect();
            let [mut with, mut without] = [vec![0; width * 3], vec![0; width * 3]];
            drop_fourth_bytes(&from, &mut with);
            drop_by_words(&from, &mut without);
            assert_eq!(with, without, "{width} pixels");
        }
    }
}
