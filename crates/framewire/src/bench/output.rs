use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use framewire_loadtest::engine::Interval;
use framewire_loadtest::report::hdr_log::HdrLog;
use framewire_loadtest::report::{Report, html};

use super::args::RunArgs;

/// The files that were asked for.
#[derive(Debug)]
pub struct Output {
    json: Option<PathBuf>,
    html: Option<PathBuf>,
    hdr: Option<(HdrLog, PathBuf)>,
    started: SystemTime,
    quiet: bool,
}

impl Output {
    /// Refuses files that cannot be written. What stood in them stays until the result is there, but for the HDR log,
    /// which grows as the runs go on.
    pub fn prepare(args: &RunArgs, started: SystemTime) -> anyhow::Result<Output> {
        for path in [&args.json, &args.html].into_iter().flatten() {
            writable(path, OpenOptions::new().create(true).append(true))?;
        }
        let hdr = match &args.hdr {
            None => None,
            Some(path) => {
                let file = writable(path, OpenOptions::new().create(true).write(true).truncate(true))?;
                Some((HdrLog::begin(BufWriter::new(file), started), path.clone()))
            }
        };
        Ok(Output { json: args.json.clone(), html: args.html.clone(), hdr, started, quiet: args.quiet })
    }

    /// Whether only the result is shown.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// Time since the first run began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed().unwrap_or_default()
    }

    /// Takes an interval of the run `tag` whose window began at `start`.
    pub fn interval(&self, tag: &str, start: Duration, interval: &Interval) {
        if let Some((log, _)) = &self.hdr {
            log.add(tag, start, interval);
        }
    }

    /// Writes all files.
    pub fn write(self, report: &Report) -> anyhow::Result<()> {
        let write = |path: &Path, text: String| {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        if let Some(path) = &self.json {
            write(path, report.to_json())?;
        }
        if let Some(path) = &self.html {
            write(path, html::page(report))?;
        }
        if let Some((log, path)) = self.hdr {
            log.finish().with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

fn writable(path: &Path, options: &OpenOptions) -> anyhow::Result<File> {
    options.open(path).with_context(|| {
        format!("cannot write {}; name a file in a folder that exists and is yours", path.display())
    })
}
