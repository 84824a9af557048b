//! The thread that writes save files, so that no frame waits for a disk.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use framewire_libmgba::Level;
use parking_lot::{Condvar, Mutex};

use super::file::SaveFile;
use super::problems::Problems;

/// How long to wait before the next attempt to write a file that could not be written: the first wait, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Writes save files on a thread of its own.
pub(super) struct Writer {
    queue: Arc<WriteQueue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct WriteQueue {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    files: Vec<Arc<SaveFile>>,
    ended: bool,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start(problems: Problems) -> std::io::Result<Writer> {
        let queue = Arc::<WriteQueue>::default();
        let served = queue.clone();
        let thread =
            std::thread::Builder::new().name("saves".to_owned()).spawn(move || run(&served, problems))?;
        Ok(Writer { queue, thread: Some(thread) })
    }

    /// Schedules a write of the file.
    pub fn write(&self, file: &Arc<SaveFile>) {
        let mut waiting = self.queue.state.lock();
        if !waiting.files.iter().any(|there| Arc::ptr_eq(there, file)) {
            waiting.files.push(file.clone());
        }
        self.queue.changed.notify_one();
    }

    /// Lets the thread try once more to write each file that is not written yet, and waits until it has ended.
    pub fn finish(&mut self) {
        self.queue.state.lock().ended = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish();
    }
}

fn run(queue: &WriteQueue, mut problems: Problems) {
    let mut unwritten: Vec<Arc<SaveFile>> = Vec::new();
    let mut delay = Duration::ZERO;
    loop {
        let retry = if unwritten.is_empty() { None } else { Some(Instant::now() + delay) };
        let ended = queue.wait(&mut unwritten, retry);
        let (mut written, mut problem) = (Vec::new(), None);
        for file in std::mem::take(&mut unwritten) {
            match file.flush() {
                Ok(notice) => {
                    if let Some(notice) = notice {
                        problems.log(Level::Warn, &notice);
                    }
                    written.push(file);
                }
                Err(error) => {
                    problem.get_or_insert(error);
                    unwritten.push(file);
                }
            }
        }
        delay = match problem {
            Some(_) => (delay * 2).clamp(RETRY.0, RETRY.1),
            None => Duration::ZERO,
        };
        problems.set_writing(&written, problem);
        if ended {
            for file in &unwritten {
                let path = file.path().display();
                problems.log(Level::Error, &format!("{path}: what the game saved last is lost"));
            }
            return;
        }
    }
}

impl WriteQueue {
    /// Waits for files to write, until `retry` at the latest, and adds them to `files`. Returns whether the thread must
    /// end.
    fn wait(&self, files: &mut Vec<Arc<SaveFile>>, retry: Option<Instant>) -> bool {
        let mut waiting = self.state.lock();
        while waiting.files.is_empty() && !waiting.ended {
            match retry {
                None => self.changed.wait(&mut waiting),
                Some(retry) if self.changed.wait_until(&mut waiting, retry).timed_out() => break,
                Some(_) => {}
            }
        }
        for file in waiting.files.drain(..) {
            if !files.iter().any(|there| Arc::ptr_eq(there, &file)) {
                files.push(file);
            }
        }
        waiting.ended
    }
}
