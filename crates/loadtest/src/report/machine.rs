//! Describes the machine on which something was measured.

use serde::{Deserialize, Serialize};

/// The machine and the state it was in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system.
    pub system: String,
    /// Its kernel's release.
    pub kernel: String,
    /// Architecture.
    pub architecture: String,
    /// Model of the processor.
    pub processor: String,
    /// Number of processors.
    pub processors: usize,
    /// The numbers of the processors that the tester was allowed to use; not all of them if it was pinned. On Linux,
    /// empty if the system does not report them. On other systems, always all processors.
    pub allowed: Vec<usize>,
    /// The load average of the last minute before the first run, if the system reports it.
    pub load: Option<f64>,
}

impl Machine {
    /// This machine, in its present state.
    pub fn here() -> Machine {
        let processors = processors();
        let allowed = allowed();
        Machine {
            system: system(),
            kernel: kernel(),
            architecture: std::env::consts::ARCH.to_owned(),
            processor: model(),
            processors: processors.max(allowed.len()),
            allowed,
            load: load(),
        }
    }

    /// A description in one line.
    pub fn summary(&self) -> String {
        let pinned = match self.allowed.len() {
            count @ 1.. if count < self.processors => format!(" (tester on {:?})", self.allowed),
            _ => String::new(),
        };
        format!(
            "{} x {}{pinned}, {}, kernel {}, {}, load {}",
            self.processors,
            self.processor,
            self.system,
            self.kernel,
            self.architecture,
            self.load.map_or("unknown".to_owned(), |load| format!("{load:.2}")),
        )
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The value after `key` in a file of lines `key<separator>value`.
fn field(path: &str, key: &str, separator: char) -> Option<String> {
    read(path)?.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        if name.trim() == key { Some(value.trim().trim_matches('"').to_owned()) } else { None }
    })
}

fn system() -> String {
    field("/etc/os-release", "PRETTY_NAME", '=').unwrap_or_else(|| std::env::consts::OS.to_owned())
}

fn model() -> String {
    field("/proc/cpuinfo", "model name", ':').unwrap_or_else(|| "unknown".to_owned())
}

fn processors() -> usize {
    let counted = read("/proc/cpuinfo")
        .map(|text| text.lines().filter(|line| line.starts_with("processor")).count())
        .filter(|count| *count > 0);
    counted.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1)
}

fn load() -> Option<f64> {
    read("/proc/loadavg")?.split(' ').next()?.parse().ok()
}

#[cfg(unix)]
fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn kernel() -> String {
    "unknown".to_owned()
}

#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect()
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    (0..processors()).collect()
}
