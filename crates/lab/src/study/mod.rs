//! `framewire-lab study`: repeats the load-test study of 2025 on this machine, and measures what has changed since
//! then.
//!
//! That study load-tested several versions of a server for scripts in mGBA. A *row* is a run of requests at one load,
//! as in the tables of the study. All rows are measured several times, in *passes*.
//!
//! - [`figures`]: the figures that the study published; [`plan`]: everything that is measured now, as a list of
//!   [`steps`];
//! - [`trials`]: the steps that each answer one question of the study;
//! - [`window`]: a stock mGBA with a script, used for many steps;
//! - [`measure`]: performs the steps that have no result yet; [`progress`]: shows the progress;
//! - [`ending`]: the step that ends a script's client; [`allocations`]: the step that counts the server's allocations;
//! - [`passes`]: combines the passes of a row, and shows their spread; [`rerun`]: measures some rows again;
//! - [`archive`]: the file of results, with which an interrupted study continues; [`results`]: the results in it that
//!   are not reports of `framewire bench`;
//! - [`report`]: writes the page from that file.

mod allocations;
mod archive;
mod ending;
mod figures;
mod measure;
mod passes;
mod plan;
mod progress;
mod report;
mod rerun;
mod results;
mod steps;
mod trials;
mod window;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use framewire_loadtest::Stop;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::programs;
use archive::{Archive, Machines, SessionOptions, StudyInfo};
use plan::GROUPS;
use steps::{Lengths, Step};

/// The largest number of windows at the same time.
const MOST_WINDOWS: usize = 16;
/// The exit code of a study that was stopped by a signal.
const STOPPED: u8 = 130;
/// The default folder of the full study.
const FULL: &str = "docs/study";
/// The default folder of a quick study.
const QUICK: &str = "target/study-quick";
/// How much a quick study measures.
const QUICK_LENGTHS: Lengths =
    Lengths { passes: 2, row: Duration::from_secs(2), idle: Duration::from_secs(20), windows: 6 };

/// Arguments of `framewire-lab study`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It takes half an hour, or 12 minutes with --quick. Run it on a machine that does nothing else. Ctrl+C stops it; the same \
command without --fresh continues from there. It opens mGBA windows on virtual displays of its own, and needs mgba-qt and Xvfb.")]
pub struct Args {
    /// Measure each row in two passes of 2 s instead of four passes of 3 s
    #[arg(long)]
    quick: bool,
    /// Remove earlier results
    #[arg(long)]
    fresh: bool,
    /// Measure only these groups: v1, v4, v5, v6, v7, beyond, kept, mux, stampede, ending, bridge, embedded,
    /// warm, retries, broken, nagle, unframed, waiting, garbage, limit, idle
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure low rates in this many windows at the same time: half of them, rounded down, for each script
    #[arg(long, value_name = "WINDOWS", default_value_t = Lengths::default().windows)]
    windows: usize,
    /// Measure a random tenth of the rows again, and compare it with the spread of the study
    #[arg(long, conflicts_with_all = ["fresh", "only", "add_machine", "report"])]
    rerun: bool,
    /// Choose the random rows of --rerun with this number
    #[arg(long, value_name = "NUMBER", requires = "rerun")]
    seed: Option<u64>,
    /// Copy the results about idle connections from another folder, where they were measured with --only idle
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["fresh", "only", "add_machine", "report", "rerun"])]
    take_idle: Option<PathBuf>,
    /// Continue a study of another machine; the page marks the rows that come from this machine
    #[arg(long, conflicts_with = "fresh")]
    add_machine: bool,
    /// Measure nothing; only write the page from the existing results
    #[arg(long, conflicts_with_all = ["fresh", "only"])]
    report: bool,
    /// The folder for results and pictures; the page is next to it and has its name plus `.md` [default: docs/study;
    /// quick: target/study-quick]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The shortest time for which a connection is kept idle [default: 30s; quick: 20s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    idle: Option<Duration>,
    /// Length of a row, and also the idle time if --idle is not given
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, hide = true)]
    row: Option<Duration>,
}

impl Args {
    fn lengths(&self) -> Lengths {
        let usual = if self.quick { QUICK_LENGTHS } else { Lengths::default() };
        Lengths {
            row: self.row.unwrap_or(usual.row),
            idle: self.idle.or(self.row).unwrap_or(usual.idle),
            windows: self.windows,
            ..usual
        }
    }

    fn out(&self) -> &Path {
        let usual = if self.quick { QUICK } else { FULL };
        self.out.as_deref().unwrap_or(Path::new(usual))
    }

    fn steps(&self) -> anyhow::Result<Vec<Step>> {
        if let Some(unknown) = self.only.iter().find(|name| !GROUPS.contains(&name.as_str())) {
            bail!("{unknown:?} is not a group; --only takes some of {}", GROUPS.join(","));
        }
        let mut steps = plan::all();
        steps.retain(|step| self.only.is_empty() || self.only.iter().any(|name| name == step.group));
        Ok(steps)
    }
}

/// Runs the command.
///
/// # Errors
/// If an argument is invalid, a program is missing, or a step failed. Results of earlier steps are kept.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = args.out();
    let page = page_of(folder)?;
    if args.report {
        report::write(&Archive::open(folder)?, &page)?;
        eprintln!("wrote {}", page.display());
        return Ok(ExitCode::SUCCESS);
    }
    let steps = args.steps()?;
    let lengths = args.lengths();
    if lengths.row.is_zero() {
        bail!("rows of 0 s; give --row a time such as 5s");
    }
    if !(1..=MOST_WINDOWS).contains(&lengths.windows) {
        bail!("--windows is {}; use a number of windows from 1 to {MOST_WINDOWS}", lengths.windows);
    }
    let machines = if args.add_machine { Machines::Several } else { Machines::One };
    let how = SessionOptions { command: crate::command_line(), machines, windows: lengths.windows };
    if let Some(other) = &args.take_idle {
        let mut archive = Archive::open(folder)?;
        archive.take_idle(&Archive::open(other)?, how)?;
        return write(&archive, &page).map(|()| ExitCode::SUCCESS);
    }
    programs::check()?;
    let stop = Stop::default();
    if args.rerun {
        return rerun(args, lengths, how, &stop);
    }
    Archive::prepare(folder)?;
    if args.fresh {
        Archive::clear(folder)?;
    }
    let mut archive = Archive::open(folder)?;
    archive.begin(StudyInfo::new(programs::mgba(), &lengths), how)?;

    stop_on_signals(&stop)?;
    let measured = measure::all(&mut archive, lengths, &stop, &steps);
    // The page is written even after an error. It shows the results so far.
    write(&archive, &page)?;
    measured?;
    Ok(if stop.stopped() { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS })
}

/// Measures a tenth of the rows again, and reports whether the results agree with the study.
fn rerun(args: &Args, lengths: Lengths, how: SessionOptions, stop: &Stop) -> anyhow::Result<ExitCode> {
    let folder = args.out();
    let mut archive = Archive::open(folder)?;
    stop_on_signals(stop)?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    if rerun::run(&mut archive, lengths, how, seed, stop)?.is_none() {
        return Ok(ExitCode::from(STOPPED));
    }
    write(&archive, &page_of(folder)?)?;
    let verdict = report::verdict(&archive)?;
    eprintln!("{}", verdict.words());
    Ok(if verdict.agrees() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn page_of(folder: &Path) -> anyhow::Result<PathBuf> {
    let name = folder.file_name().with_context(|| {
        format!("{} has no name of its own; give --out a folder such as {FULL}", folder.display())
    })?;
    let mut name = name.to_owned();
    name.push(".md");
    Ok(folder.with_file_name(name))
}

fn write(archive: &Archive, page: &Path) -> anyhow::Result<()> {
    archive.finish()?;
    report::write(archive, page)?;
    eprintln!("wrote {}", page.display());
    Ok(())
}

/// The first signal stops the study at its current step. The second signal ends the program.
fn stop_on_signals(stop: &Stop) -> anyhow::Result<()> {
    let stop = stop.clone();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut signals = runtime.block_on(async {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        anyhow::Ok([interrupt, terminate, listen(SignalKind::hangup())?])
    })?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            loop {
                let [interrupt, terminate, hangup] = &mut signals;
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                if stop.stopped() {
                    std::process::exit(STOPPED.into());
                }
                eprintln!(
                    "stopping; to continue, run the same command without --fresh (--rerun begins again). A second \
                     signal stops at once"
                );
                stop.stop();
            }
        });
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &str) -> Result<Args, clap::Error> {
        Line::try_parse_from(std::iter::once("study").chain(line.split_whitespace())).map(|line| line.args)
    }

    /// The error for a command line whose syntax is valid but whose values are not accepted.
    fn refusal(line: &str) -> String {
        run(&args(line).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn the_page_is_next_to_the_folder() {
        assert_eq!(page_of(Path::new("docs/study")).unwrap(), Path::new("docs/study.md"));
        assert_eq!(page_of(Path::new("docs/study/")).unwrap(), Path::new("docs/study.md"));
        assert_eq!(page_of(Path::new("study")).unwrap(), Path::new("study.md"));
        assert!(page_of(Path::new("..")).is_err());
    }

    #[test]
    fn a_quick_study_has_short_rows_and_a_folder_of_its_own() {
        let (full, quick) = (args("").unwrap(), args("--quick").unwrap());
        let rows = [&full, &quick].map(|args| (args.lengths().passes, args.lengths().row.as_secs()));
        assert_eq!(rows, [(4, 3), (2, 2)]);
        assert_eq!([full.out(), quick.out()], [Path::new("docs/study"), Path::new("target/study-quick")]);
        assert_eq!(args("--only v4,idle").unwrap().steps().unwrap().len(), 18);
        assert_eq!(args("--idle 200m").unwrap().lengths().idle, Duration::from_secs(12_000));
    }

    #[test]
    fn bad_arguments_are_refused_before_any_file_is_created() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("study");
        let out = out.display();
        let unknown = refusal(&format!("--out {out} --only v4,v9"));
        assert!(unknown.contains("\"v9\" is not a group") && unknown.contains("v4,v5"), "{unknown}");
        assert!(refusal(&format!("--out {out} --row 0s")).contains("give --row a time such as 5s"));
        assert!(refusal(&format!("--out {out} --windows 0")).contains("from 1 to 16"));
        assert!(refusal("--out ..").contains("give --out a folder"));
        assert!(refusal(&format!("--out {out} --report")).contains("make one with `framewire-lab study`"));
        let nothing = refusal(&format!("--out {out} --rerun"));
        assert!(nothing.contains("make one without --rerun"), "{nothing}");
        assert!(args("--rerun --fresh").is_err() && args("--seed 3").is_err());
        assert!(args("--report --fresh").is_err() && args("--report --only v4").is_err());
        assert!(args("--row soon").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_error_for_a_folder_that_cannot_be_written_names_the_option_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = Archive::prepare(&file.join("study")).unwrap_err().to_string();
        assert!(error.contains("--out"), "{error}");
    }
}
