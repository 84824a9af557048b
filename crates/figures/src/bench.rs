//! Runs of `framewire bench`, in a process of its own.

use std::fs;
use std::time::Duration;

use anyhow::{Context, bail};
use framewire_e2e::Framewire;
use framewire_loadtest::Row;
use framewire_loadtest::report::Report;
use tempfile::TempDir;

use crate::sample::{Latency, Sample};
use crate::stand::{Script, Stand};

/// What a run may take beyond its length: replies that come late, and the program's own start.
const SLACK: Duration = Duration::from_secs(30);

/// An open load: requests are due at their times, whatever becomes of the ones before.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Requests a second.
    pub rate: u32,
    /// As `--payload` takes it.
    pub payload: &'static str,
    /// How long.
    pub length: Duration,
}

/// The load on the echo route of a bridge that was just started, in front of `stand`.
///
/// # Errors
/// If it could not be measured.
pub fn bridged(stand: &Stand, load: Load) -> anyhow::Result<Sample> {
    let bridge = stand.bridge()?;
    let url = format!("{}/mgbaendpoint", bridge.url());
    watched(stand, load, &[&url, "--strategy", "pool"])
}

/// The same load on the script itself: its text, on a pool of connections.
///
/// # Errors
/// If it could not be measured.
pub fn pooled(stand: &Stand, load: Load) -> anyhow::Result<Sample> {
    let url = format!("marker://{}", stand.address());
    let mut target = vec![url.as_str(), "--strategy", "pool"];
    if stand.script() == Script::Study {
        target.push("--raw");
    }
    watched(stand, load, &target)
}

fn watched(stand: &Stand, load: Load, target: &[&str]) -> anyhow::Result<Sample> {
    let watch = stand.watch();
    let sample = run(load, target)?;
    Ok(Sample { frames: watch.stop(), ..sample })
}

/// Runs a load on a target, as `framewire bench` is given it.
///
/// # Errors
/// If there is no report.
pub fn run(load: Load, target: &[&str]) -> anyhow::Result<Sample> {
    let folder = TempDir::new().context("no folder for a report")?;
    let json = folder.path().join("report.json");
    let (rate, length) = (load.rate.to_string(), format!("{}ms", load.length.as_millis()));
    let mut args = vec!["bench"];
    args.extend(target);
    args.extend(["--rates", &rate, "--duration", &length, "--payload", load.payload]);
    // A cold start is cold, and the frames are counted elsewhere.
    args.extend(["--emulator", "none", "--skip-check", "--quiet"]);
    let command = args.join(" ").replace(target[0], &without_port(target[0]));
    let path = json.to_string_lossy().into_owned();
    args.extend(["--json", &path]);
    let (status, _, words) = Framewire::run(&args, load.length + SLACK)?;
    let text = fs::read_to_string(&json).unwrap_or_default();
    let Ok(report) = Report::from_json(&text) else {
        bail!("framewire bench ended with {status}: {}", words.trim());
    };
    let row = report.rows.into_iter().next().context("framewire bench gave no row")?;
    Ok(sample(&row, &format!("framewire {command}")))
}

/// An address as it is worth keeping: a port that was free says nothing.
fn without_port(url: &str) -> String {
    let (front, rest) = url.rsplit_once(':').unwrap_or((url, ""));
    format!("{front}:PORT{}", rest.trim_start_matches(|character: char| character.is_ascii_digit()))
}

fn sample(row: &Row, command: &str) -> Sample {
    let latency = &row.intended;
    Sample {
        seconds: row.seconds,
        asked: row.asked,
        requests: row.requests,
        correct: row.correct,
        failures: row.failures.clone(),
        rate: Some(row.achieved),
        latency: (latency.count > 0).then_some(Latency {
            mean: latency.mean,
            p50: latency.p50,
            p99: latency.p99,
            max: latency.max,
        }),
        ..Sample::of(command)
    }
}
