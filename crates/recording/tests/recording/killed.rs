//! Tests with recordings of a process that is killed at a random time, or whose disk is full.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use framewire_protocol::Op;
use framewire_recording::{Ending, Options, Recordings, Start};

use crate::support::{Home, PATIENCE, Random, core, done, name, play_at_random, played, recorded, state};

/// The environment variable with the folder of recordings, for the process that is killed.
const FOLDER: &str = "FRAMEWIRE_TEST_KILLED_FOLDER";
/// The environment variable with the seed of that process's random numbers.
const SEED: &str = "FRAMEWIRE_TEST_KILLED_SEED";

/// The environment variable that sets how many recordings are made and replayed.
const COUNT: &str = "FRAMEWIRE_TEST_RECORDINGS";
/// The default for this number.
const USUAL_COUNT: u32 = 12;

/// The environment variable that sets the seed of the test's own random numbers.
const TEST_SEED: &str = "FRAMEWIRE_TEST_SEED";
/// The default seed.
const USUAL_TEST_SEED: u32 = 20_261_122;

/// After this time, recorded frames must be on the disk.
const SYNCED: Duration = Duration::from_millis(1100);

/// Not a test, but the process that is killed. Until then, it makes recordings and prints what it does. Some of the
/// recordings end before the process is killed.
#[tokio::test(flavor = "multi_thread")]
async fn killed_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let mut random = Random(std::env::var(SEED).unwrap().parse().unwrap());
    let recordings = Arc::new(Recordings::new(folder.into()));
    let core = core(true);
    let state = state(&core, 31).await;
    for number in 0.. {
        let recording = format!("{}-{number}", random.0);
        let start = if random.next().is_multiple_of(2) { Start::State } else { Start::PowerOn };
        let every = 1 + random.next() % 70;
        let options = Options { start, every, note: String::new(), replace: false };
        recordings.start("core", core.clone(), name(&recording), options).await.unwrap();
        // From now on, the recording's file is on the disk and can be played.
        println!("begun {recording}");
        let rounds = random.next() % 40;
        for _ in 0..rounds {
            play_at_random(&core, 1 + random.next() % 30, &mut random).await;
            println!("frames {}", recordings.active("core").await.unwrap().progress.frames);
            tokio::time::sleep(Duration::from_millis(u64::from(random.next() % 60))).await;
        }
        match random.next() % 4 {
            0 => drop(done(&*core, vec![Op::Reset {}]).await),
            1 => drop(done(&*core, vec![Op::LoadState { data: state.clone(), flags: 29 }]).await),
            _ => {}
        }
        let summary = recordings.stop("core").await.unwrap();
        println!("ended {} {}", summary.frames, summary.reason);
    }
}

/// The process that is killed, and the lines that it prints with their times.
struct KilledProcess {
    process: Child,
    lines: Receiver<(Instant, String)>,
}

impl KilledProcess {
    fn start(folder: &Path, seed: u32) -> KilledProcess {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["killed::killed_process", "--exact", "--nocapture"])
            .env(FOLDER, folder)
            .env(SEED, seed.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        KilledProcess { process, lines }
    }

    /// Waits until the first recording has begun, then for `after`, and kills the process. Returns the name of the last
    /// recording, and how many of its frames must be on the disk. `None` if that recording had already ended, or need
    /// not be on the disk yet.
    fn kill(mut self, after: Duration) -> Option<(String, u64)> {
        let begun = self.lines.iter().find(|(_, line)| line.contains("begun ")).expect("a recording");
        std::thread::sleep(after);
        let killed = Instant::now();
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let mut last = None;
        for (at, line) in std::iter::once(begun).chain(self.lines.iter()) {
            let on_disk = at + SYNCED < killed;
            if let Some((_, name)) = line.split_once("begun ") {
                last = Some((name.to_owned(), 0, on_disk));
            } else if line.starts_with("ended ") {
                last = None;
            } else if let (Some(frames), Some((_, least, true))) = (line.strip_prefix("frames "), &mut last)
                && on_disk
            {
                *least = frames.parse().unwrap();
            }
        }
        last.filter(|(_, _, on_disk)| *on_disk).map(|(name, frames, _)| (name, frames))
    }
}

/// Each recording is there under its own name, and its replay is identical. It contains at least the frames that ran
/// more than a second before the kill.
#[tokio::test(flavor = "multi_thread")]
async fn recordings_of_a_killed_process_are_recovered_and_replay_identically() {
    let count = std::env::var(COUNT).map_or(USUAL_COUNT, |count| count.parse().unwrap());
    let mut random = Random(std::env::var(TEST_SEED).map_or(USUAL_TEST_SEED, |seed| seed.parse().unwrap()));
    let (mut replayed, mut recovered, mut frames) = (0, 0, 0);
    let core = core(true);
    let (mut seed, mut after) = (0, Duration::ZERO);
    // On a busy machine, it can take longer than `SYNCED` until the frames are on the disk. In that case, measure
    // again, with the same seed and the same time until the kill.
    let mut bad = Vec::new();
    while replayed < count || !bad.is_empty() {
        if bad.is_empty() {
            seed = random.next();
            after = Duration::from_millis(u64::from(random.next() % 3000));
        } else {
            assert!(bad.len() < 10, "no result is good: {bad:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // If possible, in memory: a busy disk can take longer than `SYNCED` to write the frames.
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let process = KilledProcess::start(home.path(), seed);
        let least = process.kill(after);
        let recordings = Recordings::new(home.path().to_owned());
        for found in recordings.recover() {
            // If not even the state was written, a recording cannot be recovered.
            recovered += u32::from(found.outcome.is_ok());
        }
        let listed = recordings.list().unwrap();
        if let Some((name, least)) = least {
            // The recording exists, either recovered or complete before the kill.
            let found = listed.iter().find(|listed| listed.entry.name.as_str() == name);
            assert!(found.is_some(), "{name} is not recovered");
            let file = recordings.folder().read(&found.unwrap().entry.name).unwrap();
            let frames = framewire_recording::Recording::read(&file).unwrap().frames();
            if frames >= least {
                bad.clear();
            } else {
                bad.push(format!("{name}: {frames} of {least} frames"));
            }
        } else if !bad.is_empty() {
            bad.push("nothing had to be on the disk".to_owned());
        }
        for listed in listed {
            let file = recordings.folder().read(&listed.entry.name).unwrap();
            let recording = framewire_recording::Recording::read(&file).unwrap();
            assert!(matches!(recording.ending(), Ending::Whole(_)), "{:?}", recording.ending());
            let report = played(&core, &recording).await;
            assert_eq!(
                (report.divergence, report.frames),
                (None, recording.frames()),
                "{}",
                listed.entry.name
            );
            (replayed, frames) = (replayed + 1, frames + recording.frames());
        }
        let left: Vec<_> =
            fs::read_dir(home.path()).unwrap().flatten().map(|file| file.file_name()).collect();
        assert!(left.iter().all(|name| !name.as_encoded_bytes().starts_with(b".recording")), "{left:?}");
    }
    println!(
        "{replayed} recordings of {frames} frames, {recovered} of them recovered: all replay identically"
    );
}

/// After the crash, another recording may have taken the name of the unfinished recording.
#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_recording_gets_another_name_if_its_own_is_taken() {
    let home = Home::new();
    let core = core(true);
    home.start(&core, "run", Start::State, 10).await;
    done(&*core, vec![Op::Advance { frames: 30 }]).await;
    let folder = home.recordings.folder().path().to_owned();
    let unfinished = || {
        fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .find(|file| file.file_name().to_str().is_some_and(|name| name.starts_with(".recording-run-")))
    };
    // Copy the file of the recording in progress, to get a file like that of a killed process: without a lock.
    let path = unfinished().unwrap().path();
    crate::support::wait_for("the state and the frames", async || {
        let file = fs::read(&path).unwrap();
        framewire_recording::Recording::read(&file).is_ok_and(|recording| recording.frames() == 30)
    })
    .await;
    assert!(home.recordings.recover().is_empty(), "a recording in progress is not recovered");
    let left = fs::read(&path).unwrap();
    home.recordings.stop("core").await.unwrap();
    for (number, expected) in ["run-recovered", "run-recovered-2"].into_iter().enumerate() {
        // Cut the file in the middle of an entry.
        fs::write(folder.join(format!(".recording-run-abcde{number}")), &left[..left.len() - 2]).unwrap();
        let recovered = home.recordings.recover();
        assert_eq!(recovered.len(), 1);
        let (name, frames) = recovered[0].outcome.as_ref().unwrap();
        assert_eq!((recovered[0].wanted.as_str(), name.as_str()), ("run", expected));
        let recording = home.recording(expected);
        assert_eq!((*frames, recording.frames(), recording.head().recovered), (30, 30, true));
        let reason = "the program ended in the middle; recovered up to frame 30";
        assert_eq!(recording.ending(), &Ending::Whole(reason.to_owned()));
        assert_eq!(played(&core, &recording).await.divergence, None);
    }
    assert!(!home.recording("run").head().recovered);
    // A file with an incomplete state cannot be recovered.
    fs::write(folder.join(".recording-nothing-abcdef"), &left[..200]).unwrap();
    assert!(home.recordings.recover()[0].outcome.is_err());
    assert!(home.recordings.recover().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_start_at_the_same_time_recover_each_recording_once() {
    const FILES: usize = 20;
    const SERVERS: usize = 4;
    let (home, _recording) = recorded(30, 10).await;
    let folder = home.recordings.folder().path().to_owned();
    let whole = home.file("run");
    for number in 0..FILES {
        fs::write(folder.join(format!(".recording-n{number}-abcdef")), &whole[..whole.len() - 2]).unwrap();
    }
    let start = Arc::new(std::sync::Barrier::new(SERVERS));
    let servers: Vec<_> = (0..SERVERS)
        .map(|_| {
            let (folder, start) = (folder.clone(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                Recordings::new(folder).recover()
            })
        })
        .collect();
    let recovered = servers.into_iter().flat_map(|server| server.join().unwrap());
    let mut names: Vec<_> =
        recovered.map(|recovered| recovered.outcome.unwrap().0.as_str().to_owned()).collect();
    names.sort();
    let mut expected: Vec<_> = (0..FILES).map(|number| format!("n{number}")).collect();
    expected.sort();
    assert_eq!(names, expected);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), FILES + 1);
}

/// The file system is small: it has space for the state and little more.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_ends_a_recording_and_the_written_frames_can_be_played() {
    let home = tempfile::tempdir().unwrap();
    let small = home.path().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&small).output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        println!("skipped: no file system can be mounted here");
        return;
    }
    let _mount = Mount(small.clone());
    let recordings = Recordings::new(small.join("recordings"));
    let core = core(true);
    let options = Options { start: Start::State, every: 1, note: String::new(), replace: false };
    recordings.start("core", core.clone(), name("run"), options).await.unwrap();
    let mut random = Random(1);
    play_at_random(&core, 60, &mut random).await;
    fs::write(small.join("other"), vec![0; 8 << 20]).unwrap_err();
    let end = Instant::now() + PATIENCE;
    let ended = loop {
        play_at_random(&core, 100, &mut random).await;
        if let Some(ended) = recordings.active("core").await.unwrap().ended {
            break ended.unwrap();
        }
        assert!(Instant::now() < end, "the recording does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(ended.reason.contains("could not be written after frame"), "{}", ended.reason);
    assert!(ended.reason.contains("No space left"), "{}", ended.reason);
    assert!(ended.frames >= 30, "{}", ended.frames);
    let file = recordings.folder().read(&name("run")).unwrap();
    let recording = framewire_recording::Recording::read(&file).unwrap();
    assert_eq!((recording.frames(), recording.ending()), (ended.frames, &Ending::Whole(ended.reason)));
    let report = played(&core, &recording).await;
    assert_eq!((report.frames, report.divergence), (ended.frames, None));
}

#[cfg(target_os = "linux")]
struct Mount(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
