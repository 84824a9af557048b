use std::sync::Arc;
use std::time::Duration;

use framewire_emulator::{Picture, Video};

use super::screenshots::Screenshots;
use crate::operations::emulators::Served;
use crate::problem::Problem;

/// Where an emulator's pictures come from.
pub(crate) enum PictureSource {
    /// Each is given as it is made.
    Given(Video),
    /// Each is asked for.
    Asked(Box<Screenshots>),
}

impl PictureSource {
    /// Opens the source of an emulator. One that must be asked is asked at once, for at most `patience`.
    pub(crate) async fn open(served: &Arc<Served>, patience: Duration) -> Result<PictureSource, Problem> {
        match served.emulator.video() {
            Some(video) => Ok(PictureSource::Given(video)),
            None => Ok(PictureSource::Asked(Box::new(Screenshots::begin(served.clone(), patience).await?))),
        }
    }

    /// The newest picture that was not given yet; `None` when there will be none.
    pub(crate) async fn next(&mut self) -> Option<Arc<Picture>> {
        match self {
            PictureSource::Given(video) => video.next().await,
            PictureSource::Asked(screenshots) => screenshots.next().await,
        }
    }
}
