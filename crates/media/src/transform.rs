//! Crops pictures, scales them, and gives them the colours of a console's screen or shades of grey.

use crate::colors::ColorCorrection;
use crate::png::Pixels;

/// The scales that are accepted.
pub const SCALES: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 3.0, 4.0];

/// Why a transform cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TransformError {
    /// The scale is not one of [`SCALES`].
    #[error("scale is {0}; use 0.25, 0.5, 1, 2, 3 or 4")]
    Scale(f64),
    /// The part to cut out has no pixels.
    #[error("crop is {0} by {1} pixels; use a width and a height of at least 1")]
    Empty(u32, u32),
    /// The part to cut out is not inside the picture.
    #[error("crop is {crop:?}; it must lie in the picture of {width} by {height} pixels")]
    Outside {
        /// x, y, width and height of the part.
        crop: [u32; 4],
        /// The picture's width.
        width: u32,
        /// The picture's height.
        height: u32,
    },
}

/// What to do with a picture: first cut a part out of it, then change its colours, then scale it, then make it grey.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Transform {
    /// The part to cut out: x, y, width and height in pixels.
    pub crop: Option<[u32; 4]>,
    /// The screen whose colours the picture gets.
    pub colors: Option<ColorCorrection>,
    /// One of [`SCALES`].
    pub scale: Option<f64>,
    /// Whether to remove the colours.
    pub grey: bool,
}

impl Transform {
    /// Whether the transform leaves every picture unchanged.
    pub fn is_identity(&self) -> bool {
        self.crop.is_none()
            && self.colors.is_none()
            && !self.grey
            && self.scale.is_none_or(|scale| scale == 1.0)
    }

    /// Checks everything that does not depend on the picture.
    ///
    /// # Errors
    /// If the scale is not accepted, or the part has no pixels.
    pub fn check(&self) -> Result<(), TransformError> {
        if let Some(scale) = self.scale
            && !SCALES.contains(&scale)
        {
            return Err(TransformError::Scale(scale));
        }
        if let Some([_, _, width, height]) = self.crop
            && (width == 0 || height == 0)
        {
            return Err(TransformError::Empty(width, height));
        }
        Ok(())
    }

    /// Like [`check`](Transform::check), for a picture of this size in pixels.
    ///
    /// # Errors
    /// As for [`check`](Transform::check), and if the part is not in the picture.
    pub fn check_for(&self, (width, height): (u32, u32)) -> Result<(), TransformError> {
        self.check()?;
        match self.crop {
            Some(crop @ [x, y, columns, rows])
                if x.saturating_add(columns) > width || y.saturating_add(rows) > height =>
            {
                Err(TransformError::Outside { crop, width, height })
            }
            _ => Ok(()),
        }
    }

    /// Applies the transform to a picture.
    ///
    /// # Errors
    /// As for [`check_for`](Transform::check_for).
    pub fn apply(&self, mut pixels: Pixels) -> Result<Pixels, TransformError> {
        self.check_for((pixels.width, pixels.height))?;
        if let Some(crop) = self.crop {
            pixels = cropped(&pixels, crop);
        }
        if let Some(colors) = self.colors {
            colors.apply(&mut pixels);
        }
        if let Some(scale) = self.scale
            && scale != 1.0
        {
            pixels = scaled(&pixels, scale);
        }
        if self.grey {
            make_grey(&mut pixels.rgb);
        }
        Ok(pixels)
    }
}

fn cropped(pixels: &Pixels, [x, y, width, height]: [u32; 4]) -> Pixels {
    let row = 3 * pixels.width as usize;
    let (begin, length) = (3 * x as usize, 3 * width as usize);
    let rows = pixels.rgb.chunks_exact(row).skip(y as usize).take(height as usize);
    let rgb = rows.flat_map(|row| row[begin..begin + length].iter().copied()).collect();
    Pixels { width, height, rgb }
}

/// Scales a picture. Pixels are repeated in a larger picture, and averaged in a smaller one.
fn scaled(pixels: &Pixels, scale: f64) -> Pixels {
    let (full_width, full_height) = (pixels.width as usize, pixels.height as usize);
    let size = |length: usize| ((length as f64 * scale) as usize).max(1);
    let (width, height) = (size(full_width), size(full_height));
    let part = |index: usize, full: usize| {
        let first = ((index as f64 / scale) as usize).min(full - 1);
        let end = (((index + 1) as f64 / scale) as usize).clamp(first + 1, full);
        first..end
    };
    let mut rgb = Vec::with_capacity(3 * width * height);
    for y in 0..height {
        for x in 0..width {
            let (rows, columns) = (part(y, full_height), part(x, full_width));
            let count = (rows.len() * columns.len()) as u32;
            let mut sum = [0; 3];
            for row in rows {
                for column in columns.clone() {
                    let at = 3 * (row * full_width + column);
                    for (sum, part) in sum.iter_mut().zip(&pixels.rgb[at..at + 3]) {
                        *sum += u32::from(*part);
                    }
                }
            }
            rgb.extend(sum.map(|sum| (sum / count) as u8));
        }
    }
    Pixels { width: width as u32, height: height as u32, rgb }
}

/// Sets red, green and blue of each pixel to the pixel's brightness, with the weights of ITU-R BT.601.
fn make_grey(rgb: &mut [u8]) {
    for pixel in rgb.as_chunks_mut::<3>().0 {
        let [red, green, blue] = pixel.map(u32::from);
        *pixel = [((299 * red + 587 * green + 114 * blue) / 1000) as u8; 3];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 4 by 2 pixels, each with a different value of red.
    fn sample() -> Pixels {
        let rgb = (0..8).flat_map(|index| [index * 10, 0, 200]).collect();
        Pixels { width: 4, height: 2, rgb }
    }

    fn red(pixels: &Pixels) -> Vec<u8> {
        pixels.rgb.iter().copied().step_by(3).collect()
    }

    #[test]
    fn a_crop_has_the_pixels_at_its_position() {
        let crop = Transform { crop: Some([1, 1, 2, 1]), ..Transform::default() };
        let pixels = crop.apply(sample()).unwrap();
        assert_eq!((pixels.width, pixels.height, red(&pixels)), (2, 1, vec![50, 60]));
    }

    #[test]
    fn scaling_repeats_pixels_or_takes_their_mean() {
        let transform =
            |crop, scale| Transform { crop: Some(crop), scale: Some(scale), ..Transform::default() };
        let large = transform([0, 0, 2, 1], 2.0).apply(sample()).unwrap();
        assert_eq!((large.width, large.height, red(&large)), (4, 2, vec![0, 0, 10, 10, 0, 0, 10, 10]));
        let small = Transform { scale: Some(0.5), ..Transform::default() }.apply(sample()).unwrap();
        assert_eq!((small.width, small.height, red(&small)), (2, 1, vec![25, 45]));
        let smallest = transform([0, 0, 1, 1], 0.25).apply(sample()).unwrap();
        assert_eq!((smallest.width, smallest.height), (1, 1));
    }

    #[test]
    fn a_grey_picture_has_the_brightness_of_each_pixel() {
        let pixels = Pixels { width: 2, height: 1, rgb: vec![255, 0, 0, 10, 20, 30] };
        let grey = Transform { grey: true, ..Transform::default() }.apply(pixels).unwrap();
        assert_eq!(grey.rgb, [76, 76, 76, 18, 18, 18]);
    }

    #[test]
    fn invalid_crops_and_scales_are_refused() {
        for (crop, scale, says) in [
            (Some([3, 0, 2, 1]), None, "4 by 2 pixels"),
            (Some([0, u32::MAX, 1, 1]), None, "4 by 2 pixels"),
            (Some([0, 0, 0, 1]), None, "0 by 1 pixels"),
            (None, Some(1.5), "scale is 1.5"),
            (None, Some(f64::NAN), "scale is NaN"),
        ] {
            let error =
                Transform { crop, scale, ..Transform::default() }.apply(sample()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
