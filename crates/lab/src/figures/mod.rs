//! The table of figures in docs/performance.md, and the long run. Each line of the table has a measurement, and bounds
//! that Framewire must meet. Most lines also have an alternative that is measured for comparison.
//!
//! - [`wrk`], [`bare`]: ways of measuring, in addition to `framewire bench` and [`stampede`];
//! - [`sample`]: the result of a run; [`judge`]: compares results with their bounds;
//! - [`soak`]: the long run;
//! - [`record`]: the files of results; [`page`]: the results as Markdown.

mod bare;
mod judge;
pub mod page;
pub mod record;
mod sample;
pub mod soak;
mod wrk;

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_lab::{Framewire, paths};
use framewire_loadtest::Stop;
use framewire_loadtest::record::Latencies;
use framewire_loadtest::row::Summary;
use tempfile::TempDir;

use crate::bench::Bench;
use crate::frames::{self, FrameMeter};
use crate::setup::{self, Place, Script, Setup};
use crate::stampede;
use judge::{ALL_CORRECT, Bound, FULL_SPEED, Metric, at_least, below};
use record::{Figure, Figures, Provenance};
use sample::{Latency, Sample};

/// The longest wait for a reply to a text message.
const PATIENCE: Duration = Duration::from_secs(10);

/// The length of the measurements. A run is one measurement of Framewire or of an alternative.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// On the lines `http`, `http-cold` and `http-5000`: the length of the run of Framewire's script. These lines have
    /// one run of each script.
    run: Duration,
    /// On the same lines: the length of the run of the alternative script.
    alternative: Duration,
    /// On the lines `text-window`, `text-headless` and `read8`: the length of a run. A run of `unlimited` takes half of
    /// it.
    short: Duration,
    /// On the lines `text-window`, `text-headless`, `read8` and `stampede`: the number of runs. But `stampede` has only
    /// one run of the alternative. The line `unlimited` has `2 * repeats - 1` runs.
    repeats: usize,
}

impl Extent {
    /// The extent for the published figures.
    pub const FULL: Extent = Extent {
        run: Duration::from_secs(30),
        alternative: Duration::from_secs(10),
        short: Duration::from_secs(8),
        repeats: 3,
    };
    /// A short extent, enough to see whether everything works.
    pub const QUICK: Extent = Extent {
        run: Duration::from_secs(5),
        alternative: Duration::from_secs(5),
        short: Duration::from_secs(5),
        repeats: 1,
    };
}

/// The alternative to Framewire's script: a script of the kind that the study of 2025 used (docs/study.md).
const STUDY: &str = "the study's kind of script";

/// A line of the table.
struct Line {
    name: &'static str,
    measure: &'static str,
    bounds: &'static [Bound],
    alternative: Option<&'static str>,
    measured: fn(Extent) -> anyhow::Result<Runs>,
}

/// The runs of the alternative, and the runs of Framewire.
type Runs = (Vec<Sample>, Vec<Sample>);

const LINES: [Line; 8] = [
    Line {
        name: "text-window",
        measure: "sequential text requests on a raw socket, stock mGBA window",
        bounds: &[at_least(Metric::Rate, 6500.0), below(Metric::Mean, 0.2), ALL_CORRECT, FULL_SPEED],
        alternative: Some(STUDY),
        measured: |extent| in_turn(Place::Window, extent),
    },
    Line {
        name: "text-headless",
        measure: "the same, script in a headless libmgba host",
        bounds: &[at_least(Metric::Rate, 15_000.0), below(Metric::Mean, 0.1), ALL_CORRECT, FULL_SPEED],
        alternative: Some(STUDY),
        measured: |extent| in_turn(Place::Headless, extent),
    },
    Line {
        name: "http",
        measure: "HTTP echo, open loop, 10,000/s, stock mGBA window",
        // The bound is slightly below 10,000, because the last replies arrive after the end of the run.
        bounds: &[at_least(Metric::Rate, 9990.0), below(Metric::P99, 20.0), ALL_CORRECT, FULL_SPEED],
        alternative: Some(STUDY),
        measured: |extent| echo(10_000, "uuid", extent),
    },
    Line {
        name: "http-cold",
        measure: "HTTP echo at 5/s, cold start, first request included, stock mGBA window",
        bounds: &[below(Metric::Mean, 4.0), below(Metric::Max, 60.0), ALL_CORRECT, FULL_SPEED],
        alternative: Some(STUDY),
        measured: |extent| echo(5, "uuid", extent),
    },
    Line {
        name: "http-5000",
        measure: "HTTP echo of 5,000 bytes, open loop, 5,000/s, stock mGBA window",
        bounds: &[at_least(Metric::Rate, 4990.0), ALL_CORRECT, FULL_SPEED],
        alternative: Some(STUDY),
        measured: |extent| echo(5000, "5000", extent),
    },
    Line {
        name: "stampede",
        measure: "100 clients connecting at once, stock mGBA window",
        bounds: &[ALL_CORRECT, below(Metric::Max, 50.0)],
        alternative: Some(STUDY),
        measured: crowd,
    },
    Line {
        name: "read8",
        measure: "HTTP read8 on the embedded core, wrk -t1 -c60",
        bounds: &[at_least(Metric::Rate, 60_000.0), ALL_CORRECT, FULL_SPEED],
        alternative: None,
        measured: read8,
    },
    Line {
        name: "unlimited",
        measure: "frames per second of the embedded core at unlimited speed, no clients",
        bounds: &[at_least(Metric::Share, 95.0)],
        alternative: Some("a bare loop over libmgba"),
        measured: unlimited,
    },
];

/// Measures the lines that `only` names, or all lines if it is empty.
///
/// # Errors
/// If `only` has a name that is not the name of a line.
pub fn measure(only: &[String], extent: Extent) -> anyhow::Result<Figures> {
    if let Some(unknown) = only.iter().find(|name| LINES.iter().all(|line| line.name != name.as_str())) {
        let names: Vec<_> = LINES.iter().map(|line| line.name).collect();
        bail!("{unknown:?} is not a line; --only takes some of {}", names.join(","));
    }
    let about = Provenance::new();
    let mut figures = Vec::new();
    for line in LINES.iter().filter(|line| only.is_empty() || only.iter().any(|name| name == line.name)) {
        eprintln!("{}: {}", line.name, line.measure);
        let (other, ours, missed) = match (line.measured)(extent) {
            Ok((other, ours)) => {
                let missed = line.bounds.iter().filter_map(|bound| bound.missed(&ours, &other)).collect();
                (other, ours, missed)
            }
            // The other lines of the table are still measured.
            Err(error) => (Vec::new(), Vec::new(), vec![format!("cannot be measured: {error:#}")]),
        };
        missed.iter().for_each(|missed: &String| eprintln!("  missed: {missed}"));
        figures.push(Figure {
            name: line.name.to_owned(),
            measure: line.measure.to_owned(),
            bounds: line.bounds.to_vec(),
            alternative: line.alternative.map(str::to_owned),
            other,
            ours,
            missed,
        });
    }
    Ok(Figures { about, figures })
}

/// Measures the two scripts alternately. Each run has an emulator of its own, so neither script runs while the other
/// is measured.
fn alternating(
    repeats: usize,
    mut run: impl FnMut(Script) -> anyhow::Result<Sample>,
) -> anyhow::Result<Runs> {
    let (mut other, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        for script in Script::BOTH {
            let runs = if script == Script::Ours { &mut ours } else { &mut other };
            runs.push(run(script)?);
        }
    }
    Ok((other, ours))
}

fn in_turn(place: Place, extent: Extent) -> anyhow::Result<Runs> {
    alternating(extent.repeats, |script| sequential(&Setup::settled(place, script)?, extent.short))
}

/// Sends text messages on a raw socket for `length`, each after the reply to the previous one.
///
/// # Errors
/// If a message gets no correct reply.
fn sequential(setup: &Setup, length: Duration) -> anyhow::Result<Sample> {
    let prefix = setup.script.echo_prefix();
    let mut client = setup.client(PATIENCE)?;
    let mut latencies = Latencies::default();
    let meter = FrameMeter::start(&setup.frames);
    let start = Instant::now();
    while start.elapsed() < length {
        latencies.record(client.echo(prefix)?);
    }
    let seconds = start.elapsed().as_secs_f64();
    let answered = latencies.count();
    Ok(Sample {
        seconds,
        requests: answered,
        correct: answered,
        rate: Some(answered as f64 / seconds),
        latency: Latency::of(&Summary::of(&latencies, 0)),
        frames: meter.stop(),
        ..Sample::of(
            "a blocking TCP client; each message is a new UUID, sent after the reply to the previous one",
        )
    })
}

fn echo(rate: u32, payload: &'static str, extent: Extent) -> anyhow::Result<Runs> {
    alternating(1, |script| {
        let setup = Setup::settled(Place::Window, script)?;
        match script {
            // This script is measured without a bridge, with its text protocol on a pool of connections.
            Script::Study => {
                let target = vec![format!("marker://{}", setup.address), "--raw".to_owned()];
                bench(&setup, target, rate, payload, extent.alternative)
            }
            Script::Ours => {
                let bridge = setup::bridge(setup.address)?;
                bench(&setup, vec![format!("{}/mgbaendpoint", bridge.url())], rate, payload, extent.run)
            }
        }
    })
}

/// Measures a run of `framewire bench` on a pool of connections, and the frame rate of `setup` during that run.
fn bench(
    setup: &Setup,
    target: Vec<String>,
    rate: u32,
    payload: &str,
    length: Duration,
) -> anyhow::Result<Sample> {
    let bench = Bench::pool(target, rate, payload, length);
    let meter = FrameMeter::start(&setup.frames);
    let report = bench.run(&Stop::default())?;
    let row = report.and_then(|report| report.rows.into_iter().next());
    let row = row.context("framewire bench gave no row")?;
    Ok(Sample { frames: meter.stop(), ..Sample::of_row(&row, &bench) })
}

fn crowd(extent: Extent) -> anyhow::Result<Runs> {
    let run = |script| -> anyhow::Result<Sample> {
        let setup = Setup::settled(Place::Window, script)?;
        let start = Instant::now();
        let outcomes = stampede::run(&setup, 100);
        Ok(Sample::of_stampede(&outcomes, start.elapsed()))
    };
    // The other script gets only one run, because some of its clients get no reply, and the run takes as long as they
    // wait for one.
    let other = vec![run(Script::Study)?];
    let ours = (0..extent.repeats).map(|_| run(Script::Ours));
    Ok((other, ours.collect::<anyhow::Result<_>>()?))
}

fn read8(extent: Extent) -> anyhow::Result<Runs> {
    let folder = TempDir::new().context("no folder for the ROM")?;
    let (rom, lua) = (folder.path().join("demo.gba"), folder.path().join("frames.lua"));
    let (counter, file) = frames::counter(folder.path());
    fs::copy(paths::rom(), &rom)
        .and_then(|_| fs::write(&lua, counter))
        .context("cannot write the game or its script")?;
    let [rom, lua] = [&rom, &lua].map(|path| path.to_string_lossy().into_owned());
    let server = Framewire::serve(&["--quiet", "--rom", &rom, "--lua", &lua])?;
    let url = format!("{}/core/read8?address=0x02000000", server.url());
    let runs = (0..extent.repeats).map(|_| {
        let meter = FrameMeter::start(&file);
        let sample = wrk::run(&url, extent.short)?;
        Ok(Sample { frames: meter.stop(), ..sample })
    });
    Ok((Vec::new(), runs.collect::<anyhow::Result<_>>()?))
}

fn unlimited(extent: Extent) -> anyhow::Result<Runs> {
    let bare = bare::Bare::compile()?;
    let (mut other, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..2 * extent.repeats - 1 {
        other.push(bare.run(extent.short / 2)?);
        ours.push(bare::embedded(extent.short / 2)?);
    }
    Ok((other, ours))
}
