//! The table: what is measured, beside what, and what must be reached.

use std::fs;
use std::time::Duration;

use anyhow::{Context, bail};
use framewire_e2e::{Framewire, paths};
use tempfile::TempDir;

use crate::bench::{self, Load};
use crate::frames::{self, Watch};
use crate::judge::{ALL_RIGHT, Bound, FULL_SPEED, Metric, at_least, below};
use crate::record::{About, Figure, Table};
use crate::sample::Sample;
use crate::stand::{Place, Script, Stand};
use crate::{bare, stampede, text, wrk};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Length of a run of requests.
    run: Duration,
    /// Length of one that stands beside it.
    beside: Duration,
    /// Length of one that is repeated.
    short: Duration,
    /// How often those are.
    repeats: usize,
}

impl Extent {
    /// What figures are stated from.
    pub const FULL: Extent = Extent {
        run: Duration::from_secs(30),
        beside: Duration::from_secs(10),
        short: Duration::from_secs(8),
        repeats: 3,
    };
    /// Enough to see whether all works.
    pub const QUICK: Extent = Extent {
        run: Duration::from_secs(5),
        beside: Duration::from_secs(5),
        short: Duration::from_secs(5),
        repeats: 1,
    };
}

/// The study's script, as what is measured beside ours.
const STUDY: &str = "the study's kind of script";

/// A line: its name, what it is, what must be reached, what it stands beside, how it is measured.
struct Line {
    name: &'static str,
    measure: &'static str,
    bounds: &'static [Bound],
    beside: Option<&'static str>,
    measured: fn(Extent) -> anyhow::Result<Runs>,
}

/// Runs of the other and of ours.
type Runs = (Vec<Sample>, Vec<Sample>);

const LINES: [Line; 8] = [
    Line {
        name: "text-window",
        measure: "sequential text requests on a raw socket, stock mGBA window",
        bounds: &[at_least(Metric::Rate, 6500.0), below(Metric::Mean, 0.2), ALL_RIGHT, FULL_SPEED],
        beside: Some(STUDY),
        measured: |extent| sequential(Place::Window, extent),
    },
    Line {
        name: "text-headless",
        measure: "the same, script in a headless libmgba host",
        bounds: &[at_least(Metric::Rate, 15_000.0), below(Metric::Mean, 0.1), ALL_RIGHT, FULL_SPEED],
        beside: Some(STUDY),
        measured: |extent| sequential(Place::Headless, extent),
    },
    Line {
        name: "http",
        measure: "HTTP echo, open loop, 10,000/s, stock mGBA window",
        // The last replies of the window come after its end.
        bounds: &[at_least(Metric::Rate, 9990.0), below(Metric::P99, 20.0), ALL_RIGHT, FULL_SPEED],
        beside: Some(STUDY),
        measured: |extent| echo(10_000, "uuid", extent),
    },
    Line {
        name: "http-cold",
        measure: "HTTP echo at 5/s, cold start, first request included, stock mGBA window",
        bounds: &[below(Metric::Mean, 4.0), below(Metric::Max, 60.0), ALL_RIGHT, FULL_SPEED],
        beside: Some(STUDY),
        measured: |extent| echo(5, "uuid", extent),
    },
    Line {
        name: "http-5000",
        measure: "HTTP echo of 5,000 bytes, open loop, 5,000/s, stock mGBA window",
        bounds: &[at_least(Metric::Rate, 4990.0), ALL_RIGHT, FULL_SPEED],
        beside: Some(STUDY),
        measured: |extent| echo(5000, "5000", extent),
    },
    Line {
        name: "stampede",
        measure: "100 clients connecting at once, stock mGBA window",
        bounds: &[ALL_RIGHT, below(Metric::Max, 50.0)],
        beside: Some(STUDY),
        measured: crowd,
    },
    Line {
        name: "read8",
        measure: "HTTP read8 on the embedded core, wrk -t1 -c60",
        bounds: &[at_least(Metric::Rate, 60_000.0), ALL_RIGHT, FULL_SPEED],
        beside: None,
        measured: read8,
    },
    Line {
        name: "unlimited",
        measure: "frames a second of the embedded core at unlimited speed, no clients",
        bounds: &[at_least(Metric::Share, 95.0)],
        beside: Some("a bare loop over libmgba"),
        measured: unlimited,
    },
];

/// Measures the lines named by `only`, or all.
///
/// # Errors
/// If something does not start that must.
pub fn measure(only: &[String], extent: Extent) -> anyhow::Result<Table> {
    if let Some(unknown) = only.iter().find(|name| LINES.iter().all(|line| line.name != name.as_str())) {
        let names: Vec<_> = LINES.iter().map(|line| line.name).collect();
        bail!("{unknown:?} is no line; --only takes some of {}", names.join(","));
    }
    let about = About::new();
    let mut figures = Vec::new();
    for line in LINES.iter().filter(|line| only.is_empty() || only.iter().any(|name| name == line.name)) {
        eprintln!("{}: {}", line.name, line.measure);
        let (other, ours, missed) = match (line.measured)(extent) {
            Ok((other, ours)) => {
                let missed = line.bounds.iter().filter_map(|bound| bound.missed(&ours, &other)).collect();
                (other, ours, missed)
            }
            // The other lines are worth having all the same.
            Err(error) => (Vec::new(), Vec::new(), vec![format!("cannot be measured: {error:#}")]),
        };
        missed.iter().for_each(|missed: &String| eprintln!("  missed: {missed}"));
        figures.push(Figure {
            name: line.name.to_owned(),
            measure: line.measure.to_owned(),
            bounds: line.bounds.to_vec(),
            beside: line.beside.map(str::to_owned),
            other,
            ours,
            missed,
        });
    }
    Ok(Table { about, figures })
}

/// Each script in turn, in an emulator of its own, so that neither has the other's load beside it.
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

fn sequential(place: Place, extent: Extent) -> anyhow::Result<Runs> {
    alternating(extent.repeats, |script| text::sequential(&Stand::start(place, script)?, extent.short))
}

fn echo(rate: u32, payload: &'static str, extent: Extent) -> anyhow::Result<Runs> {
    let load = |length| Load { rate, payload, length };
    alternating(1, |script| {
        let stand = Stand::start(Place::Window, script)?;
        match script {
            // Its text on a pool of connections, as nearly every server in front of it has it.
            Script::Study => bench::pooled(&stand, load(extent.beside)),
            Script::Ours => bench::bridged(&stand, load(extent.run)),
        }
    })
}

fn crowd(extent: Extent) -> anyhow::Result<Runs> {
    let run = |script| anyhow::Ok(stampede::stampede(&Stand::start(Place::Window, script)?, 100));
    // One is enough of those that take as long as their clients are patient.
    let other = vec![run(Script::Study)?];
    let ours = (0..extent.repeats).map(|_| run(Script::Ours));
    Ok((other, ours.collect::<anyhow::Result<_>>()?))
}

fn read8(extent: Extent) -> anyhow::Result<Runs> {
    let folder = TempDir::new().context("no folder for the ROM")?;
    let (rom, lua) = (folder.path().join("demo.gba"), folder.path().join("frames.lua"));
    let (counter, file) = frames::counter(folder.path());
    fs::copy(paths::rom(), &rom).and_then(|_| fs::write(&lua, counter)).context("cannot lay out the game")?;
    let [rom, lua] = [&rom, &lua].map(|path| path.to_string_lossy().into_owned());
    let server = Framewire::serve(&["--quiet", "--rom", &rom, "--lua", &lua])?;
    let url = format!("{}/core/read8?address=0x02000000", server.url());
    let runs = (0..extent.repeats).map(|_| {
        let watch = Watch::start(&file);
        let sample = wrk::run(&url, extent.short)?;
        Ok(Sample { frames: watch.stop(), ..sample })
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
