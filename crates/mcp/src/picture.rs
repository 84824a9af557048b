//! Pictures for models: cropped, scaled and grey.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::tools::ToolError;

/// How a picture is wanted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PictureOptions {
    /// A factor.
    pub(crate) scale: Option<f64>,
    /// x, y, width and height in pixels of the game.
    pub(crate) crop: Option<[u32; 4]>,
    /// Without colours.
    pub(crate) grey: bool,
    /// Even if it is the one that was sent last.
    pub(crate) always: bool,
    /// The mark of a picture that the client has: it is not sent again.
    pub(crate) unless: Option<String>,
}

/// The scales that are accepted.
const SCALES: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 3.0, 4.0];

/// A picture as PNG.
pub(crate) struct Picture {
    /// Base64.
    pub(crate) data: String,
    /// The same for the same picture.
    pub(crate) mark: String,
}

/// Pixels of three bytes.
struct Pixels {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl PictureOptions {
    /// Refuses options that cannot be followed.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if let Some(scale) = self.scale
            && !SCALES.contains(&scale)
        {
            return Err(ToolError(format!("scale is {scale}; use 0.25, 0.5, 1, 2, 3 or 4")));
        }
        if let Some([_, _, width, height]) = self.crop
            && (width == 0 || height == 0)
        {
            return Err(ToolError(format!("crop is {width} by {height} pixels; use [x, y, width, height]")));
        }
        Ok(())
    }

    /// The picture of a screenshot, which is a PNG in base64.
    pub(crate) fn picture(&self, screenshot: &Json) -> Result<Picture, ToolError> {
        let data = screenshot.as_str().unwrap_or_default();
        let options = format!("{:?} {:?} {}", self.scale, self.crop, self.grey);
        let mut hash = crc32fast::Hasher::new();
        hash.update(data.as_bytes());
        hash.update(options.as_bytes());
        let mark = format!("{:08x}", hash.finalize());
        let scale = self.scale.unwrap_or(1.0);
        if scale == 1.0 && self.crop.is_none() && !self.grey {
            return Ok(Picture { data: data.to_owned(), mark });
        }
        let png = STANDARD.decode(data).map_err(|error| damaged(&error))?;
        let mut pixels = Pixels::decode(&png)?;
        if let Some(crop) = self.crop {
            pixels = pixels.cropped(crop)?;
        }
        if scale != 1.0 {
            pixels = pixels.scaled(scale);
        }
        Ok(Picture { data: STANDARD.encode(pixels.encode(self.grey)?), mark })
    }
}

fn damaged(why: &dyn std::fmt::Display) -> ToolError {
    ToolError(format!("the emulator's picture cannot be read: {why}"))
}

impl Pixels {
    fn decode(bytes: &[u8]) -> Result<Pixels, ToolError> {
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|error| damaged(&error))?;
        let size = reader.output_buffer_size().ok_or_else(|| damaged(&"it is too large"))?;
        let mut buffer = vec![0; size];
        let info = reader.next_frame(&mut buffer).map_err(|error| damaged(&error))?;
        let step = info.color_type.samples();
        let rgb = buffer[..info.buffer_size()]
            .chunks_exact(step)
            .flat_map(|pixel| if step < 3 { [pixel[0]; 3] } else { [pixel[0], pixel[1], pixel[2]] })
            .collect();
        Ok(Pixels { width: info.width as usize, height: info.height as usize, rgb })
    }

    fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = 3 * (y * self.width + x);
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    fn cropped(&self, [x, y, width, height]: [u32; 4]) -> Result<Pixels, ToolError> {
        let [x, y, width, height] = [x, y, width, height].map(|number| number as usize);
        if x.saturating_add(width) > self.width || y.saturating_add(height) > self.height {
            let (full_width, full_height) = (self.width, self.height);
            return Err(ToolError(format!(
                "crop is [{x}, {y}, {width}, {height}]; it must lie in the picture of {full_width} by {full_height} pixels"
            )));
        }
        let rows = (y..y + height).flat_map(|row| {
            let at = 3 * (row * self.width + x);
            self.rgb[at..at + 3 * width].iter().copied()
        });
        Ok(Pixels { width, height, rgb: rows.collect() })
    }

    /// Larger by repeated pixels, smaller by the mean of pixels.
    fn scaled(&self, scale: f64) -> Pixels {
        let size = |length: usize| ((length as f64 * scale) as usize).max(1);
        let (width, height) = (size(self.width), size(self.height));
        let mut rgb = Vec::with_capacity(3 * width * height);
        let part = |index: usize, full: usize| {
            let first = ((index as f64 / scale) as usize).min(full - 1);
            let end = (((index + 1) as f64 / scale) as usize).clamp(first + 1, full);
            first..end
        };
        for y in 0..height {
            for x in 0..width {
                let (rows, columns) = (part(y, self.height), part(x, self.width));
                let count = (rows.len() * columns.len()) as u32;
                let mut sum = [0; 3];
                for row in rows {
                    for column in columns.clone() {
                        for (sum, part) in sum.iter_mut().zip(self.pixel(column, row)) {
                            *sum += u32::from(part);
                        }
                    }
                }
                rgb.extend(sum.map(|sum| (sum / count) as u8));
            }
        }
        Pixels { width, height, rgb }
    }

    fn encode(&self, grey: bool) -> Result<Vec<u8>, ToolError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_depth(png::BitDepth::Eight);
        let failed = |error: png::EncodingError| ToolError(format!("the picture cannot be written: {error}"));
        if grey {
            encoder.set_color(png::ColorType::Grayscale);
            // The weights of ITU-R BT.601.
            let luma = |pixel: &[u8]| {
                let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
                ((299 * red + 587 * green + 114 * blue) / 1000) as u8
            };
            let samples: Vec<u8> = self.rgb.chunks_exact(3).map(luma).collect();
            let mut writer = encoder.write_header().map_err(failed)?;
            writer.write_image_data(&samples).map_err(failed)?;
        } else {
            encoder.set_color(png::ColorType::Rgb);
            let mut writer = encoder.write_header().map_err(failed)?;
            writer.write_image_data(&self.rgb).map_err(failed)?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 4 by 2 pixels, each with its own red.
    fn sample() -> Json {
        let rgb: Vec<u8> = (0..8).flat_map(|index| [index * 10, 0, 200]).collect();
        let pixels = Pixels { width: 4, height: 2, rgb };
        STANDARD.encode(pixels.encode(false).unwrap()).into()
    }

    fn decoded(options: &PictureOptions) -> Pixels {
        let picture = options.picture(&sample()).unwrap();
        Pixels::decode(&STANDARD.decode(picture.data).unwrap()).unwrap()
    }

    #[test]
    fn a_crop_has_the_pixels_of_its_place() {
        let pixels = decoded(&PictureOptions { crop: Some([1, 1, 2, 1]), ..Default::default() });
        assert_eq!((pixels.width, pixels.height), (2, 1));
        assert_eq!((pixels.pixel(0, 0), pixels.pixel(1, 0)), ([50, 0, 200], [60, 0, 200]));
    }

    #[test]
    fn scaling_repeats_pixels_or_takes_their_mean() {
        let large = decoded(&PictureOptions { scale: Some(2.0), ..Default::default() });
        assert_eq!((large.width, large.height, large.pixel(3, 3)), (8, 4, [50, 0, 200]));
        let small = decoded(&PictureOptions { scale: Some(0.5), ..Default::default() });
        assert_eq!((small.width, small.height, small.pixel(1, 0)), (2, 1, [45, 0, 200]));
    }

    #[test]
    fn a_grey_picture_has_equal_parts() {
        let [red, green, blue] = decoded(&PictureOptions { grey: true, ..Default::default() }).pixel(3, 1);
        assert!(red == green && green == blue && red > 0);
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let outside = PictureOptions { crop: Some([3, 0, 2, 1]), ..Default::default() };
        assert!(outside.picture(&sample()).err().unwrap().0.contains("4 by 2 pixels"));
        let scale = PictureOptions { scale: Some(1.5), ..Default::default() };
        assert!(scale.check().unwrap_err().0.contains("scale is 1.5"));
    }
}
