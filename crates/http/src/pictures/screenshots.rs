//! Pictures of an emulator that sends them only on request, as PNG files.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use framewire_emulator::{EmulatorError, Picture};
use framewire_media::png;
use framewire_protocol::{Op, OpError, Status, Value};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use crate::operations::emulators::Served;
use crate::problem::Problem;

/// How long a request for a screenshot may take.
const SCREENSHOT_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause after a screenshot that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// A picture, and the frame that it shows.
pub(crate) struct Screenshot {
    pub(crate) frame: u32,
    pub(crate) png: Bytes,
}

pub(crate) async fn screenshot(served: &Served, deadline: Instant) -> Result<Screenshot, EmulatorError> {
    let _waiting = served.waiting.begin();
    let mut outcome = served.submit(Op::Screenshot {}.into(), deadline.into_std()).await?;
    match outcome.results.pop() {
        Some(Ok(Value::Bytes(png))) => Ok(Screenshot { frame: outcome.frame, png: png.into() }),
        Some(Err(error)) => Err(error.into()),
        _ => {
            let message = "the emulator answered with something other than a picture";
            Err(OpError::new(Status::Failed, message).into())
        }
    }
}

/// Takes screenshots one after another, as often as the emulator can make them without running too slowly.
pub(crate) struct Screenshots {
    served: Arc<Served>,
    /// The last screenshot, as a file and decoded.
    last: (Screenshot, Arc<Picture>),
    /// Whether the last screenshot has not been returned yet.
    fresh: bool,
    /// The time of the next request.
    due: Instant,
    tempo: Tempo,
}

impl Screenshots {
    /// Requests the first screenshot, so that an emulator without pictures causes an error at once.
    pub(crate) async fn begin(served: Arc<Served>, time_limit: Duration) -> Result<Screenshots, Problem> {
        let now = Instant::now();
        let first = screenshot(&served, now + time_limit).await?;
        let picture = picture(&first, 0).map_err(EmulatorError::Refused)?;
        let tempo = Tempo::new(now);
        Ok(Screenshots { served, last: (first, Arc::new(picture)), fresh: true, due: now, tempo })
    }

    /// The first call returns the first picture. Each later call waits for a picture that shows another frame or has
    /// different content. Returns `None` when the emulator is gone.
    pub(crate) async fn next(&mut self) -> Option<Arc<Picture>> {
        if !std::mem::take(&mut self.fresh) {
            while !self.ask().await? {}
        }
        Some(self.last.1.clone())
    }

    /// Waits until a screenshot is due and requests it. Returns whether it is new; `None` when the emulator is gone.
    async fn ask(&mut self) -> Option<bool> {
        sleep_until(self.due).await;
        let asked = Instant::now();
        self.due = asked + self.tempo.interval(asked, || self.served.emulator.state().frames_per_second);
        let new = match screenshot(&self.served, asked + SCREENSHOT_TIMEOUT).await {
            Ok(new) => new,
            Err(EmulatorError::Stopped) => return None,
            Err(error) => {
                debug!("no screenshot: {error}");
                sleep(PAUSE).await;
                return Some(false);
            }
        };
        let (last, before) = &self.last;
        let same = new.png == last.png;
        if same && new.frame == last.frame {
            return Some(false);
        }
        // If the frame counter went back, it is unknown how many frames have run. They count as one frame.
        let frames = new.frame.checked_sub(last.frame).unwrap_or(1).max(1);
        let ticks = before.ticks + u64::from(frames);
        let picture = if same {
            Picture { frame: new.frame, ticks, ..(**before).clone() }
        } else {
            match picture(&new, ticks) {
                Ok(picture) => picture,
                Err(error) => {
                    debug!("a screenshot was skipped: {error}");
                    return Some(false);
                }
            }
        };
        self.last = (new, Arc::new(picture));
        Some(true)
    }
}

/// The pixels of a screenshot.
fn picture(screenshot: &Screenshot, ticks: u64) -> Result<Picture, OpError> {
    let unreadable = |error| OpError::new(Status::Failed, format!("the emulator's screenshot: {error}"));
    let png::Pixels { width, height, rgb } = png::decode(&screenshot.png).map_err(unreadable)?;
    Ok(Picture { frame: screenshot.frame, ticks, width, height, pixels: rgb })
}

/// A console's frames per second, minus a margin for measurement errors. An emulator that runs fewer is too slow.
const FULL: f64 = 59.0;
/// Screenshots per second: at the beginning, the least, and the most.
const START: f64 = 20.0;
const LEAST: f64 = 10.0;
const MOST: f64 = 60.0;
/// Time between two checks of the emulator's frame rate. The rate is measured over about the same time.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How many screenshots per second an emulator can make, from [`LEAST`] to [`MOST`]. At each check, the number grows by
/// 8 if the emulator keeps its frame rate, and falls by about a third if it does not.
struct Tempo {
    rate: f64,
    checked: Instant,
}

impl Tempo {
    fn new(now: Instant) -> Tempo {
        Tempo { rate: START, checked: now }
    }

    /// Time until the next screenshot.
    fn interval(&mut self, now: Instant, frames_per_second: impl FnOnce() -> f64) -> Duration {
        if now.saturating_duration_since(self.checked) >= CHECK_INTERVAL {
            self.checked = now;
            let rate = if frames_per_second() >= FULL { self.rate + 8.0 } else { self.rate * 0.66 };
            self.rate = rate.clamp(LEAST, MOST);
        }
        Duration::from_secs_f64(1.0 / self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tempo_follows_the_frame_rate_of_the_emulator() {
        let start = Instant::now();
        let mut tempo = Tempo::new(start);
        let mut after = |seconds: u64, frames: f64| {
            for second in 0..seconds {
                tempo.interval(tempo.checked + CHECK_INTERVAL + Duration::from_secs(second), || frames);
            }
            tempo.rate
        };
        assert_eq!(after(10, 59.7), MOST);
        assert!(after(1, 57.0) < 45.0);
        assert_eq!(after(10, 30.0), LEAST);
        assert!(after(1, 240.0) > LEAST, "an emulator in fast-forward is not too slow");
    }
}
