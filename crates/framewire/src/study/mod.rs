//! `framewire study`: the load-test study of 2025 again, on this machine, and what came of it since.
//!
//! - [`figures`]: what was published then; [`plan`]: everything that is measured now, in order, as [`steps`];
//! - [`programs`]: what must be installed, and this program in other roles; [`window`]: a stock mGBA with a script, the
//!   study's kind (`study.lua`) or ours; [`counter`]: its frame number; [`clients`]: single requests;
//! - [`run`]: rows of requests, by `framewire bench`; [`stampede`], [`ending`] with [`silent`]: the other steps;
//!   [`results`]: what those leave;
//! - [`folder`]: the files, so that a study goes on where it was interrupted; [`progress`]: what is seen meanwhile;
//! - [`measure`]: does the steps that are left; [`report`]: the page, from the files alone.

mod clients;
mod counter;
mod ending;
mod figures;
mod folder;
mod measure;
mod plan;
mod programs;
mod progress;
mod report;
mod results;
mod run;
mod silent;
mod stampede;
mod steps;
mod window;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use framewire_loadtest::Stop;

use folder::{About, Folder};
use measure::Measure;
use plan::{GROUPS, IDLE};
use steps::Step;

/// Exit code of a study that was stopped by a signal.
const STOPPED: u8 = 130;
/// Where the full study lies in a checkout, and a quick one.
const FULL: &str = "docs/study";
const QUICK: &str = "target/study-quick";

/// Arguments of `framewire study`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It takes less than an hour, or a quarter of one with --quick, and wants a machine that does nothing else. Ctrl+C ends it; the \
same command goes on where it was. It opens mGBA in windows of its own on displays of its own, and needs mgba-qt and \
Xvfb.")]
pub struct Args {
    /// Rows of 5 s instead of 30 s
    #[arg(long)]
    quick: bool,
    /// Throw away what was measured before
    #[arg(long)]
    fresh: bool,
    /// Measure only these groups: v4, v5, v6, v7, beyond, kept, mux, repeat, stampede, ending,
    /// bridge, embedded, idle
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure nothing, only write the page of what there is
    #[arg(long, conflicts_with_all = ["fresh", "only"])]
    report: bool,
    /// The folder for results and pictures; the page lies beside it, with `.md` after the name [default: docs/study;
    /// quick: target/study-quick]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Length of a row
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, hide = true)]
    row: Option<Duration>,
}

impl Args {
    fn row(&self) -> Duration {
        self.row.unwrap_or(Duration::from_secs(if self.quick { 5 } else { 30 }))
    }

    fn idle(&self) -> Duration {
        match self.row {
            Some(row) => row,
            None => Duration::from_secs(if self.quick { 20 } else { 600 }),
        }
    }

    fn out(&self) -> &Path {
        let usual = if self.quick { QUICK } else { FULL };
        self.out.as_deref().unwrap_or(Path::new(usual))
    }

    fn steps(&self) -> anyhow::Result<Vec<Step>> {
        let known: Vec<_> = GROUPS.iter().copied().chain([IDLE]).collect();
        if let Some(unknown) = self.only.iter().find(|name| !known.contains(&name.as_str())) {
            bail!("{unknown:?} is no group; --only takes some of {}", known.join(","));
        }
        let mut steps = plan::all();
        steps.retain(|step| self.only.is_empty() || self.only.iter().any(|name| name == step.group));
        Ok(steps)
    }
}

/// Runs it.
///
/// # Errors
/// If something is missing, or a step cannot be done; what was measured before stays.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder_path = args.out();
    let page = page_of(folder_path)?;
    if args.report {
        return write(&Folder::existing(folder_path), &page).map(|()| ExitCode::SUCCESS);
    }
    let steps = args.steps()?;
    if args.row().is_zero() {
        bail!("rows of 0 s; give --row a time such as 5s");
    }
    let mgba = programs::check()?;
    let folder = Folder::open(folder_path)?;
    if args.fresh {
        folder.clear(&plan::all())?;
    }
    let about = About::new(mgba, args.row().as_secs_f64(), args.idle().as_secs_f64());
    let command = std::iter::once("framewire".to_owned()).chain(std::env::args().skip(1)).collect();
    folder.begin(about, command)?;

    let stop = Stop::default();
    stop_on_signals(&stop)?;
    crate::open_files::raise_limit();
    let measured = Measure::new(&folder, args.row(), args.idle(), &stop)?.all(&steps);
    // Whatever went wrong, what is there is worth a page.
    write(&folder, &page)?;
    measured?;
    Ok(if stop.stopped() { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS })
}

fn page_of(folder: &Path) -> anyhow::Result<PathBuf> {
    let name = folder.file_name().with_context(|| {
        format!("{} has no name of its own; give --out a folder such as {FULL}", folder.display())
    })?;
    let mut name = name.to_owned();
    name.push(".md");
    Ok(folder.with_file_name(name))
}

fn write(folder: &Folder, page: &Path) -> anyhow::Result<()> {
    report::write(folder, page)?;
    eprintln!("wrote {}", page.display());
    Ok(())
}

/// The first signal ends the step under way, the second the program.
fn stop_on_signals(stop: &Stop) -> anyhow::Result<()> {
    let stop = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signal = runtime.block_on(async { crate::signals::stop() })?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let name = signal.await;
            eprintln!("{name}: ending; the same command goes on from here. Once more to end at once");
            stop.stop();
            if let Ok(again) = crate::signals::stop() {
                again.await;
            }
            std::process::exit(STOPPED.into());
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

    /// How it refuses a command line that can be read.
    fn refusal(line: &str) -> String {
        run(&args(line).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn the_page_lies_beside_the_folder() {
        assert_eq!(page_of(Path::new("docs/study")).unwrap(), Path::new("docs/study.md"));
        assert_eq!(page_of(Path::new("docs/study/")).unwrap(), Path::new("docs/study.md"));
        assert_eq!(page_of(Path::new("study")).unwrap(), Path::new("study.md"));
        assert!(page_of(Path::new("..")).is_err());
    }

    #[test]
    fn a_quick_study_has_short_rows_and_a_place_of_its_own() {
        let (full, quick) = (args("").unwrap(), args("--quick").unwrap());
        assert_eq!([full.row(), quick.row()], [30, 5].map(Duration::from_secs));
        assert_eq!([full.out(), quick.out()], [Path::new("docs/study"), Path::new("target/study-quick")]);
        assert_eq!(args("--only v4,idle").unwrap().steps().unwrap().len(), 12);
    }

    #[test]
    fn bad_arguments_are_refused_before_anything_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("study");
        let out = out.display();
        let unknown = refusal(&format!("--out {out} --only v4,v9"));
        assert!(unknown.contains("\"v9\" is no group") && unknown.contains("v4,v5"), "{unknown}");
        assert!(refusal(&format!("--out {out} --row 0s")).contains("give --row a time such as 5s"));
        assert!(refusal("--out ..").contains("give --out a folder"));
        assert!(refusal(&format!("--out {out} --report")).contains("make one with `framewire study`"));
        assert!(args("--report --fresh").is_err() && args("--report --only v4").is_err());
        assert!(args("--row soon").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_refused_with_what_to_type() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = Folder::open(&file.join("study")).unwrap_err().to_string();
        assert!(error.contains("--out"), "{error}");
    }
}
