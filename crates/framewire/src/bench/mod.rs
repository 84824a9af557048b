//! `framewire bench`: measures a server, an emulator's script or the embedded core under load.
//!
//! - [`args`]: the command line, and the plans that it describes;
//! - [`target`]: the target that the command line names; [`script`] and [`embedded_target`]: how scripts and cores are
//!   measured;
//! - [`emulator`]: reads the emulator's frame counter during a run;
//! - [`measure`]: performs the runs one after the other, or searches for a limit;
//! - [`live`]: shows the progress of a run; [`output`]: writes files at the end;
//! - [`compare`]: `framewire bench compare`.

mod args;
mod compare;
#[cfg(feature = "embedded")]
mod embedded_target;
mod emulator;
mod live;
mod measure;
mod output;
mod script;
mod target;

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use framewire_loadtest::Stop;
use framewire_loadtest::report::{Report, Verdict, markdown};

use crate::process::{INTERRUPTED, set_limit, stop_signal};
use measure::Bench;
use output::Output;
use target::BenchTarget;

/// Arguments of `framewire bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: args::RunArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Compare two reports that `--json` wrote
    Compare(compare::Args),
}

/// Runs `framewire bench`.
///
/// # Errors
/// If the command line is not valid, the target cannot be reached, a run cannot be performed, or a file cannot be
/// written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Some(Command::Compare(args)) => compare::run(&args),
        None => bench(&args.run),
    }
}

fn bench(args: &args::RunArgs) -> anyhow::Result<ExitCode> {
    let plans = args.plans()?;
    let search = args.search()?;
    let measured = BenchTarget::new(args)?;
    let plans: Vec<_> = plans.into_iter().map(|plan| measured.fit(plan)).collect::<Result<_, _>>()?;
    let started = SystemTime::now();
    let output = Output::prepare(args, started)?;
    // A pool can have more connections than the usual limit on open files allows.
    set_limit(false);
    let stop = Stop::default();
    stop_on_signals(&stop)?;
    if !args.skip_check {
        measured.check()?;
    }
    let (probe, counter) = emulator::probe(args, &measured)?.unzip();
    if stop.stopped() {
        // Nothing was measured, so the files of an earlier report stay.
        return Ok(ExitCode::from(INTERRUPTED));
    }

    let info = measured.info(args, counter);
    let tool = format!("framewire {}", env!("CARGO_PKG_VERSION"));
    let report = Report::new(tool, command_line(), info, &plans[0]);
    let mut bench = Bench { measured, probe, stop, output, report, rest: args.rest };
    match search {
        Some((search, goal)) => bench.search(&plans[0], &search, &goal)?,
        None => bench.rows(&plans)?,
    }
    let Bench { mut report, output, .. } = bench;
    let goal = args.goal.as_ref().filter(|_| !args.find_limit);
    report.verdict = goal.map(|goal| Verdict::of(goal, &report.rows));
    // The files come first, because printing can fail. But if a file cannot be written, the result is still printed.
    let written = output.write(&report);
    crate::output::line(markdown::report(&report))?;
    written?;

    let missed = match &report.limit {
        Some(limit) => limit.rate.is_none(),
        None => report.verdict.as_ref().is_some_and(|verdict| !verdict.missed.is_empty()),
    };
    let code = if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    Ok(if report.cut_short { ExitCode::from(INTERRUPTED) } else { code })
}

/// The command line for the report, without secrets in headers. It also leaves out the folders of the program and of
/// absolute paths, which mean nothing on another machine.
fn command_line() -> Vec<String> {
    let words =
        std::env::args_os().skip(1).map(|word| without_secret(&without_folder(&word.to_string_lossy())));
    std::iter::once("framewire".to_owned()).chain(words).collect()
}

/// Removes the folder from an absolute path, even if the path follows `--option=`, or `@` in the value of an option.
/// Returns other words unchanged.
fn without_folder(word: &str) -> String {
    let (start, value) = if let Some(path) = word.strip_prefix('@') {
        ("@".to_owned(), path)
    } else if let Some((name, path)) = word.split_once("=@")
        && (name.starts_with('-') || name == "contains" || name == "equals")
    {
        (format!("{name}=@"), path)
    } else {
        match word.split_once('=') {
            Some((option, value)) if option.starts_with('-') => (format!("{option}="), value),
            _ => (String::new(), word),
        }
    };
    let path = Path::new(value);
    let name = path.file_name().filter(|_| path.is_absolute());
    name.map_or(word.to_owned(), |name| format!("{start}{}", name.to_string_lossy()))
}

/// Removes the value from a header line that contains a secret. Returns other words unchanged.
fn without_secret(word: &str) -> String {
    const SECRET: [&str; 3] = ["authorization", "cookie", "x-api-key"];
    let Some((name, _)) = word.split_once(':') else { return word.to_owned() };
    // The header's name may follow an option, as in `-qHCookie`. This also finds `Proxy-Authorization`.
    let end = name.trim_end().to_ascii_lowercase();
    if SECRET.iter().any(|secret| end.ends_with(secret)) { format!("{name}: ...") } else { word.to_owned() }
}

/// Makes the first signal end the run, so that its results are printed, and the second signal end the program at once.
fn stop_on_signals(stop: &Stop) -> anyhow::Result<()> {
    let stop = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signal = runtime.block_on(async { stop_signal() })?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let name = signal.await;
            // Begin to listen before the line is printed, so that a signal right after the line is not lost.
            let again = stop_signal();
            crate::output::notice(format_args!(
                "{name}: ending early and reporting what was measured; repeat the signal to end at once"
            ));
            stop.stop();
            if let Ok(again) = again {
                again.await;
            }
            std::process::exit(INTERRUPTED.into());
        });
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_command_has_no_secrets() {
        let words = [
            "Authorization: Bearer x",
            "--header=cookie: a=b",
            "-HProxy-Authorization: x",
            "-H=X-Api-Key: y",
            "-qHX-Api-Key: y",
            "Accept: text/plain",
        ];
        let recorded = words.map(without_secret);
        let expected = [
            "Authorization: ...",
            "--header=cookie: ...",
            "-HProxy-Authorization: ...",
            "-H=X-Api-Key: ...",
            "-qHX-Api-Key: ...",
            "Accept: text/plain",
        ];
        assert_eq!(recorded, expected);
    }

    #[test]
    fn a_recorded_command_names_files_without_their_folders() {
        let words = [
            "--json",
            "/home/someone/out/a.json",
            "--html=/tmp/b.html",
            "http://localhost/a?b=/c",
            "out/d.hdr",
        ];
        let recorded = words.map(without_folder);
        assert_eq!(recorded, ["--json", "a.json", "--html=b.html", "http://localhost/a?b=/c", "out/d.hdr"]);
        let words = [
            "@/home/someone/a.json",
            "--body=@/tmp/b.json",
            "contains=@/tmp/c",
            "--check=equals=@/tmp/d",
            "--body={\"e\": 1}",
            "@f/g",
        ];
        let recorded = words.map(without_folder);
        let expected =
            ["@a.json", "--body=@b.json", "contains=@c", "--check=equals=@d", "--body={\"e\": 1}", "@f/g"];
        assert_eq!(recorded, expected);
    }
}
