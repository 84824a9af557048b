//! Measures the emulator's frame rate during a run. The emulator writes its frame number to a file, so no request is
//! needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The time between two readings.
const PERIOD: Duration = Duration::from_millis(50);
/// The lowest rate is the rate over the slowest period of this length. One frame more or less changes it by 0.2
/// frames/s.
const SPAN: Duration = Duration::from_secs(5);
/// The Lua code that writes the frame number to a file.
const COUNTER: &str = include_str!("frames.lua");
const NAME: &str = "frames.json";

/// Frames per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Frames {
    /// Over the whole run.
    pub mean: f64,
    /// Over the slowest 5 s; `None` if the run was shorter.
    pub lowest: Option<f64>,
}

/// Returns Lua code with which an emulator writes its frame number to a file in `folder`, and the path of that file.
pub fn counter(folder: &Path) -> (String, PathBuf) {
    let file = folder.join(NAME);
    (COUNTER.replace(NAME, &file.to_string_lossy()), file)
}

/// Reads the frame number from the file of [`counter`], in a thread, until it is stopped.
#[derive(Debug)]
pub struct FrameMeter {
    stop: Sender<()>,
    thread: JoinHandle<Vec<(Instant, u64)>>,
}

impl FrameMeter {
    /// Starts to read.
    pub fn start(file: &Path) -> FrameMeter {
        let file = file.to_path_buf();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut samples = Vec::new();
            loop {
                samples.extend(read(&file).map(|frame| (Instant::now(), frame)));
                if stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return samples;
                }
            }
        });
        FrameMeter { stop, thread }
    }

    /// Stops, and returns the rates from the start until now; `None` if fewer than two numbers were read.
    pub fn stop(self) -> Option<Frames> {
        let _ = self.stop.send(());
        rates(&self.thread.join().ok()?)
    }
}

fn read(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.split(|character: char| !character.is_ascii_digit()).find(|word| !word.is_empty())?.parse().ok()
}

fn rates(samples: &[(Instant, u64)]) -> Option<Frames> {
    let rate = |from: &(Instant, u64), to: &(Instant, u64)| {
        to.1.saturating_sub(from.1) as f64 / (to.0 - from.0).as_secs_f64()
    };
    let (first, last) = (samples.first()?, samples.last()?);
    if last.0 == first.0 {
        return None;
    }
    let mut lowest: Option<f64> = None;
    let mut from = 0;
    for to in samples {
        while samples.get(from + 1).is_some_and(|next| to.0 - next.0 >= SPAN) {
            from += 1;
        }
        if to.0 - samples[from].0 >= SPAN {
            let slow = rate(&samples[from], to);
            lowest = Some(lowest.map_or(slow, |lowest| lowest.min(slow)));
        }
    }
    Some(Frames { mean: rate(first, last), lowest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_stretch_shows_in_the_lowest_rate_and_not_in_the_mean() {
        let start = Instant::now();
        let mut frame = 0;
        let samples: Vec<_> = (0..1200)
            .map(|tenth| {
                frame += if (600..650).contains(&tenth) { 3 } else { 6 };
                (start + Duration::from_millis(100 * tenth), frame)
            })
            .collect();
        let frames = rates(&samples).unwrap();
        assert!((frames.lowest.unwrap() - 30.0).abs() < 0.7, "{frames:?}");
        assert!(frames.mean > 58.0, "{frames:?}");
        assert_eq!(rates(&samples[..20]).unwrap().lowest, None);
        assert_eq!(rates(&samples[..1]), None);
    }

    #[test]
    fn the_number_is_found_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (lua, file) = counter(folder.path());
        assert!(lua.contains(&file.to_string_lossy().into_owned()));
        fs::write(&file, "{\"frame\":       1234}").unwrap();
        assert_eq!(read(&file), Some(1234));
        assert_eq!(read(&folder.path().join("none")), None);
    }
}
