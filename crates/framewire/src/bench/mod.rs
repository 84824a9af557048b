//! `framewire bench`: measures a server, an emulator's script or the embedded core under load.
//!
//! - [`args`]: what can be typed, and the plans it means;
//! - [`target`]: what an address leads to; [`script_target`] and [`embedded_target`]: how those are measured;
//! - [`emulator`]: the frame counter beside a run;
//! - [`measure`]: the runs, one after the other, or the search for a limit;
//! - [`live`]: what is seen meanwhile; [`output`]: what is written in the end;
//! - [`compare`]: `framewire bench compare`.

mod args;
mod compare;
#[cfg(feature = "embedded")]
mod embedded_target;
mod emulator;
mod live;
mod measure;
mod output;
mod script_target;
mod target;

use std::process::ExitCode;
use std::time::SystemTime;

use framewire_loadtest::Stop;
use framewire_loadtest::report::{Report, TargetInfo, markdown};

use measure::Bench;
use output::Output;
use target::Measured;

/// Exit code of a run that was stopped by a signal.
const STOPPED: u8 = 130;

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
    /// Hold two reports of `--json` side by side
    Compare(compare::Args),
}

/// Runs it.
///
/// # Errors
/// If something that was typed cannot be done; nothing was measured then.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Some(Command::Compare(args)) => compare::run(&args),
        None => bench(&args.run),
    }
}

fn bench(args: &args::RunArgs) -> anyhow::Result<ExitCode> {
    let plans = args.plans()?;
    let search = args.search()?;
    let measured = Measured::new(args)?;
    let plans: Vec<_> = plans.into_iter().map(|plan| measured.fit(plan)).collect::<Result<_, _>>()?;
    let started = SystemTime::now();
    let output = Output::prepare(args, started)?;
    if !args.skip_check {
        measured.check()?;
    }
    let (probe, counter) = emulator::probe(args, &measured)?.unzip();

    let info = TargetInfo { url: measured.url(), strategy: measured.strategy(), counter };
    let tool = format!("framewire {}", env!("CARGO_PKG_VERSION"));
    let report = Report::new(tool, command_line(), info, &plans[0]);
    let stop = Stop::default();
    stop_on_signals(&stop)?;
    let mut bench = Bench { measured, probe, stop, output, report, rest: args.rest };
    match search {
        Some((search, goal)) => bench.search(&plans[0], &search, &goal)?,
        None => bench.rows(&plans)?,
    }
    let Bench { report, output, .. } = bench;
    println!("{}", markdown::report(&report));
    output.write(&report)?;

    let mut code = ExitCode::SUCCESS;
    if let Some(goal) = args.goal.as_ref().filter(|_| !args.find_limit) {
        for row in &report.rows {
            for missed in goal.missed(row) {
                println!("Missed at {}: {missed}", row.load());
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(if report.cut_short { ExitCode::from(STOPPED) } else { code })
}

/// What was typed, without the folder that the program lies in.
fn command_line() -> Vec<String> {
    std::iter::once("framewire".to_owned()).chain(std::env::args().skip(1)).collect()
}

/// The first signal ends the run in good order, the second the program.
fn stop_on_signals(stop: &Stop) -> anyhow::Result<()> {
    let stop = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signal = runtime.block_on(async { crate::signals::stop() })?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let name = signal.await;
            eprintln!("{name}: ending early with what was measured; once more to end at once");
            stop.stop();
            if let Ok(again) = crate::signals::stop() {
                again.await;
            }
            std::process::exit(STOPPED.into());
        });
    });
    Ok(())
}
