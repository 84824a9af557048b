use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use framewire_loadtest::engine::Interval;
use framewire_loadtest::report::hdr_log::HdrLog;
use framewire_loadtest::report::{Report, export, html};

use super::args::RunArgs;

/// Formats a report as text.
type Text = fn(&Report) -> String;

/// The requested files. They are written after all measurements, so an existing file stays complete until then.
#[derive(Debug)]
pub struct Output {
    /// Each file, with its exporter.
    texts: Vec<(PathBuf, Text)>,
    hdr: Option<(HdrLog, PathBuf)>,
    /// The start of the measurement, from which the times in the HDR log are counted.
    started: SystemTime,
    /// Whether `--quiet` is set: only the result is shown.
    pub quiet: bool,
}

impl Output {
    /// Checks that all files can be written, and that no file is named for two outputs.
    pub fn prepare(args: &RunArgs, started: SystemTime) -> anyhow::Result<Output> {
        let texts: [(_, _, Text); 4] = [
            ("--json", &args.json, Report::to_json),
            ("--html", &args.html, html::page),
            ("--csv", &args.csv, export::csv),
            ("--prometheus", &args.prometheus, export::prometheus),
        ];
        let mut places = Vec::new();
        let named = texts.iter().map(|(option, path, _)| (*option, *path));
        for (option, path) in named.chain([("--hdr", &args.hdr)]) {
            let Some(path) = path else { continue };
            let place = check(path).with_context(|| {
                format!(
                    "cannot write {}; name a file in a folder that exists and that you may write to",
                    path.display()
                )
            })?;
            if let Some((other, _)) = places.iter().find(|(_, taken)| *taken == place) {
                bail!("{other} and {option} are both {}; give each a different file", path.display());
            }
            places.push((option, place));
        }
        let hdr = args.hdr.as_ref().map(|path| (HdrLog::begin(started), path.clone()));
        let texts = texts.into_iter().filter_map(|(_, path, text)| Some((path.clone()?, text)));
        Ok(Output { texts: texts.collect(), hdr, started, quiet: args.quiet })
    }

    /// The time since the start of the measurement. The measurement starts before its first run.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed().unwrap_or_default()
    }

    /// Adds an interval of the run `tag` to the HDR log. `start` is the time from the start of the measurement to
    /// the end of this run's warm-up.
    pub fn interval(&self, tag: &str, start: Duration, interval: &Interval) {
        if let Some((log, _)) = &self.hdr {
            log.add(tag, start, interval);
        }
    }

    /// Writes all files. If one of them cannot be written, still writes the others.
    ///
    /// # Errors
    /// The first error.
    pub fn write(self, report: &Report) -> anyhow::Result<()> {
        let mut result = Ok(());
        for (path, text) in &self.texts {
            let written = write(path, text(report).as_bytes());
            result = result.and(written);
        }
        if let Some((log, path)) = self.hdr {
            let written = log.finish().map_err(anyhow::Error::from).and_then(|log| write(&path, &log));
            result = result.and(written);
        }
        result
    }
}

/// Checks that a file can be written later, without changing it now, and returns its real path.
fn check(path: &Path) -> io::Result<PathBuf> {
    if is_pipe(path) {
        // Opening a pipe would wait for its reader, and closing it would end the reader's input. A pipe such as
        // /dev/stdout has no real path.
        return Ok(path.to_owned());
    }
    if path.exists() {
        OpenOptions::new().append(true).open(path)?;
        // Two names of one device are accepted, because a device does not lose what was written to it before.
        return if path.is_file() { path.canonicalize() } else { Ok(path.to_owned()) };
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    framewire_files::check_writable(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    if !path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes()) {
        // The path ends with `/` or `/.`, so it can only be a folder.
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(folder.canonicalize()?.join(name))
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_path: &Path) -> bool {
    false
}

/// Whether standard output goes to this file.
#[cfg(unix)]
fn is_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let stdout =
        io::stdout().as_fd().try_clone_to_owned().and_then(|stdout| std::fs::File::from(stdout).metadata());
    stdout.and_then(|stdout| Ok((stdout, path.metadata()?))).is_ok_and(|(stdout, file)| {
        file.is_file() && (stdout.dev(), stdout.ino()) == (file.dev(), file.ino())
    })
}

#[cfg(not(unix))]
fn is_stdout(_path: &Path) -> bool {
    false
}

/// Replaces a file. If it is a device, a pipe or the file of standard output, writes to it.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = if is_stdout(path) {
        io::stdout().write_all(bytes)
    } else if path.exists() && !path.is_file() {
        OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(bytes))
    } else {
        framewire_files::replace(path, bytes).map(drop)
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}
