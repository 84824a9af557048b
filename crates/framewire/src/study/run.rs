//! A run of requests: `framewire bench` in a process of its own, whose report is kept as it is.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use framewire_loadtest::Stop;
use framewire_loadtest::report::Report;

use super::folder::Folder;
use super::programs;
use super::steps::{Load, Run, Script, Stand, Step};

/// Time between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Where a run's requests go, as addresses.
#[derive(Debug)]
pub struct Place {
    /// The script or the bridge; none in the tester's own process.
    pub address: Option<SocketAddr>,
    /// Where the frame number is read; none where the tester reads it itself.
    pub counter: Option<String>,
}

/// Does a run and keeps its report; `None` if it was stopped before its end.
///
/// # Errors
/// If it could not be done.
pub fn run(
    step: &Step,
    run: &Run,
    place: &Place,
    row: Duration,
    folder: &Folder,
    logs: &Path,
    stop: &Stop,
) -> anyhow::Result<Option<Report>> {
    let part = format!("{}.json.part", step.name);
    let mut process = programs::ourselves(logs, command(run, place, row, &part)?, folder.data())?;
    let status = loop {
        if stop.stopped() {
            process.kill();
            // Whatever it had written is no result.
            let _ = fs::remove_file(folder.data().join(&part));
            return Ok(None);
        }
        match process.wait_exit(LOOK) {
            Ok(status) => break status,
            Err(framewire_stock::Error::Timeout { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let path = folder.data().join(&part);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let report = match Report::from_json(&text) {
        Ok(report) => report,
        Err(_) => bail!("framewire bench ended with {status}: {}", process.stderr().trim()),
    };
    if report.cut_short {
        let _ = fs::remove_file(&path);
        return Ok(None);
    }
    let kept = folder.file(step);
    fs::rename(&path, &kept).with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(Some(report))
}

/// What is typed for it.
fn command(run: &Run, place: &Place, row: Duration, json: &str) -> anyhow::Result<Vec<OsString>> {
    let address = || place.address.context("the run needs an address");
    let mut words: Vec<String> = vec!["bench".to_owned()];
    match run.stand {
        Stand::Window { binary: true, .. } => words.push(format!("link://{}", address()?)),
        Stand::Window { script: Script::Ours, .. } => words.push(format!("marker://{}", address()?)),
        Stand::Window { .. } => words.extend([format!("marker://{}", address()?), "--raw".to_owned()]),
        Stand::Bridge => words.push(format!("http://{}/mgbaendpoint", address()?)),
        Stand::Embedded => words.push("embedded".to_owned()),
    }
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if let Some(strategy) = run.strategy {
        option("--strategy", strategy.to_string());
    }
    match run.load {
        Load::Rate(rate) => option("--rates", rate.to_string()),
        Load::Clients(clients) => option("--concurrency", clients.to_string()),
    }
    option("--duration", humantime::format_duration(row).to_string());
    option("--payload", run.bytes.map_or("uuid".to_owned(), |bytes| bytes.to_string()));
    if let Some(counter) = &place.counter {
        option("--emulator", counter.clone());
    }
    option("--json", json.to_owned());
    // A cold start is cold.
    words.extend(["--skip-check".to_owned(), "--quiet".to_owned()]);
    Ok(words.into_iter().map(OsString::from).collect())
}
