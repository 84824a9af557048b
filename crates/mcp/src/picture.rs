//! Pictures for models: cropped, scaled and grey.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use framewire_media::{Transform, TransformError, png};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

use crate::session::ObjectOnly;
use crate::tools::ToolError;

/// How to change a picture, and whether to send it if the client has it already.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(
    remote = "Self",
    deny_unknown_fields,
    default,
    expecting = "an object with scale, crop, grey, always and unless"
)]
pub(crate) struct PictureOptions {
    /// The factor by which to scale the picture.
    pub(crate) scale: Option<f64>,
    /// The part of the picture to keep: x, y, width and height, in pixels of the game.
    pub(crate) crop: Option<[u32; 4]>,
    /// Whether to remove the colours.
    pub(crate) grey: bool,
    /// Whether to send the picture even if the client has it already.
    pub(crate) always: bool,
    /// The mark of a picture that the client has. This picture is not sent again.
    pub(crate) unless: Option<String>,
}

impl<'de> Deserialize<'de> for PictureOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PictureOptions, D::Error> {
        // This does not recurse: with `remote`, serde derives a function of the type itself, and not of the trait.
        PictureOptions::deserialize(ObjectOnly(deserializer))
    }
}

/// A picture as PNG.
pub(crate) struct Picture {
    /// The file, in base64.
    pub(crate) data: String,
    /// A checksum. Equal pictures with equal options have equal marks.
    pub(crate) mark: String,
}

impl PictureOptions {
    /// Refuses options that are invalid for every picture: a wrong scale, or an empty part.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        self.transform().check().map_err(refused)
    }

    /// Like [`check`](PictureOptions::check), for a screenshot, which is a PNG in base64. Also refuses a `crop` that is
    /// not inside the screenshot.
    pub(crate) fn check_for(&self, screenshot: &Json) -> Result<(), ToolError> {
        let file = STANDARD.decode(screenshot.as_str().unwrap_or_default()).map_err(damaged)?;
        let size = png::size(&file).map_err(damaged)?;
        self.transform().check_for(size).map_err(refused)
    }

    fn transform(&self) -> Transform {
        Transform { crop: self.crop, scale: self.scale, colors: None, grey: self.grey }
    }

    /// Makes the picture from a screenshot, which is a PNG in base64. Fails if `crop` is not inside the screenshot.
    pub(crate) fn picture(&self, screenshot: &Json) -> Result<Picture, ToolError> {
        let data = screenshot.as_str().unwrap_or_default();
        let transform = self.transform();
        let mut hash = crc32fast::Hasher::new();
        hash.update(data.as_bytes());
        hash.update(format!("{transform:?}").as_bytes());
        let mark = format!("{:08x}", hash.finalize());
        if transform.is_identity() {
            return Ok(Picture { data: data.to_owned(), mark });
        }
        let file = STANDARD.decode(data).map_err(damaged)?;
        let pixels = png::decode(&file).map_err(damaged)?;
        let pixels = transform.apply(pixels).map_err(refused)?;
        Ok(Picture { data: STANDARD.encode(pixels.encode()), mark })
    }
}

fn refused(error: TransformError) -> ToolError {
    ToolError(error.to_string())
}

fn damaged(why: impl std::fmt::Display) -> ToolError {
    ToolError(format!("the emulator's picture cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use framewire_media::png::Pixels;

    use super::*;

    /// A screenshot of 4 by 2 pixels, each with a different value of red.
    fn sample() -> Json {
        let rgb = (0..8).flat_map(|index| [index * 10, 0, 200]).collect();
        STANDARD.encode(Pixels { width: 4, height: 2, rgb }.encode()).into()
    }

    fn decoded(options: &PictureOptions) -> Pixels {
        let picture = options.picture(&sample()).unwrap();
        png::decode(&STANDARD.decode(picture.data).unwrap()).unwrap()
    }

    #[test]
    fn pictures_are_cropped_scaled_and_grey() {
        let crop = Some([1, 1, 2, 1]);
        let pixels = decoded(&PictureOptions { crop, scale: Some(2.0), ..Default::default() });
        assert_eq!((pixels.width, pixels.height, &pixels.rgb[..3]), (4, 2, &[50, 0, 200][..]));
        let pixels = decoded(&PictureOptions { crop, grey: true, ..Default::default() });
        assert_eq!((pixels.width, pixels.height, &pixels.rgb[..3]), (2, 1, &[37, 37, 37][..]));
    }

    #[test]
    fn invalid_options_are_refused() {
        let outside = PictureOptions { crop: Some([3, 0, 2, 1]), ..Default::default() };
        assert!(outside.picture(&sample()).err().unwrap().0.contains("4 by 2 pixels"));
        assert!(outside.check_for(&sample()).unwrap_err().0.contains("4 by 2 pixels"));
        let scale = PictureOptions { scale: Some(1.5), ..Default::default() };
        assert!(scale.check().unwrap_err().0.contains("scale is 1.5"));
    }
}
