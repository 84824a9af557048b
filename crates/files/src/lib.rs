//! Files that are there whole or not at all.
//!
//! A file is written under a temporary name in the folder of its place, synced, and moved to its place. After a crash, a
//! kill or a full disk the old file or the new one is there, never a part of one. What a dead process left unfinished is
//! found by its lock, which ends with the process, and removed by [`remove_abandoned`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use tempfile::NamedTempFile;

/// Beginning of the names of files that are not complete yet.
pub const UNFINISHED: &str = ".unfinished-";

/// Begins a file in `folder`. It is locked for as long as it is open, and removed when it is dropped; [`finish`] gives it
/// its name.
///
/// # Errors
///
/// If the file cannot be made.
pub fn begin(folder: &Path) -> io::Result<NamedTempFile> {
    begin_as(folder, tempfile::Builder::new().prefix(UNFINISHED))
}

fn begin_as(folder: &Path, builder: &tempfile::Builder) -> io::Result<NamedTempFile> {
    loop {
        let file = builder.tempfile_in(folder).map_err(without_path)?;
        // Between its creation and its lock another process may have taken it for abandoned.
        if lock(file.as_file()) && file.path().exists() {
            return Ok(file);
        }
    }
}

/// The system's own words, without the path of the temporary file, which means nothing to a reader.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.rsplit_once(" at path ") {
        Some((words, _)) => io::Error::new(error.kind(), words.to_owned()),
        None => error,
    }
}

/// Syncs a complete file and moves it to `place`, over a file that is there. The file stays open and locked.
///
/// # Errors
///
/// If the system refuses; the file is gone then, and what was at `place` is untouched.
pub fn finish(file: NamedTempFile, place: &Path) -> io::Result<File> {
    file.as_file().sync_all()?;
    let file = file.persist(place).map_err(|error| error.error)?;
    sync_folder(place);
    Ok(file)
}

/// Puts a file with these bytes at `path`: over the file that is there, whose permissions it gets, or a new one. Symbolic
/// links are followed. Gives the new file, which is locked for as long as it is open.
///
/// # Errors
///
/// If `path` is something else than a file, such as a folder, a pipe or a device; if the file there may not be written;
/// or if the system refuses. What was at `path` is untouched then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let (place, permissions) = target(path)?;
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    #[cfg(unix)]
    if permissions.is_none() {
        // What the process's mask leaves of it, as for any new file; usually a temporary one is for its owner alone.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut file = begin_as(folder, &builder)?;
    file.write_all(bytes).map_err(without_path)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    finish(file, &place)
}

/// Where a file that is named `path` is or will be, and the permissions of the one that is there.
fn target(path: &Path) -> io::Result<(PathBuf, Option<fs::Permissions>)> {
    match regular(path)? {
        Some(there) => {
            // A file that may not be written may not be replaced either.
            OpenOptions::new().write(true).open(path)?;
            Ok((fs::canonicalize(path)?, Some(there.permissions())))
        }
        None => match fs::read_link(path) {
            // A link to a file that is not there yet.
            Ok(link) => Ok((path.parent().unwrap_or(Path::new(".")).join(link), None)),
            Err(_) => Ok((path.to_owned(), None)),
        },
    }
}

/// The regular file at `path`; `None` if there is nothing yet.
fn regular(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Ok(there) if there.is_file() => Ok(Some(there)),
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Err(not_a_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")
}

/// Checks that a program may be given `path` to open: a regular file is there, or nothing yet. A pipe or a device could
/// keep it waiting without end, and so can files of the kernel, which look like regular ones.
///
/// # Errors
///
/// If something else is there, or the system refuses to look.
pub fn check_regular(path: &Path) -> io::Result<()> {
    let there = regular(path)?;
    if there.is_some() && is_of_kernel(path) { Err(not_a_file()) } else { Ok(()) }
}

/// Whether the kernel makes the contents of this file.
fn is_of_kernel(path: &Path) -> bool {
    let place = fs::canonicalize(path);
    cfg!(target_os = "linux")
        && place.is_ok_and(|place| place.starts_with("/proc") || place.starts_with("/sys"))
}

/// Removes the files in `folder` that a process began and did not finish before it ended. Returns how many there were.
///
/// # Errors
///
/// If the folder exists and cannot be read.
pub fn remove_abandoned(folder: &Path) -> io::Result<usize> {
    let mut removed = 0;
    for path in abandoned(folder)? {
        // Unfinished files of a process that is alive are locked.
        let Ok(file) = OpenOptions::new().read(true).open(&path) else { continue };
        if matches!(lock_if_supported(&file), Some(true)) && fs::remove_file(&path).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// The unfinished files in a folder.
fn abandoned(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let is_unfinished = |entry: &fs::DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    Ok(entries.filter_map(Result::ok).filter(is_unfinished).map(|entry| entry.path()).collect())
}

/// Locks a file against other processes, and against other openings of it in this one. The lock ends when the file is
/// closed, at the latest with the process. Gives `false` if another one has it. Where the file system or the operating
/// system has no such locks, every file counts as free.
pub fn lock(file: &File) -> bool {
    lock_if_supported(file).unwrap_or(true)
}

/// As [`lock`]; `None` where the file system or the operating system has no such locks.
#[cfg(unix)]
pub fn lock_if_supported(file: &File) -> Option<bool> {
    use rustix::fs::{FlockOperation, flock};
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Some(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Some(false),
        Err(_) => None,
    }
}

/// As [`lock`]; `None` where the file system or the operating system has no such locks.
#[cfg(not(unix))]
pub fn lock_if_supported(_file: &File) -> Option<bool> {
    None
}

/// Whether this process may make files in `folder`.
///
/// # Errors
///
/// The reason why it may not.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
    #[cfg(not(unix))]
    fs::metadata(folder)?;
    Ok(())
}

/// Has the folder's entry reach the disk too. Not every system can.
fn sync_folder(place: &Path) {
    #[cfg(unix)]
    if let Some(folder) = place.parent()
        && let Ok(folder) = File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    {
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = place;
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
    fn what_a_dead_process_left_is_removed_and_what_is_under_way_stays() {
        let home = tempfile::tempdir().unwrap();
        let alive = begin(home.path()).unwrap();
        fs::write(home.path().join(format!("{UNFINISHED}dead")), b"half").unwrap();
        fs::write(home.path().join("whole"), b"whole").unwrap();
        assert_eq!(remove_abandoned(home.path()).unwrap(), 1);
        finish(alive, &home.path().join("alive")).unwrap();
        assert_eq!(names(home.path()), ["alive", "whole"]);
        assert_eq!(remove_abandoned(&home.path().join("none")).unwrap(), 0);
    }

    #[test]
    fn a_replaced_file_is_locked_until_it_is_closed() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("a.sav");
        let ours = replace(&place, b"one").unwrap();
        let theirs = File::open(&place).unwrap();
        assert!(!lock(&theirs));
        let again = replace(&place, b"two").unwrap();
        assert!(!lock(&File::open(&place).unwrap()), "the new one is locked, too");
        drop((ours, again));
        assert!(lock(&File::open(&place).unwrap()));
        assert_eq!(fs::read(&place).unwrap(), b"two");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let home = tempfile::tempdir().unwrap();
        let (real, link) = (home.path().join("real"), home.path().join("link"));
        symlink("real", &link).unwrap();
        replace(&link, b"one").unwrap();
        assert_ne!(fs::metadata(&real).unwrap().permissions().mode() & 0o044, 0, "others may read it");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&link, b"two").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"two");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(home.path()), ["link", "real"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_regular_files_and_new_ones_are_given_to_other_programs() {
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
    fn what_is_no_file_is_not_replaced() {
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
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        assert_eq!(names(home.path()), [""; 0]);
    }
}
