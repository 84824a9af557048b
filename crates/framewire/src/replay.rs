//! `framewire replay`: plays a recording in an embedded core and compares the result.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use framewire_emulator::embedded::{Config, Hardware, Options as CoreOptions, Palette, Patching, Speed};
use framewire_emulator::{Clock, Embedded};
use framewire_recording::replay::{Divergence, PlayOptions, ReplayClock, ReplayError, Report, replay};
use framewire_recording::{Ending, FormatError, MAX_FILE, Recording};
use indicatif::{ProgressBar, ProgressStyle};

use crate::choose::{config_without_save, patching};
use crate::output;
use crate::settings::{GB_PALETTE_HELP, NO_SGB_BORDERS_HELP};

/// The number of frames from one picture hash to the next, if `--write` adds hashes to a recording without picture
/// hashes.
const DEFAULT_EVERY: u32 = 60;

/// The exit code if the replay differs, or the recording is damaged.
const DIFFERS: u8 = 1;
/// The exit code for an error: the recording could not be played, or its file could not be replaced.
const IMPOSSIBLE: u8 = 2;

/// Arguments of `framewire replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The exit code is 0 if all pictures and memory that could be compared are equal, 1 if some differ or the recording is \
damaged (the output names the frame), and 2 if it could not be played. With --write, it is 0 only if the hashes were \
replaced. The game's own save file is neither read nor written.")]
pub struct Args {
    /// The recording
    file: PathBuf,
    /// The game of the recording [default: the built-in demo game]
    #[arg(long, value_name = "FILE")]
    rom: Option<PathBuf>,
    /// The IPS, UPS or BPS patch of the game; `none` applies no patch [default: a patch next to the ROM]
    #[arg(long, value_name = "FILE|none", requires = "rom")]
    patch: Option<PathBuf>,
    /// The console's BIOS, for a recording that was made with it
    #[arg(long, value_name = "FILE")]
    bios: Option<PathBuf>,
    #[arg(long, value_name = "COLORS", help = GB_PALETTE_HELP)]
    gb_palette: Option<Palette>,
    #[arg(long, help = NO_SGB_BORDERS_HELP)]
    no_sgb_borders: bool,
    /// Take a hash of the picture every N frames, and compare those that the recording has as well [default: as
    /// recorded]
    #[arg(long, value_name = "N", value_parser = crate::commands::whole(1, 3600))]
    every: Option<u32>,
    /// What drives the clock of a cartridge: `wall` (this machine's clock), `frames` (it starts at the present time
    /// and advances with the frames), or a time at which it starts, such as 2026-01-31T12:00:00+01:00 [default: as
    /// recorded]
    #[arg(long, value_name = "wall|frames|TIME")]
    clock: Option<Clock>,
    /// Replace the recording's picture hashes with those of this replay
    #[arg(long)]
    write: bool,
}

/// Plays a recording and prints the result.
///
/// # Errors
/// Never: errors are printed here, because their exit code is 2 and not 1.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match play(args) {
        Ok(equal) => Ok(if equal { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) }),
        Err(error) => {
            output::notice(format_args!("framewire: {error:#}"));
            Ok(ExitCode::from(IMPOSSIBLE))
        }
    }
}

/// Plays the recording. Returns whether everything that was compared is equal.
fn play(args: &Args) -> anyhow::Result<bool> {
    let shown = args.file.display();
    let file = framewire_files::read(&args.file, MAX_FILE).with_context(|| format!("cannot read {shown}"))?;
    let recording = match Recording::read(&file) {
        Err(FormatError::Start(damage)) => {
            output::line(format_args!("{shown}: {damage}"))?;
            return Ok(false);
        }
        recording => recording.with_context(|| shown.to_string())?,
    };
    let core = core(args)?;
    let every = match (args.every, recording.head().picture_interval, args.write) {
        (None, 0, true) => Some(DEFAULT_EVERY),
        (every, ..) => every,
    };
    let clock = if args.clock.is_some() { ReplayClock::Own } else { ReplayClock::Recorded };
    let options = PlayOptions { every, through: args.write, clock, ..PlayOptions::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let bar = bar(recording.frames());
    let begun = Instant::now();
    let progress = |frames| {
        bar.set_position(frames);
        ControlFlow::Continue(())
    };
    let report = runtime.block_on(replay(&core, &recording, &options, progress));
    bar.finish_and_clear();
    let report = match report {
        Err(ReplayError::OtherGame { recorded, recorded_checksum, .. }) => bail!(
            "{shown} is a recording of {recorded} (checksum {recorded_checksum:08x}), and {} is another game; give its ROM with --rom FILE",
            args.rom.as_ref().map_or("the built-in game".into(), |rom| rom.to_string_lossy())
        ),
        report => report?,
    };
    let rate = report.frames as f64 / begun.elapsed().as_secs_f64();
    output::line(format_args!(
        "{shown}: {} of {} frames of {} at {rate:.0} frames/s, {} hashes of pictures and {} of memory compared",
        report.frames,
        recording.frames(),
        recording.head().title,
        report.pictures,
        report.memories
    ))?;
    print(&report, &recording)?;
    if args.write {
        return write(&args.file, &recording, &report, every.unwrap_or(recording.head().picture_interval));
    }
    Ok(report.is_equal())
}

/// Prints what differs or is damaged.
fn print(report: &Report, recording: &Recording) -> anyhow::Result<()> {
    match report.divergence {
        Some(Divergence { frame, agreed, what, recorded, played }) => {
            let counter = u64::from(recording.head().frame) + frame;
            output::line(format_args!(
                "differs at frame {frame} (frame counter {counter}): the {} is {played:08x}, but {recorded:08x} was \
                 recorded; equal at frame {agreed}",
                what.name()
            ))?;
            if !report.clock_known {
                output::line(
                    "the recording does not contain the clock of the console; if the game reads the clock, that may be the reason (set \
                     it with --clock TIME)",
                )?;
            }
        }
        None if report.pictures + report.memories == 0 => output::line("there was nothing to compare")?,
        None => output::line("all are equal")?,
    }
    if let Some(damage) = &report.damage {
        output::line(damage)?;
    }
    Ok(())
}

/// Atomically replaces the recording's file with one that contains the picture hashes of this replay. Returns true,
/// because the recording now agrees with the replay.
fn write(path: &Path, recording: &Recording, report: &Report, every: u32) -> anyhow::Result<bool> {
    if let Ending::Damaged(_) = recording.ending() {
        bail!("{} is damaged, so it is not changed", path.display());
    }
    // Picture hashes may differ, because another version of the emulator may draw differently. Memory must be equal.
    if report.differing_memories > 0 {
        bail!("{} does not replay as it was recorded, so it is not changed", path.display());
    }
    let bytes = recording.write_with(Vec::new(), every, &report.hashes);
    bytes
        .and_then(|bytes| framewire_files::replace(path, &bytes))
        .with_context(|| format!("cannot write {}", path.display()))?;
    output::line(format_args!("{}: {} hashes of pictures written", path.display(), report.hashes.len()))?;
    Ok(true)
}

/// A paused core with the game.
fn core(args: &Args) -> anyhow::Result<Embedded> {
    let patching = args.patch.as_deref().map_or(Patching::NextTo, patching);
    // The recording's state contains the console's model and the save memory, so they are not set here.
    let hardware = Hardware {
        bios: args.bios.clone(),
        palette: args.gb_palette,
        borders: !args.no_sgb_borders,
        ..Hardware::default()
    };
    let (speed, clock) = (Speed::Unlimited, args.clock.unwrap_or_default());
    let config = config_without_save(args.rom.as_deref(), CoreOptions { patching, hardware });
    let config = Config { speed, paused: true, clock, ..config };
    Embedded::start(config).context("cannot start the embedded core")
}

/// A progress bar, which is shown only on a terminal.
fn bar(frames: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} frames, {per_sec}");
    ProgressBar::new(frames).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
