//! Measures how fast cores run, compared with a bare loop that calls the installed libmgba. Also measures how much time
//! and memory 500 cores need in one process.
//!
//!     cores BARE [SECONDS]    BARE is `benches/bare.c`, compiled; SECONDS is the length of a run, 1 if it is left out
//!
//! `make bench-cores` runs this program, which prints JSON. Each ROM runs for five rounds. In each round, it runs in
//! the bare loop, then in a core that draws, and then in a core that does not draw. The results are medians of the
//! rounds. The profile with which libmgba is optimised was recorded with these ROMs, except `count`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use framewire_libmgba::{BUILD, Core};
use serde_json::{Value, json};

const USAGE: &str = "usage: cores BARE [SECONDS]";
const ROUNDS: usize = 5;
/// Frames before a measurement; `benches/bare.c` runs the same number.
const WARM_UP: u32 = 300;
const CORES: usize = 500;
/// Frames that each of the 500 cores runs before memory is measured a second time.
const FRAMES: u32 = 60;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (bare, seconds) = match arguments.as_slice() {
        [bare] => (bare, 1.0),
        [bare, seconds] => (bare, seconds.parse()?),
        _ => return Err(USAGE.into()),
    };
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir()?;
    let demo = folder.path().join("demo.gba");
    fs::copy(crate_folder.join("../../rom/framewire-demo.gba"), &demo)?;
    // This comes first, while nothing else in this process uses memory.
    let many = many(&demo)?;
    let mut roms = vec![("demo", "GBA", true, demo)];
    for (name, console, trained) in [("bitmap", "GBA", true), ("scroll", "GB", true), ("count", "GB", false)]
    {
        let rom = if trained {
            bytes_of_hex(&fs::read_to_string(crate_folder.join(format!("programs/{name}.hex")))?)
        } else {
            counting_rom()
        };
        let path = folder.path().join(name).with_extension(console.to_lowercase());
        fs::write(&path, rom)?;
        roms.push((name, console, trained, path));
    }
    let mut rows = Vec::new();
    for (name, console, trained, rom) in &roms {
        let mut row = measure(Path::new(bare), rom, Duration::from_secs_f64(seconds))?;
        row["rom"] = json!(name);
        row["console"] = json!(console);
        row["in_the_profile"] = json!(trained);
        rows.push(row);
    }
    let mean = |name: &str| {
        let ratios = rows.iter().filter_map(|row| row[name].as_f64());
        (ratios.map(f64::ln).sum::<f64>() / rows.len() as f64).exp()
    };
    let result = json!({
        "command": "make bench-cores",
        "processor": processor(),
        "processors": std::thread::available_parallelism()?.get(),
        "libmgba": BUILD,
        "seconds_per_run": seconds,
        "rounds": ROUNDS,
        "geometric_means": {"drawn_to_bare": mean("drawn_to_bare"), "undrawn_to_bare": mean("undrawn_to_bare")},
        "roms": rows,
        "many_cores": many,
    });
    println!("{}", serde_json::to_string_pretty(&result)?);
    Ok(())
}

/// Measures the frames per second of one ROM in the bare loop, in a core that draws, and in a core that does not draw.
fn measure(bare: &Path, rom: &Path, length: Duration) -> Result<Value> {
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        rates[0].push(bare_rate(bare, rom, length)?);
        rates[1].push(rate(rom, length, true)?);
        rates[2].push(rate(rom, length, false)?);
    }
    let [bare, drawn, undrawn] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[ROUNDS / 2]
    });
    Ok(json!({
        "bare": bare,
        "drawn": drawn,
        "undrawn": undrawn,
        "drawn_to_bare": drawn / bare,
        "undrawn_to_bare": undrawn / bare,
    }))
}

fn bare_rate(bare: &Path, rom: &Path, length: Duration) -> Result<f64> {
    let output = Command::new(bare).arg(rom).arg(length.as_secs_f64().to_string()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.trim().parse();
    rate.map_err(|_| format!("{}: {text}{}", bare.display(), String::from_utf8_lossy(&output.stderr)).into())
}

fn rate(rom: &Path, length: Duration, draws: bool) -> Result<f64> {
    let mut core = Core::open(rom)?;
    core.set_drawing(draws);
    (0..WARM_UP).for_each(|_| core.run_frame());
    let begin = Instant::now();
    let mut frames = 0;
    while begin.elapsed() < length {
        core.run_frame();
        frames += 1;
    }
    Ok(f64::from(frames) / begin.elapsed().as_secs_f64())
}

/// Opens many cores of the demo game, and runs each for a second of the game.
fn many(rom: &Path) -> Result<Value> {
    let before = resident()?;
    let begin = Instant::now();
    let mut cores = (0..CORES).map(|_| Core::open(rom)).collect::<std::result::Result<Vec<_>, _>>()?;
    let opened = begin.elapsed();
    let memory_opened = resident()? - before;
    let begin = Instant::now();
    for core in &mut cores {
        (0..FRAMES).for_each(|_| core.run_frame());
    }
    let run = begin.elapsed();
    let memory_run = resident()? - before;
    let each = |bytes: u64| bytes as f64 / CORES as f64 / f64::from(1 << 20);
    Ok(json!({
        "cores": CORES,
        "seconds_to_open_all": opened.as_secs_f64(),
        "mib_per_core_opened": each(memory_opened),
        "frames_per_core": FRAMES,
        "seconds_for_these_frames": run.as_secs_f64(),
        "mib_per_core_after_frames": each(memory_run),
    }))
}

/// Resident memory of this process, in bytes.
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    let kib: u64 = line.trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    name.map_or("unknown", |(_, name)| name.trim()).to_owned()
}

/// The ROM that a file of `programs/` describes; `programs/train.c` reads the same files.
fn bytes_of_hex(text: &str) -> Vec<u8> {
    let mut rom = vec![0; 0x8000];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let code = line.split(';').next().unwrap_or_default();
        let Some((address, bytes)) = code.split_once(':') else { continue };
        let Ok(address) = usize::from_str_radix(address.trim(), 16) else { continue };
        let bytes = bytes.split_whitespace().filter_map(|byte| u8::from_str_radix(byte, 16).ok());
        rom[address..].iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    }
    rom
}

/// A Game Boy ROM that counts forever.
fn counting_rom() -> Vec<u8> {
    let mut rom = vec![0; 0x8000];
    rom[0x100..0x104].copy_from_slice(&[0x00, 0xC3, 0x50, 0x01]); // nop; jp 0x150
    rom[0x104..0x108].copy_from_slice(&[0xCE, 0xED, 0x66, 0x66]); // the beginning of the logo
    rom[0x134..0x139].copy_from_slice(b"COUNT");
    rom[0x14D] = rom[0x134..0x14D].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte).wrapping_sub(1));
    // ld hl, 0xC000; inc (hl); jr back to inc
    rom[0x150..0x156].copy_from_slice(&[0x21, 0x00, 0xC0, 0x34, 0x18, 0xFD]);
    rom
}
