//! Builds the program `framewire` from this checkout and runs it.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use crate::without_settings::without_settings;
use crate::{Error, Http, Process, Result, Signal, paths, ports};

/// The time limit for the start. The program itself may look for an emulator for up to 0.5 s.
const START: Duration = Duration::from_secs(20);
/// What the program prints when it is ready for requests.
const READY: &str = "listening on ";

/// A running `framewire serve`. Dropping it kills it.
#[derive(Debug)]
pub struct Framewire {
    process: Process,
    url: String,
    _logs: TempDir,
}

impl Framewire {
    /// Starts `framewire serve` on a free port with these further arguments, and waits until it is ready.
    ///
    /// # Errors
    /// [`Error::Ended`] with the program's output if it ends, or [`Error::Timeout`] if it does not become ready.
    pub fn serve(args: &[&str]) -> Result<Self> {
        Self::serve_at("127.0.0.1:0", args)
    }

    /// Like [`Framewire::serve`], at the given address.
    pub fn serve_at(address: &str, args: &[&str]) -> Result<Self> {
        Self::serve_wrapped(&[], address, args)
    }

    /// Like [`Framewire::serve`], but started by `wrapper`: a program and its arguments, such as `nice`. The wrapper
    /// must `exec` the command that follows its arguments, so that the process id stays the same.
    pub fn serve_by(wrapper: &[&str], args: &[&str]) -> Result<Self> {
        Self::serve_wrapped(wrapper, "127.0.0.1:0", args)
    }

    /// Like [`Framewire::serve`], with this script in the emulator. The script listens on a free port. `lua` is code
    /// that runs before the script; it is written to a file in `folder`. Also returns the script's address.
    pub fn host_script(folder: &Path, script: &Path, lua: &str, args: &[&str]) -> Result<(Self, SocketAddr)> {
        let port = ports::free();
        let settings = folder.join("settings.lua");
        fs::write(&settings, format!("framewire = {{port = {port}}}\n{lua}"))
            .map_err(Error::io(format!("write {}", settings.display())))?;
        let [settings, script] = [settings.as_path(), script].map(Path::to_string_lossy);
        let scripts = ["--lua", &*settings, "--lua", &*script];
        let host = Self::serve(&[&scripts[..], args].concat())?;
        Ok((host, (Ipv4Addr::LOCALHOST, port).into()))
    }

    fn serve_wrapped(wrapper: &[&str], address: &str, args: &[&str]) -> Result<Self> {
        let mut all = vec!["serve", "--listen", address];
        all.extend(args);
        let logs = TempDir::new().map_err(Error::io("make a folder for logs"))?;
        let mut process = start(logs.path(), wrapper, &all)?;
        let url = process.wait_for("framewire was ready", START, |process| {
            let stdout = process.stdout();
            // The address is complete only if the line has ended.
            let complete = stdout.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
            Ok(complete.filter_map(|line| line.strip_prefix(READY)).next().map(str::to_owned))
        })?;
        Ok(Self { process, url, _logs: logs })
    }

    /// Runs `framewire` with these arguments to its end. Returns how it ended, its standard output and its standard
    /// error.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be built or started; [`Error::Timeout`] if it still runs after `limit`. Then it is
    /// killed.
    pub fn run(args: &[&str], limit: Duration) -> Result<(ExitStatus, String, String)> {
        let logs = TempDir::new().map_err(Error::io("make a folder for logs"))?;
        let mut process = Self::start(logs.path(), args)?;
        let status = process.wait_exit(limit)?;
        Ok((status, process.stdout(), process.stderr()))
    }

    /// Starts `framewire` with these arguments in the folder `logs`. Its output goes to files in the same folder.
    pub fn start(logs: &Path, args: &[&str]) -> Result<Process> {
        start(logs, &[], args)
    }

    /// A command that runs `framewire` with these arguments, for tests that handle its streams and its exit themselves.
    pub fn command(args: &[&str]) -> Result<Command> {
        let mut command = Command::new(binary()?);
        command.args(args);
        without_settings(&mut command);
        // As in `start`, a test must not use the user's folder. A test that looks into the data folder sets its own.
        command.env("FRAMEWIRE_DATA", paths::profile_dir().join("test-data"));
        Ok(command)
    }

    /// The address on which it listens, such as `http://127.0.0.1:43210`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client for it.
    #[must_use]
    pub fn http(&self) -> Http {
        Http::new(&self.url)
    }

    /// Everything it has written so far: first its standard output, then its standard error.
    #[must_use]
    pub fn log(&self) -> String {
        format!("{}{}", self.process.stdout(), self.process.stderr())
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends it a signal.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it still runs after `limit`.
    pub fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.process.wait_exit(limit)
    }

    /// Sends it a signal, and waits until it has ended.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it still runs after `limit`.
    pub fn end(&mut self, signal: Signal, limit: Duration) -> Result<ExitStatus> {
        self.signal(signal)?;
        self.wait_exit(limit)
    }
}

fn start(logs: &Path, wrapper: &[&str], args: &[&str]) -> Result<Process> {
    let mut words = wrapper.iter().map(OsString::from).chain([binary()?.into_os_string()]);
    let program = words.next().expect("there is at least the program itself");
    Process::spawn_path("framewire", Path::new(&program), logs, |command| {
        command.args(words).args(args).current_dir(logs);
        without_settings(command);
        // A test must not use the snapshots and recordings of the user.
        command.env("FRAMEWIRE_DATA", logs.join("data"));
    })
}

/// The path of the program: the value of `FRAMEWIRE_BIN`, if that variable is set. The value must be an absolute path,
/// because the program starts in another folder. Otherwise, this function builds the program, once per process and in
/// this process's build profile, so that it is up to date.
fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("FRAMEWIRE_BIN") {
        return Ok(path.into());
    }
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.current_dir(paths::root()).args(["build", "--quiet", "--locked", "-p", "framewire"]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        let output = build.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(paths::profile_dir().join("framewire"))
    });
    built.clone().map_err(|problem| Error::io("build framewire")(std::io::Error::other(problem)))
}
