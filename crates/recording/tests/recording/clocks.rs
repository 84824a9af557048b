//! Tests with games that read the cartridge's clock: replays equal their recordings.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use framewire_emulator::embedded::{Config, Rom, Speed};
use framewire_emulator::{Clock, Embedded};
use framewire_protocol::{Op, Value};
use framewire_recording::replay::{PlayOptions as Play, ReplayClock, replay};
use framewire_recording::{Recording, Start};
use tempfile::TempDir;

use crate::support::{Home, done, played, wait_for};

/// The path of a small game that reads a clock. The first call builds the games.
fn game(file: &str) -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let rom = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rom");
        let build = format!("BUILD={}", folder.path().display());
        let made = Command::new("make").args(["--silent", "-C", rom, "clocks", &build]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        folder
    });
    folder.path().join(file)
}

/// Starts a game that reads a clock, in a new folder, so that the game has no save yet.
fn core(file: &str, speed: Speed, clock: Clock) -> (TempDir, Arc<Embedded>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::copy(game(file), &path).unwrap();
    let config = Config { speed, paused: true, clock, ..Config::new(Rom::File(path)) };
    (folder, Arc::new(Embedded::start(config).unwrap()))
}

/// The time that the game has read from the clock. On the GBA: year to second in BCD, two digits per byte. On the Game
/// Boy: seconds, minutes, hours, days.
async fn fields(core: &Embedded, file: &str) -> Vec<u8> {
    let read = match file {
        "clock.gba" => Op::ReadRange { address: 0x0200_0000, length: 7 },
        _ => Op::ReadRange { address: 0xC000, length: 5 },
    };
    match done(core, vec![read]).await.remove(0) {
        Value::Bytes(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

/// The time that the game has read, in seconds since midnight.
async fn seconds(core: &Embedded, file: &str) -> u32 {
    let fields = fields(core, file).await;
    let decimal = |byte: u8| u32::from(byte >> 4) * 10 + u32::from(byte & 15);
    match file {
        "clock.gba" => decimal(fields[4] & 0x3F) * 3600 + decimal(fields[5]) * 60 + decimal(fields[6]),
        _ => u32::from(fields[2]) * 3600 + u32::from(fields[1]) * 60 + u32::from(fields[0]),
    }
}

/// Replays the recording `times` times, and checks that no replay differs from it.
async fn assert_equal(recording: &Recording, file: &str, times: u32) {
    for _ in 0..times {
        let (_folder, other) = core(file, Speed::Unlimited, Clock::Wall);
        let report = played(&other, recording).await;
        assert_eq!((report.divergence, &report.damage), (None, &None), "{file}");
        assert!(report.pictures > 0 && report.memories > 0);
    }
}

/// The environment variable that sets how many times each recording is replayed.
const TIMES: &str = "FRAMEWIRE_TEST_REPLAYS";
/// The default for this number.
const USUAL_TIMES: u32 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_game_with_a_clock_replays_identically_at_any_speed_and_after_a_pause() {
    let times = std::env::var(TIMES).map_or(USUAL_TIMES, |times| times.parse().unwrap());
    for file in ["clock.gba", "clock.gb"] {
        for speed in [Speed::Times(1.0), Speed::Unlimited] {
            for clock in [Clock::Wall, Clock::Frames] {
                let (_folder, core) = core(file, speed, clock);
                done(&*core, vec![Op::Advance { frames: 100 }]).await;
                let home = Home::new();
                home.start(&core, "clock", Start::State, 10).await;
                done(&*core, vec![Op::Resume {}]).await;
                let frames = async || home.recordings.active("core").await.unwrap().progress.frames;
                wait_for("a second", async || frames().await > 60).await;
                // While the game is paused, the host's clock continues.
                done(&*core, vec![Op::Pause {}]).await;
                tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
                done(&*core, vec![Op::Resume {}]).await;
                let before = frames().await;
                wait_for("another second", async || frames().await > before + 70).await;
                let summary = home.recordings.stop("core").await.unwrap();
                assert_eq!(summary.reason, "stopped");
                assert_equal(&home.recording("clock"), file, times).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_with_a_fixed_start_advances_only_with_the_frames() {
    for file in ["clock.gba", "clock.gb"] {
        // A time zone that this machine probably does not use.
        let clock: Clock = "2031-05-06T12:34:50+05:45".parse().unwrap();
        let (_folder, core) = core(file, Speed::Unlimited, clock);
        done(&*core, vec![Op::Advance { frames: 3 }]).await;
        if file == "clock.gba" {
            assert_eq!(fields(&core, file).await, [0x31, 0x05, 0x06, 0x02, 0x12, 0x34, 0x50]);
        }
        let first = seconds(&core, file).await;
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        done(&*core, vec![Op::Advance { frames: 1 }]).await;
        assert_eq!(seconds(&core, file).await, first, "{file}: only one frame has passed");
        done(&*core, vec![Op::Advance { frames: 597 }]).await;
        assert_eq!(seconds(&core, file).await, first + 10, "{file}");
        // A reset does not change the clock, but a loaded state sets it.
        let state = match done(&*core, vec![Op::SaveState { flags: 31 }]).await.remove(0) {
            Value::Bytes(state) => state,
            other => panic!("{other:?}"),
        };
        done(&*core, vec![Op::Advance { frames: 600 }, Op::Reset {}, Op::Advance { frames: 3 }]).await;
        if file == "clock.gba" {
            assert_eq!(seconds(&core, file).await, first + 20, "{file}: after a reset");
        }
        let load = Op::LoadState { data: state, flags: 29 };
        done(&*core, vec![load, Op::Advance { frames: 60 }]).await;
        assert_eq!(seconds(&core, file).await, first + 11, "{file}: after the state was loaded");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_follows_the_host_again_after_a_recording_and_a_replay() {
    let (_folder, core) = core("clock.gba", Speed::Unlimited, Clock::Wall);
    let home = Home::new();
    home.start(&core, "clock", Start::State, 10).await;
    // Two minutes of the game, as fast as possible. The clock advances with the frames, so it is ahead of the host's.
    done(&*core, vec![Op::Advance { frames: 3600 }]).await;
    done(&*core, vec![Op::Advance { frames: 3600 }]).await;
    let ahead = seconds(&core, "clock.gba").await;
    home.recordings.stop("core").await.unwrap();
    done(&*core, vec![Op::Advance { frames: 3 }]).await;
    let after = seconds(&core, "clock.gba").await;
    assert!((ahead + 86_400 - after) % 86_400 > 60, "{ahead} {after}");
    played(&core, &home.recording("clock")).await;
    done(&*core, vec![Op::Advance { frames: 3 }]).await;
    assert!((ahead + 86_400 - seconds(&core, "clock.gba").await) % 86_400 > 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_with_the_emulators_own_clock_differs_from_the_recording() {
    let clock: Clock = "2031-05-06T12:34:50.500+05:45".parse().unwrap();
    let (_folder, first) = core("clock.gba", Speed::Unlimited, clock);
    let home = Home::new();
    home.start(&first, "clock", Start::State, 10).await;
    done(&*first, vec![Op::Advance { frames: 100 }]).await;
    home.recordings.stop("core").await.unwrap();
    let recording = home.recording("clock");
    assert_eq!(recording.head().clock, "2031-05-06T12:34:50.500+05:45");
    let (_folder, other) = core("clock.gba", Speed::Unlimited, Clock::Frames);
    let own = Play { clock: ReplayClock::Own, ..Play::default() };
    let report = replay(&*other, &recording, &own, |_| std::ops::ControlFlow::Continue(())).await.unwrap();
    assert!(report.divergence.is_some());
    assert_eq!(played(&other, &recording).await.divergence, None);
}
