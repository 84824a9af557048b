//! Helpers for these tests.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framewire_emulator::embedded::{Config, Rom, Speed};
use framewire_emulator::{Embedded, Emulator};
use framewire_protocol::{Batch, Op, Value};
use framewire_recording::replay::{PlayOptions as Play, Report, replay};
use framewire_recording::{Options, Recording, Recordings, Start};
use framewire_states::Name;
use tempfile::TempDir;

pub const DEMO: &[u8] = include_bytes!("../../../../rom/framewire-demo.gba");

/// Memory that the demo game does not use (`scratch` in its memory map).
pub const SCRATCH: u32 = 0x0200_0100;

/// The longest time to wait for anything in these tests.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A core with the demo game, at unlimited speed.
pub fn core(paused: bool) -> Arc<Embedded> {
    let config = Config { speed: Speed::Unlimited, paused, ..Config::new(Rom::Bytes(DEMO)) };
    Arc::new(Embedded::start(config).unwrap())
}

/// Performs operations. All of them must succeed.
pub async fn done(emulator: &dyn Emulator, ops: Vec<Op>) -> Vec<Value> {
    let outcome = emulator.submit(Batch::new(ops), Instant::now() + PATIENCE).await.unwrap();
    outcome.results.into_iter().map(Result::unwrap).collect()
}

/// A savestate of a core, with these parts.
pub async fn state(core: &Embedded, flags: u8) -> Vec<u8> {
    match done(core, vec![Op::SaveState { flags }]).await.remove(0) {
        Value::Bytes(state) => state,
        other => panic!("{other:?}"),
    }
}

pub async fn wait_for(what: &str, condition: impl AsyncFn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < end, "waited without success for {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Random numbers from a fixed seed.
pub struct Random(pub u32);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// A temporary folder of recordings. The folder is removed when the `Home` is dropped.
pub struct Home {
    _folder: TempDir,
    pub recordings: Recordings,
}

impl Home {
    pub fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let recordings = Recordings::new(folder.path().join("recordings"));
        Home { _folder: folder, recordings }
    }

    pub async fn start(&self, core: &Arc<Embedded>, as_name: &str, start: Start, every: u32) {
        let options = Options { start, every, note: "a note".to_owned(), replace: false };
        self.recordings.start("core", core.clone(), name(as_name), options).await.unwrap();
    }

    pub fn file(&self, of: &str) -> Vec<u8> {
        self.recordings.folder().read(&name(of)).unwrap()
    }

    pub fn recording(&self, of: &str) -> Recording {
        Recording::read(&self.file(of)).unwrap()
    }
}

/// Plays `frames` frames with random keys.
pub async fn play_at_random(core: &Arc<Embedded>, frames: u32, random: &mut Random) {
    let mut left = frames;
    while left > 0 {
        let mut ops = Vec::new();
        let mut room = 200;
        while room > 0 && left > 0 {
            let now = (1 + random.next() % 12).min(room).min(left);
            // In half of the cases, only keys that move the paddle; in a quarter, no keys; otherwise any keys.
            let keys = match random.next() % 4 {
                0 | 1 => 0x30 & random.next(),
                2 => 0,
                _ => 0x3FF & random.next(),
            };
            ops.extend([Op::SetKeys { keys: keys as u16 }, Op::Advance { frames: now }]);
            room -= now;
            left -= now;
        }
        done(&**core, ops).await;
    }
}

/// Plays a recording to its end.
pub async fn played(core: &Arc<Embedded>, recording: &Recording) -> Report {
    replay(&**core, recording, &Play::default(), |_| ControlFlow::Continue(())).await.unwrap()
}

/// A recording of `frames` frames with random keys, beginning at frame 100.
pub async fn recorded(frames: u32, every: u32) -> (Home, Recording) {
    let (home, core) = (Home::new(), core(true));
    done(&*core, vec![Op::Advance { frames: 100 }]).await;
    home.start(&core, "run", Start::State, every).await;
    play_at_random(&core, frames, &mut Random(4321)).await;
    let summary = home.recordings.stop("core").await.unwrap();
    assert_eq!((summary.frames, summary.reason.as_str()), (frames.into(), "stopped"));
    let recording = home.recording("run");
    (home, recording)
}
