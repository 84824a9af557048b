//! Child processes that cannot outlive this process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use std::{env, io};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Error, Result, until, until_some};

/// A running program. Dropping it kills the program. The program also ends when this process ends for any reason.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    /// Set after the child was reaped. From then on, its id may belong to another process, so no signal is sent.
    status: Option<ExitStatus>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts `program`, after `configure` has changed its command. Its standard output and error are written to files
    /// in `logs`.
    ///
    /// # Errors
    /// [`Error::Missing`] without the program or without `setpriv`, [`Error::Io`] if it cannot be started.
    pub fn spawn(program: &'static str, logs: &Path, configure: impl FnOnce(&mut Command)) -> Result<Self> {
        let path = Self::find(program).ok_or(Error::Missing(program))?;
        Self::spawn_path(program, &path, logs, configure)
    }

    /// Like [`Process::spawn`], for the program at `path`, without a search.
    pub fn spawn_path(
        name: &str,
        path: &Path,
        logs: &Path,
        configure: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        let wrapper = Self::find("setpriv").ok_or(Error::Missing("setpriv (util-linux)"))?;
        let stdout = logs.join(format!("{name}.out"));
        let stderr = logs.join(format!("{name}.err"));
        let log = |path: &PathBuf| File::create(path).map_err(Error::io(format!("write {}", path.display())));

        let mut command = Command::new(wrapper);
        command.args(["--pdeathsig", "KILL", "--"]).arg(path);
        configure(&mut command);
        command.stdin(Stdio::null()).stdout(log(&stdout)?).stderr(log(&stderr)?);
        let child = spawn_from_lasting_thread(command).map_err(Error::io(format!("start {name}")))?;
        Ok(Self { name: name.into(), child, status: None, stdout, stderr })
    }

    /// Looks for a program in `PATH` and in `/usr/games`, which contains mGBA but is not in root's `PATH`.
    #[must_use]
    pub fn find(program: &str) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).chain(["/usr/games".into()]);
        folders.map(|folder| folder.join(program)).find(|file| file.is_file())
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it has written to its standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        text_of(&self.stdout).unwrap_or_default()
    }

    /// Everything it has written to its standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        text_of(&self.stderr).unwrap_or_default()
    }

    /// Sends a signal. Does nothing if the process has ended.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.try_exit()?.is_some() {
            return Ok(());
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("an id of the system");
        kill_process(pid, signal).map_err(|error| Error::io(format!("signal {}", self.name))(error.into()))
    }

    /// How it ended, or `None` while it runs.
    fn try_exit(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let what = format!("get the exit status of {}", self.name);
            self.status = self.child.try_wait().map_err(Error::io(what))?;
        }
        Ok(self.status)
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// [`Error::Ended`] with the end of its output if it has ended.
    pub fn expect_running(&mut self) -> Result<()> {
        match self.try_exit()? {
            None => Ok(()),
            Some(status) => Err(self.ended(status)),
        }
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it still runs after `limit`.
    pub fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("{} ended", self.name);
        until_some(&what, limit, || self.try_exit())
    }

    /// Waits for a condition that only the child can bring about.
    ///
    /// # Errors
    /// [`Error::Ended`] with the end of its output if it ends before the condition holds; also the errors of
    /// [`until_some`].
    pub fn wait_for<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut attempt: impl FnMut(&mut Self) -> Result<Option<T>>,
    ) -> Result<T> {
        until_some(what, limit, || {
            // This checks for the exit before the attempt, because the condition may have become true just before the
            // exit.
            let ended = self.try_exit()?;
            match (attempt(self)?, ended) {
                (Some(value), _) => Ok(Some(value)),
                (None, None) => Ok(None),
                (None, Some(status)) => Err(self.ended(status)),
            }
        })
    }

    fn ended(&self, status: ExitStatus) -> Error {
        let output = format!("{}{}", self.stdout(), self.stderr());
        let from = output.char_indices().rev().nth(2000).map_or(0, |(at, _)| at);
        Error::Ended { name: self.name.clone(), status, output: output[from..].into() }
    }

    /// Sends SIGTERM, and kills the process if it still runs after `limit`. Does nothing if it has ended.
    pub fn stop(&mut self, limit: Duration) {
        let _ = self.signal(Signal::TERM);
        let _ = until("it ended", limit, || Ok(self.try_exit()?.is_some()));
        self.kill();
    }

    /// Kills the process and waits until it is gone.
    pub fn kill(&mut self) {
        if !matches!(self.try_exit(), Ok(Some(_))) {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a child from a thread that lives as long as this process.
///
/// `setpriv --pdeathsig` makes the kernel kill the child when the *thread* that started it ends. Each Rust test runs in
/// its own thread. So without this function, a child that several tests share would be killed at the end of the test
/// that started it.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    type Job = (Command, Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (mut command, answer) in jobs {
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let (sender, answer) = mpsc::channel();
    spawner.send((command, sender)).map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?
}

/// The text of a file; `None` if the file cannot be read. Bytes that are not UTF-8 become U+FFFD, because a program can
/// write any bytes.
pub(crate) fn text_of(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn shell(logs: &Path, script: &str) -> Process {
        Process::spawn("sh", logs, |command| {
            command.args(["-c", script]);
        })
        .unwrap()
    }

    fn runs(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn output_and_exit_code_are_kept() {
        let logs = tempfile::tempdir().unwrap();
        let mut process = shell(logs.path(), "echo out; echo err >&2; exit 7");
        assert_eq!(process.wait_exit(SOON).unwrap().code(), Some(7));
        assert_eq!((process.stdout().as_str(), process.stderr().as_str()), ("out\n", "err\n"));
        process.signal(Signal::TERM).unwrap();
    }

    #[test]
    fn dropping_kills_a_process_that_ignores_sigterm() {
        let logs = tempfile::tempdir().unwrap();
        let process = shell(logs.path(), "trap '' TERM; while true; do sleep 1; done");
        let pid = process.pid();
        assert!(runs(pid));
        drop(process);
        assert!(!runs(pid));
    }

    #[test]
    fn a_child_outlives_the_thread_that_started_it() {
        let logs = tempfile::tempdir().unwrap();
        let folder = logs.path().to_path_buf();
        let mut process = thread::spawn(move || shell(&folder, "read forever </dev/zero")).join().unwrap();
        let ended = process.wait_exit(Duration::from_millis(200));
        assert!(matches!(ended, Err(Error::Timeout { .. })), "{ended:?}");
    }

    #[test]
    fn waiting_on_a_process_that_ended_reports_its_last_output() {
        let logs = tempfile::tempdir().unwrap();
        let mut process = shell(logs.path(), "echo no such thing >&2; exit 1");
        let error = process.wait_for("it answered", SOON, |_| Ok(None::<()>)).unwrap_err();
        assert!(error.to_string().contains("no such thing"), "{error}");
    }

    #[test]
    fn the_error_for_a_missing_program_names_it() {
        let logs = tempfile::tempdir().unwrap();
        let error = Process::spawn("no-such-program", logs.path(), |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "no-such-program is not installed; run tools/setup.sh test");
    }
}
