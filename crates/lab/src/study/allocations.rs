//! Counts the allocations of `framewire serve` with heaptrack's library, which writes a line to a file for each
//! allocation.

use std::fs;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use framewire_lab::{Framewire, Http};

use super::results::Allocated;
use crate::setup::Setup;

/// Debian's path of the library.
const LIBRARY: &str = "/usr/lib/heaptrack/libheaptrack_preload.so";
/// The longest wait for the first answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the library may take to write its buffered lines.
const WRITING: Duration = Duration::from_millis(500);

/// A bridge whose allocations are counted.
#[derive(Debug)]
pub struct CountedBridge {
    /// The bridge.
    pub bridge: Framewire,
    file: PathBuf,
    read: u64,
}

impl CountedBridge {
    /// Starts a bridge to a script. The library writes a file to the folder `logs`: the record of the allocations.
    ///
    /// # Errors
    /// If heaptrack is not installed, or the bridge does not start or answer.
    pub fn start(setup: &Setup, logs: &Path) -> anyhow::Result<CountedBridge> {
        if !Path::new(LIBRARY).exists() {
            bail!("{LIBRARY} is not there; install it: sudo apt install heaptrack");
        }
        let file = logs.join("heaptrack.raw");
        let (library, record) =
            (format!("LD_PRELOAD={LIBRARY}"), format!("DUMP_HEAPTRACK_OUTPUT={}", file.display()));
        let wrapper = ["env", &library, &record];
        let address = setup.address.to_string();
        let bridge = Framewire::serve_by(&wrapper, &["--quiet", "--attach", &address])?;
        let start = Instant::now();
        while Http::new(bridge.url()).get("/mgbaendpoint?message=a").map_or(0, |reply| reply.status) != 200 {
            if start.elapsed() > PATIENCE {
                bail!("framewire serve --attach {address} does not answer with heaptrack: {}", bridge.log());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(CountedBridge { bridge, file, read: 0 })
    }

    /// Returns the allocations since the last call, or since the start.
    ///
    /// # Errors
    /// If the library wrote no record.
    pub fn allocated(&mut self) -> anyhow::Result<Allocated> {
        thread::sleep(WRITING);
        let mut file = fs::File::open(&self.file)
            .with_context(|| format!("heaptrack did not write {}", self.file.display()))?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut allocated = Allocated::default();
        for line in BufReader::new(file).split(b'\n') {
            let line = line?;
            self.read += line.len() as u64 + 1;
            count(&String::from_utf8_lossy(&line), &mut allocated);
        }
        Ok(allocated)
    }
}

/// Counts one line of the record. An allocation is `+ SIZE TRACE POINTER`, with a hexadecimal size. A release is
/// `- POINTER`.
fn count(line: &str, allocated: &mut Allocated) {
    let mut words = line.split(' ');
    match words.next() {
        Some("+") => {
            allocated.times += 1;
            let size = words.next().and_then(|size| u64::from_str_radix(size, 16).ok());
            allocated.bytes += size.unwrap_or_default();
        }
        Some("-") => allocated.freed += 1,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_record_are_counted() {
        let mut allocated = Allocated::default();
        for line in ["v 10400 3", "+ 20 1 55f5", "+ a 2 55f6", "- 55f5", "t 1 2", ""] {
            count(line, &mut allocated);
        }
        assert_eq!(allocated, Allocated { times: 2, bytes: 42, freed: 1 });
    }
}
