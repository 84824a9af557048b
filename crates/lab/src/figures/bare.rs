//! Measures the frame rate of the embedded core at unlimited speed, and of a bare loop that only calls libmgba.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_lab::{Framewire, paths};
use tempfile::TempDir;

use super::sample::Sample;

/// How long the embedded core runs before its frames are counted.
const WARMING: Duration = Duration::from_millis(500);

/// The bare loop: a program compiled from `benches/bare.c` with the machine's own compiler and libmgba.
#[derive(Debug)]
pub struct Bare {
    program: PathBuf,
    _folder: TempDir,
}

impl Bare {
    /// Compiles the program.
    ///
    /// # Errors
    /// If there is no C compiler, or if libmgba and its headers are not installed.
    pub fn compile() -> anyhow::Result<Bare> {
        let folder = TempDir::new().context("no folder for the bare loop")?;
        let program = folder.path().join("bare");
        let output = Command::new("cc")
            .args(["-O2", "-std=gnu11", "-o"])
            .args([&program, &paths::root().join("benches/bare.c")])
            .arg("-lmgba")
            .output()
            .context("cannot run cc; tools/setup.sh test installs it")?;
        if !output.status.success() {
            bail!("cc: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(Bare { program, _folder: folder })
    }

    /// Runs frames for `length`, and returns their rate.
    pub fn run(&self, length: Duration) -> anyhow::Result<Sample> {
        let output = Command::new(&self.program)
            .arg(paths::rom())
            .arg(length.as_secs_f64().to_string())
            .output()
            .context("cannot run the bare loop")?;
        let words = String::from_utf8_lossy(&output.stdout);
        let Ok(rate) = words.trim().parse() else {
            bail!("the bare loop: {words}{}", String::from_utf8_lossy(&output.stderr));
        };
        Ok(Sample { seconds: length.as_secs_f64(), rate: Some(rate), ..Sample::of("bare.c") })
    }
}

/// Runs `framewire serve --speed unlimited` for `length`. Only the frame number is requested, at the beginning and the
/// end.
pub fn embedded(length: Duration) -> anyhow::Result<Sample> {
    let folder = TempDir::new().context("no folder for the ROM")?;
    let rom = folder.path().join("demo.gba");
    fs::copy(paths::rom(), &rom).context("cannot copy the demo game")?;
    let server = Framewire::serve(&["--quiet", "--speed", "unlimited", "--rom", &rom.to_string_lossy()])?;
    let http = server.http();
    let frame = || -> anyhow::Result<(Instant, f64)> {
        let reply = http.get("/core/currentframe")?;
        let frame =
            reply.text().parse().with_context(|| format!("{} is not a frame number", reply.text()))?;
        Ok((Instant::now(), frame))
    };
    std::thread::sleep(WARMING);
    let (start, first) = frame()?;
    std::thread::sleep(length);
    let (end, last) = frame()?;
    let seconds = (end - start).as_secs_f64();
    let client =
        "framewire serve --rom demo.gba --speed unlimited, asked for its frame at the beginning and the end";
    Ok(Sample { seconds, rate: Some((last - first) / seconds), ..Sample::of(client) })
}
