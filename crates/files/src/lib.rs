//! Replaces files atomically: a file is written completely or not at all. Also reads files up to a limit ([`read`]),
//! and creates temporary folders ([`TemporaryFolder`]). If a process is killed, a later process removes its folders.
//!
//! The bytes go to a temporary file in the target's folder. That file is synced to the disk and then renamed. So if the
//! system crashes, the process is killed or the disk is full, either the old file or the new one exists, never a part
//! of one. Each process locks its temporary files while it runs; [`remove_abandoned`] removes temporary files that are
//! not locked.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub use tempfile::NamedTempFile;

/// The prefix of temporary files.
pub const UNFINISHED: &str = ".unfinished-";

/// Reads a file of at most `limit` bytes. The file can also be a device or a pipe; a shell passes `<(...)` as a pipe.
/// The limit holds for these, too, although the system does not report how many bytes they have.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] if the file has more bytes, or the error of the system.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, limit)
}

/// Like [`read`], for a file of UTF-8 text.
///
/// # Errors
/// As for [`read`], and [`io::ErrorKind::InvalidData`] if the file contains anything but UTF-8 text.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let message = format!("byte {valid} is not UTF-8 text; save the file as UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// Like [`read`], for an open file or standard input.
///
/// # Errors
/// As for [`read`].
pub fn read_from(source: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("it is too large; use a file of at most {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Creates a temporary file in `folder`, with a name that begins with `prefix`. The file is locked while it is open,
/// and removed when the handle is dropped. [`finish`] moves the file to its final path. If this process is killed
/// before that, and the prefix is [`UNFINISHED`], [`remove_abandoned`] removes the file later.
///
/// # Errors
/// If the file cannot be created.
pub fn begin(folder: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    begin_as(folder, tempfile::Builder::new().prefix(prefix))
}

fn begin_as(folder: &Path, builder: &tempfile::Builder) -> io::Result<NamedTempFile> {
    loop {
        let file = builder.tempfile_in(folder).map_err(without_path)?;
        // Between the file's creation and its lock, another process may have removed it as abandoned.
        if lock(file.as_file()) && file.path().exists() {
            return Ok(file);
        }
    }
}

/// Removes the path of the temporary file from an error, because the path means nothing to users.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.rsplit_once(" at path ") {
        Some((message, _)) => io::Error::new(error.kind(), message.to_owned()),
        None => error,
    }
}

/// Syncs a complete file and moves it to `path`, where it replaces an existing file. The file stays open and locked.
///
/// # Errors
/// If the system reports an error. Then the temporary file is removed, and `path` is unchanged.
pub fn finish(file: NamedTempFile, path: &Path) -> io::Result<File> {
    file.as_file().sync_all()?;
    let file = file.persist(path).map_err(|error| error.error)?;
    sync_folder(path);
    Ok(file)
}

/// Writes a file with these bytes to `path`. An existing file is replaced and its permissions are kept. Symbolic links
/// are followed. Returns the new file, which is locked while it is open.
///
/// # Errors
/// If `path` is a folder, a pipe or a device; if the existing file is read-only; or if the system reports an error.
/// Then `path` is unchanged.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let (real_path, permissions) = target(path)?;
    let folder = real_path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    #[cfg(unix)]
    if permissions.is_none() {
        // A new file gets the usual permissions, 0o666 without the bits of the umask. The default for temporary files,
        // 0o600, lets only the owner read them.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut file = begin_as(folder, &builder)?;
    file.write_all(bytes).map_err(without_path)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    finish(file, &real_path)
}

/// The path to which `path` leads when links are followed, and the permissions of the file there, if it exists.
fn target(path: &Path) -> io::Result<(PathBuf, Option<fs::Permissions>)> {
    match regular(path)? {
        Some(metadata) => {
            // Renaming would replace even a read-only file. Opening it for writing fails in that case.
            OpenOptions::new().write(true).open(path)?;
            Ok((fs::canonicalize(path)?, Some(metadata.permissions())))
        }
        None => match fs::read_link(path) {
            // `path` is a link. It leads, directly or through other links, to a file that does not exist yet.
            Ok(link) => target(&path.parent().unwrap_or(Path::new(".")).join(link)),
            Err(_) => Ok((path.to_owned(), None)),
        },
    }
}

/// The metadata of the regular file at `path`; `None` if nothing exists there.
fn regular(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Err(not_a_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")
}

/// Checks that a program can open `path` safely: it is a regular file, or nothing exists there yet. A pipe or a device
/// could block the program forever. So could a file of `/proc` or `/sys`, which looks like a regular file.
///
/// # Errors
/// If something else exists there, or the system reports an error.
pub fn check_regular(path: &Path) -> io::Result<()> {
    let metadata = regular(path)?;
    if metadata.is_some() && is_kernel_file(path) { Err(not_a_file()) } else { Ok(()) }
}

/// Whether the kernel generates this file.
fn is_kernel_file(path: &Path) -> bool {
    let real = fs::canonicalize(path);
    cfg!(target_os = "linux") && real.is_ok_and(|real| real.starts_with("/proc") || real.starts_with("/sys"))
}

/// Removes the temporary files in `folder` whose process has ended. Returns how many it removed. Where locks are not
/// supported, it removes nothing, because it cannot detect which processes have ended.
///
/// # Errors
/// If the folder cannot be read. A folder that does not exist is not an error.
pub fn remove_abandoned(folder: &Path) -> io::Result<usize> {
    remove_unlocked(folder, UNFINISHED, FileType::is_file, |path| fs::remove_file(path))
}

/// Removes the files or folders in `folder` whose names begin with `prefix`, unless a running process has locked them.
fn remove_unlocked(
    folder: &Path,
    prefix: &str,
    is_kind: fn(&FileType) -> bool,
    remove: fn(&Path) -> io::Result<()>,
) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let is_temporary = |entry: &fs::DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes())
            && entry.file_type().is_ok_and(|kind| is_kind(&kind))
    };
    let mut removed = 0;
    for entry in entries.filter_map(Result::ok).filter(is_temporary) {
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        if matches!(lock_if_supported(&file), Some(true)) && remove(&path).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// A folder in the system's folder for temporary files. It is removed when this value is dropped. If this process is
/// killed before that, the next process that creates such a folder removes it.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    /// Locks the folder. `None` if the system cannot open folders.
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// Creates a folder with a name that begins with `prefix`. Removes the folders with this prefix whose process was
    /// killed.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn create(prefix: &str) -> io::Result<TemporaryFolder> {
        TemporaryFolder::create_in(&std::env::temp_dir(), prefix)
    }

    fn create_in(parent: &Path, prefix: &str) -> io::Result<TemporaryFolder> {
        let _ = remove_unlocked(parent, prefix, FileType::is_dir, |path| fs::remove_dir_all(path));
        loop {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent).map_err(without_path)?;
            let handle = File::open(folder.path()).ok();
            // Between the folder's creation and its lock, another process may have removed it as abandoned.
            if handle.as_ref().is_none_or(lock) && folder.path().exists() {
                return Ok(TemporaryFolder { folder, _lock: handle });
            }
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Locks a file exclusively. The lock excludes even other handles in this process. Returns `false` if another handle
/// has the lock. The lock ends when the file is closed or the process ends. If the file system or the operating system
/// does not support locks, every call returns `true`.
pub fn lock(file: &File) -> bool {
    lock_if_supported(file).unwrap_or(true)
}

/// Like [`lock`], but `None` if the file system or the operating system does not support locks.
#[cfg(unix)]
pub fn lock_if_supported(file: &File) -> Option<bool> {
    use rustix::fs::{FlockOperation, flock};
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Some(false),
        Err(_) => None,
    }
}

/// Like [`lock`], but `None` if the file system or the operating system does not support locks.
#[cfg(not(unix))]
pub fn lock_if_supported(_file: &File) -> Option<bool> {
    None
}

/// Checks that this process can create files in `folder`. On systems other than Unix, it only checks that `folder`
/// exists.
///
/// # Errors
/// If it cannot; the error is the reason.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
    #[cfg(not(unix))]
    fs::metadata(folder)?;
    Ok(())
}

/// Syncs the folder that contains `path`, so that a renamed file keeps its new name after a power failure. Does nothing
/// on systems other than Unix.
fn sync_folder(path: &Path) {
    #[cfg(unix)]
    if let Some(folder) = path.parent()
        && let Ok(folder) = File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    {
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = path;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, "abcdé").unwrap();
        assert_eq!(read(&path, 6).unwrap(), "abcdé".as_bytes());
        assert_eq!(read_text(&path, 6).unwrap(), "abcdé");
        // The limit is inside the last character.
        for error in [read(&path, 5).unwrap_err(), read_text(&path, 5).unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert_eq!(error.to_string(), "it is too large; use a file of at most 5 bytes");
        }
        fs::write(&path, b"abc\xFF").unwrap();
        let error = read_text(&path, 6).unwrap_err();
        assert_eq!(error.to_string(), "byte 3 is not UTF-8 text; save the file as UTF-8");
        assert_eq!(read(&home.path().join("none"), 6).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_limit_holds_for_a_device_that_never_ends() {
        let error = read(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn remove_abandoned_removes_only_temporary_files_without_a_lock() {
        let home = tempfile::tempdir().unwrap();
        let alive = begin(home.path(), UNFINISHED).unwrap();
        fs::write(home.path().join(format!("{UNFINISHED}dead")), b"half").unwrap();
        fs::write(home.path().join("whole"), b"whole").unwrap();
        assert_eq!(remove_abandoned(home.path()).unwrap(), 1);
        finish(alive, &home.path().join("alive")).unwrap();
        assert_eq!(names(home.path()), ["alive", "whole"]);
        assert_eq!(remove_abandoned(&home.path().join("none")).unwrap(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn the_temporary_folder_of_a_killed_process_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let killed = home.path().join("game-1");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join("game.rom"), b"rom").unwrap();
        fs::create_dir(home.path().join("other")).unwrap();
        fs::write(home.path().join("game-file"), b"file").unwrap();
        std::os::unix::fs::symlink("other", home.path().join("game-link")).unwrap();
        let first = TemporaryFolder::create_in(home.path(), "game-").unwrap();
        assert!(!killed.exists());
        let second = TemporaryFolder::create_in(home.path(), "game-").unwrap();
        assert!(first.path().exists() && second.path().exists(), "this process uses them");
        drop((first, second));
        assert_eq!(names(home.path()), ["game-file", "game-link", "other"]);
    }

    #[test]
    fn a_replaced_file_is_locked_until_it_is_closed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.sav");
        let first = replace(&path, b"one").unwrap();
        let other_handle = File::open(&path).unwrap();
        assert!(!lock(&other_handle));
        let second = replace(&path, b"two").unwrap();
        assert!(!lock(&File::open(&path).unwrap()), "the second file is locked, too");
        drop((first, second));
        assert!(lock(&File::open(&path).unwrap()));
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[cfg(unix)]
    #[test]
    fn replace_follows_links_and_keeps_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let home = tempfile::tempdir().unwrap();
        let (real, link) = (home.path().join("real"), home.path().join("link"));
        symlink("next", &link).unwrap();
        symlink("real", home.path().join("next")).unwrap();
        replace(&link, b"one").unwrap();
        assert_ne!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o044,
            0,
            "other users can read a new file"
        );
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&link, b"two").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"two");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        for link in [link, home.path().join("next")] {
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        assert_eq!(names(home.path()), ["link", "next", "real"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn check_regular_accepts_only_regular_files_and_new_paths() {
        let home = tempfile::tempdir().unwrap();
        let (file, pipe) = (home.path().join("file"), home.path().join("pipe"));
        fs::write(&file, b"x").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [&file, &home.path().join("new")] {
            assert!(check_regular(path).is_ok(), "{}", path.display());
        }
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link, home.path(), Path::new("/dev/null"), Path::new("/proc/self/mem")] {
            assert!(check_regular(path).is_err(), "{}", path.display());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn replace_refuses_devices_and_folders() {
        let home = tempfile::tempdir().unwrap();
        for (path, problem) in [
            (Path::new("/dev/null"), "it is not a file"),
            (Path::new("/dev/full"), "it is not a file"),
            (home.path(), "is a directory"),
        ] {
            let error = replace(path, b"x").unwrap_err();
            assert_eq!(error.to_string(), problem, "{}", path.display());
        }
        let error = replace(&home.path().join("no/folder"), b"x").unwrap_err();
        // The error does not contain the path of the temporary file.
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        assert_eq!(names(home.path()), [""; 0]);
    }
}
