//! The file of a battery save on disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framewire_libmgba::MAX_SAVE_SIZE;
use parking_lot::Mutex;

use super::check_is_not_game;

/// If another program has changed a save file, the file is copied before it is replaced. This is the largest number of
/// copies of one save file.
const COPIES: u32 = 99;

/// The file of a battery save. It is locked while it is in use. It is written completely or not at all.
#[derive(Debug)]
pub(super) struct SaveFile {
    path: PathBuf,
    /// The content that the file should have: what the game saved last. If it is the same allocation as
    /// [`Disk::bytes`], the file has this content.
    latest: Mutex<Arc<[u8]>>,
    disk: Mutex<Disk>,
}

/// The content that the file has, as this process last read or wrote it.
#[derive(Debug)]
struct Disk {
    bytes: Arc<[u8]>,
    /// The file that was read or written, which is kept open to keep its lock; `None` if there was no file.
    lock: Option<File>,
    /// Whether another emulator uses the file. If so, this emulator does not write it.
    taken: bool,
}

/// A save file that was opened. The default has no file and no content.
#[derive(Debug, Clone, Default)]
pub(super) struct Opened {
    /// `None` for `/dev/null` and for a file that cannot be opened: then saves are not written.
    pub file: Option<Arc<SaveFile>>,
    /// The content of the file.
    pub bytes: Arc<[u8]>,
    /// Why the file cannot be written, if that is already known.
    pub problem: Option<String>,
}

/// Whether both describe the same file. A file that has replaced another one at the same path is not the same file.
#[cfg(unix)]
fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Other systems do not report this, so any two files count as the same.
#[cfg(not(unix))]
fn is_same_file(_one: &fs::Metadata, _other: &fs::Metadata) -> bool {
    true
}

/// Reads a save file. `/dev/null` is an empty save.
///
/// # Errors
/// If the file does not exist, is not a regular file, is too large, or cannot be read.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    if is_null(path) {
        return Ok(Vec::new());
    }
    read_from(&open_to_read(path)?).map_err(|error| unreadable(path, &error))
}

/// Checks that a save file of `game` can be read and written, or created if it does not exist. Changes nothing, and
/// does not check whether another emulator uses the file.
///
/// # Errors
/// If it cannot be used; the error is the reason.
pub fn check(path: &Path, game: &Path) -> Result<(), String> {
    if is_null(path) {
        return Ok(());
    }
    check_is_not_game(path, game)?;
    let path = std::path::absolute(path).map_err(|error| unreadable(path, &error))?;
    let problem = if path.exists() {
        read(&path)?;
        unwritable(&path)
    } else {
        let folder = path.parent().unwrap_or(&path);
        framewire_files::check_writable(folder).err().map(|error| cannot_write(&path, &error))
    };
    problem.map_or(Ok(()), Err)
}

fn is_null(path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"))
}

/// Opens a save file. Only regular files are opened, because reading a pipe or a device could block forever.
fn open_to_read(path: &Path) -> Result<File, String> {
    let failed = |error| unreadable(path, &error);
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    File::open(path).map_err(failed)
}

fn read_from(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_SAVE_SIZE as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_SAVE_SIZE {
        let message = format!("it is too large for a save, which has at most {MAX_SAVE_SIZE} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(bytes)
}

impl SaveFile {
    /// Opens the save file at `path`. If it does not exist, creates an empty file, as mGBA does.
    ///
    /// # Errors
    /// If `path` exists, but is not a regular file or cannot be read.
    pub fn open(path: &Path) -> Result<Opened, String> {
        if is_null(path) {
            return Ok(Opened::default());
        }
        let mut problem = None;
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            return Err(format!("{} is not a file", path.display()));
        }
        if !path.exists()
            && let Err(error) = fs::OpenOptions::new().append(true).create(true).open(path)
        {
            problem = Some(cannot_write(path, &error));
        }
        let path = super::real_path(path);
        let mut disk = Disk { bytes: Arc::default(), lock: None, taken: false };
        if problem.is_none() {
            disk.read(&path)?;
            problem = disk.problem(&path);
        }
        let bytes = disk.bytes.clone();
        let file = SaveFile { path, latest: Mutex::new(bytes.clone()), disk: Mutex::new(disk) };
        Ok(Opened { file: Some(Arc::new(file)), bytes, problem })
    }

    /// Writes what the game saved last, and opens the file again. If the write fails, returns what the game saved last
    /// in place of the file's content, unless another emulator uses the file.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn reopen(self: &Arc<SaveFile>) -> Result<Opened, String> {
        let file = Some(self.clone());
        if let Err(problem) = self.flush()
            && !self.disk.lock().taken
        {
            return Ok(Opened { file, bytes: self.latest.lock().clone(), problem: Some(problem) });
        }
        let mut disk = self.disk.lock();
        if self.path.exists() {
            disk.read(&self.path)?;
            *self.latest.lock() = disk.bytes.clone();
        }
        Ok(Opened { file, bytes: disk.bytes.clone(), problem: disk.problem(&self.path) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has the content that it should have.
    pub fn is_written(&self) -> bool {
        Arc::ptr_eq(&self.disk.lock().bytes, &self.latest.lock())
    }

    /// Sets the content that the file should have. [`flush`](Self::flush) writes it.
    pub fn set(&self, bytes: &[u8]) {
        let mut latest = self.latest.lock();
        if **latest != *bytes {
            *latest = bytes.into();
        }
    }

    /// Writes the file, if it does not have the content that it should have. If another program has changed the file in
    /// the meantime, copies the file first, and returns a message about that.
    ///
    /// # Errors
    /// If the file cannot be written. Then it is unchanged.
    pub fn flush(&self) -> Result<Option<String>, String> {
        let mut disk = self.disk.lock();
        let bytes = self.latest.lock().clone();
        if Arc::ptr_eq(&disk.bytes, &bytes) {
            return Ok(None);
        }
        if disk.taken {
            return Err(taken(&self.path));
        }
        let failed = |error: io::Error| cannot_write(&self.path, &error);
        let copy = match disk.changed_elsewhere(&self.path).map_err(failed)? {
            Some(theirs) if !theirs.is_empty() && *theirs != *bytes => Some(self.copy().map_err(failed)?),
            _ => None,
        };
        let lock = framewire_files::replace(&self.path, &bytes).map_err(failed)?;
        *disk = Disk { bytes, lock: Some(lock), taken: false };
        Ok(copy.map(|copy| {
            let (path, copy) = (self.path.display(), copy.display());
            format!("another program changed {path} while the game ran; what it wrote is now in {copy}, and {path} has what the game saved")
        }))
    }

    /// Copies the existing file to a path that ends with `.bak-` and a number. Returns this path.
    fn copy(&self) -> io::Result<PathBuf> {
        for number in 1..=COPIES {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".bak-{number}"));
            let path = PathBuf::from(name);
            if path.exists() {
                continue;
            }
            // A hard link is enough, because the file itself is not changed afterwards: a new file replaces it.
            if fs::hard_link(&self.path, &path).is_err() {
                framewire_files::replace(&path, &fs::read(&self.path)?)?;
            }
            return Ok(path);
        }
        Err(io::Error::other(format!(
            "another program changed it, and there are already {COPIES} copies (.bak-N)"
        )))
    }
}

impl Disk {
    /// Reads and locks the file.
    fn read(&mut self, path: &Path) -> Result<(), String> {
        let failed = |error| unreadable(path, &error);
        let file = open_to_read(path)?;
        let ours = self.has_open(&file.metadata().map_err(failed)?);
        self.bytes = read_from(&file).map_err(failed)?.into();
        if !ours || self.taken {
            self.taken = !framewire_files::lock(&file);
            self.lock = Some(file);
        }
        Ok(())
    }

    /// Whether this is the file that is kept open.
    fn has_open(&self, data: &fs::Metadata) -> bool {
        let open = self.lock.as_ref().and_then(|file| file.metadata().ok());
        open.is_some_and(|open| is_same_file(&open, data))
    }

    /// Why the file cannot be written, as far as that is known without writing it.
    fn problem(&self, path: &Path) -> Option<String> {
        if self.taken { Some(taken(path)) } else { unwritable(path) }
    }

    /// The content of the file, if another program has changed it since this process last read or wrote it. Otherwise
    /// `None`.
    fn changed_elsewhere(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let data = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            data => data?,
        };
        if !data.is_file() {
            return Ok(None);
        }
        let file = File::open(path)?;
        if !self.has_open(&data) && !framewire_files::lock(&file) {
            return Err(io::Error::other("another emulator uses it"));
        }
        // Compare the bytes, not the modification times, which may be equal if the other program wrote soon after this
        // one.
        Ok(Some(read_from(&file)?).filter(|theirs| **theirs != *self.bytes))
    }
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

fn taken(path: &Path) -> String {
    format!("another emulator uses {}; this one does not write it", path.display())
}

/// Why the file cannot be replaced, according to the permissions of the file and its folder. `None` if it can be
/// replaced.
fn unwritable(path: &Path) -> Option<String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let checked =
        fs::OpenOptions::new().write(true).open(path).and_then(|_| framewire_files::check_writable(folder));
    checked.err().map(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}
