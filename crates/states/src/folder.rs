use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use framewire_files::{NamedTempFile, UNFINISHED};
use parking_lot::Mutex;

use crate::{FolderError, Name};

/// A folder of files of one kind. Each file has a [`Name`]. A file exists completely or not at all: it is written under
/// a temporary name and then renamed. The folder is created with its first file.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// What a file is called in messages, such as `snapshot`.
    kind: &'static str,
    /// The extension of the files' names, without the dot.
    extension: &'static str,
    /// The largest number of files in the folder.
    limit: usize,
    /// The largest size of a file in bytes.
    largest: u64,
    /// Locked while files are named, removed or renamed, so that two requests cannot take the same free name.
    change: Mutex<()>,
}

/// A file of a [`Folder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name of the file.
    pub name: Name,
    /// The size of the file in bytes.
    pub size: u64,
    /// When the file was last written.
    pub modified: SystemTime,
}

impl Folder {
    /// The folder at `path`, which does not have to exist yet. Its files are called `kind` in messages and have the
    /// extension `extension`. It can contain at most `limit` files of at most `largest` bytes each.
    pub fn new(
        path: PathBuf,
        kind: &'static str,
        extension: &'static str,
        limit: usize,
        largest: u64,
    ) -> Folder {
        Folder { path, kind, extension, limit, largest, change: Mutex::new(()) }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files, sorted by name without regard to letter case.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn list(&self) -> Result<Vec<Entry>, FolderError> {
        let mut entries = Vec::new();
        self.visit(|name, file| {
            // This fails if the file has been removed in the meantime.
            if let Ok(data) = file.metadata()
                && data.is_file()
            {
                let modified = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                entries.push(Entry { name, size: data.len(), modified });
            }
        })?;
        entries.sort_by_cached_key(|entry| entry.name.as_str().to_ascii_lowercase());
        Ok(entries)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`FolderError::Missing`], [`FolderError::TooLarge`], [`FolderError::Io`].
    pub fn read(&self, name: &Name) -> Result<Vec<u8>, FolderError> {
        let (path, file) = self.open(name)?;
        let size = file.metadata().map_err(io_error("read", &path))?.len();
        if size > self.largest {
            return Err(self.too_large(size));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        // Some other program may be extending the file, so the limit applies here, too.
        file.take(self.largest).read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        Ok(bytes)
    }

    /// The size of a file in bytes.
    ///
    /// # Errors
    /// [`FolderError::Missing`], [`FolderError::Io`].
    pub fn size(&self, name: &Name) -> Result<u64, FolderError> {
        let (path, file) = self.open(name)?;
        Ok(file.metadata().map_err(io_error("read", &path))?.len())
    }

    /// A file, as in the [list](Self::list).
    ///
    /// # Errors
    /// [`FolderError::Missing`], [`FolderError::Io`].
    pub fn entry(&self, name: &Name) -> Result<Entry, FolderError> {
        let name = self.found(name)?;
        let entry = self.list()?.into_iter().find(|entry| entry.name.as_str() == name.as_str());
        entry.ok_or(FolderError::Missing { kind: self.kind, name })
    }

    /// The first bytes of a file of the [list](Self::list), at most `length`. Does not search the folder for the file's
    /// name, so reading the heads of all files takes linear time.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn head(&self, entry: &Entry, length: usize) -> Result<Vec<u8>, FolderError> {
        let path = self.path_of(&entry.name);
        let file = File::open(&path).map_err(io_error("read", &path))?;
        let mut bytes = Vec::new();
        file.take(length as u64).read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        Ok(bytes)
    }

    /// Writes a file. Replaces an existing file of this name only if `replace` is true.
    ///
    /// # Errors
    /// [`FolderError::Taken`], [`FolderError::Full`], [`FolderError::TooLarge`], [`FolderError::Io`].
    pub fn write(&self, name: &Name, bytes: &[u8], replace: bool) -> Result<(), FolderError> {
        self.finish(self.written(bytes)?, name, replace)
    }

    /// Creates a temporary file that the caller writes step by step. [`finish`](Self::finish) gives it its name. If it
    /// is dropped before that, it is removed.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn begin(&self) -> Result<NamedTempFile, FolderError> {
        self.begin_with(UNFINISHED)
    }

    /// Like [`begin`](Self::begin), but the temporary name begins with `prefix`.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn begin_with(&self, prefix: &str) -> Result<NamedTempFile, FolderError> {
        fs::create_dir_all(&self.path).map_err(io_error("make", &self.path))?;
        framewire_files::begin(&self.path, prefix).map_err(io_error("write in", &self.path))
    }

    /// Gives a complete temporary file its name.
    ///
    /// # Errors
    /// [`FolderError::Taken`], [`FolderError::Full`], [`FolderError::Io`]. Then the file is removed.
    pub fn finish(&self, file: NamedTempFile, name: &Name, replace: bool) -> Result<(), FolderError> {
        // Syncing is slow, so it happens before the lock is taken.
        file.as_file().sync_all().map_err(io_error("write", file.path()))?;
        let _change = self.change.lock();
        move_to(file, &self.free(name, replace)?)
    }

    /// Like [`finish`](Self::finish), but if the name is taken, the file gets the first free name among `other(1)`,
    /// `other(2)` and so on. Returns the name that the file got.
    ///
    /// # Errors
    /// [`FolderError::Full`], [`FolderError::Io`].
    pub fn finish_as(
        &self,
        file: NamedTempFile,
        name: &Name,
        replace: bool,
        other: impl Fn(u32) -> Name,
    ) -> Result<Name, FolderError> {
        file.as_file().sync_all().map_err(io_error("write", file.path()))?;
        let _change = self.change.lock();
        let (mut number, mut name) = (0, name.clone());
        let path = loop {
            match self.free(&name, replace && number == 0) {
                Err(FolderError::Taken { .. }) => {}
                path => break path?,
            }
            number += 1;
            name = other(number);
        };
        move_to(file, &path)?;
        Ok(name)
    }

    /// Checks that files can be written to the folder. Leaves no new file or folder.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn check_writable(&self) -> Result<(), FolderError> {
        match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The first write would create the folder, so the nearest existing ancestor must allow new folders.
                let near = self.path.ancestors().skip(1).find(|path| path.exists());
                let near = near.filter(|near| !near.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let trial = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(near);
                trial.map(drop).map_err(io_error("make a folder in", near))
            }
            _ => self.begin().map(drop),
        }
    }

    /// Removes the temporary files of processes that have ended. Returns how many it removed.
    ///
    /// # Errors
    /// [`FolderError::Io`].
    pub fn remove_abandoned(&self) -> Result<usize, FolderError> {
        framewire_files::remove_abandoned(&self.path).map_err(io_error("list", &self.path))
    }

    /// Checks whether [`write`](Self::write) could write a file of this name now.
    ///
    /// # Errors
    /// [`FolderError::Taken`], [`FolderError::Full`], [`FolderError::Io`].
    pub fn check_free(&self, name: &Name, replace: bool) -> Result<(), FolderError> {
        self.free(name, replace).map(drop)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// [`FolderError::Missing`], [`FolderError::Io`].
    pub fn remove(&self, name: &Name) -> Result<(), FolderError> {
        let _change = self.change.lock();
        let path = self.path_of(&self.found(name)?);
        fs::remove_file(&path).map_err(io_error("remove", &path))
    }

    /// Gives a file another name.
    ///
    /// # Errors
    /// [`FolderError::Missing`], [`FolderError::Taken`], [`FolderError::Io`].
    pub fn rename(&self, from: &Name, to: &Name) -> Result<(), FolderError> {
        let _change = self.change.lock();
        let from = self.found(from)?;
        self.check_other(&from, to)?;
        let (old, new) = (self.path_of(&from), self.path_of(to));
        fs::rename(&old, new).map_err(io_error("rename", &old))
    }

    /// Replaces the content of the file `from` with what `make` returns for it, and its name with `to`, which may be
    /// the same name. If this fails, the file is unchanged. There is one exception: the last step renames or removes
    /// the old file. If only this step fails, the new content has been stored, but there is still a file with the old
    /// name.
    ///
    /// # Errors
    /// Those of `make` and [`read`](Self::read), and [`FolderError::Taken`].
    pub fn rewrite(
        &self,
        from: &Name,
        to: &Name,
        make: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, FolderError>,
    ) -> Result<(), FolderError> {
        // Locked from the start: a file that another request writes in the meantime must not get the old content.
        let _change = self.change.lock();
        let from = self.found(from)?;
        self.check_other(&from, to)?;
        let file = self.written(&make(self.read(&from)?)?)?;
        file.as_file().sync_all().map_err(io_error("write", file.path()))?;
        let (old, new) = (self.path_of(&from), self.path_of(to));
        // If the names differ only in letter case, both paths may lead to the same file: replace it, then rename it.
        let first = if from == *to { &old } else { &new };
        framewire_files::finish(file, first).map_err(io_error("write", first))?;
        if from == *to {
            fs::rename(&old, &new).map_err(io_error("rename", &old))
        } else {
            fs::remove_file(&old).map_err(io_error("remove", &old))
        }
    }

    /// Fails if another file already has the name `to`. `from` has the spelling of the existing file.
    fn check_other(&self, from: &Name, to: &Name) -> Result<(), FolderError> {
        match self.find(to)? {
            Some(name) if name.as_str() != from.as_str() => Err(FolderError::Taken { kind: self.kind, name }),
            _ => Ok(()),
        }
    }

    /// A temporary file with these bytes. Fails if there are too many of them.
    fn written(&self, bytes: &[u8]) -> Result<NamedTempFile, FolderError> {
        let size = bytes.len() as u64;
        if size > self.largest {
            return Err(self.too_large(size));
        }
        let mut file = self.begin()?;
        file.write_all(bytes).map_err(io_error("write", file.path()))?;
        Ok(file)
    }

    /// The path to which a file of this name may be written.
    fn free(&self, name: &Name, replace: bool) -> Result<PathBuf, FolderError> {
        match self.find(name)? {
            Some(existing) if replace => Ok(self.path_of(&existing)),
            Some(name) => Err(FolderError::Taken { kind: self.kind, name }),
            None => {
                let mut count = 0;
                self.visit(|_, _| count += 1)?;
                if count >= self.limit {
                    return Err(FolderError::Full { kind: self.kind, limit: self.limit });
                }
                Ok(self.path_of(name))
            }
        }
    }

    fn open(&self, name: &Name) -> Result<(PathBuf, File), FolderError> {
        let path = self.path_of(&self.found(name)?);
        let file = File::open(&path).map_err(io_error("read", &path))?;
        Ok((path, file))
    }

    /// The name in the spelling of the existing file; an error if there is no such file.
    fn found(&self, name: &Name) -> Result<Name, FolderError> {
        let missing = || FolderError::Missing { kind: self.kind, name: name.clone() };
        self.find(name)?.ok_or_else(missing)
    }

    fn find(&self, name: &Name) -> Result<Option<Name>, FolderError> {
        let mut found = None;
        self.visit(|existing, _| {
            // On a case-sensitive file system, there may be several such files: prefer the exact spelling.
            if existing == *name && (found.is_none() || existing.as_str() == name.as_str()) {
                found = Some(existing);
            }
        })?;
        Ok(found)
    }

    /// Calls `file` for each file of this kind in the folder.
    fn visit(&self, mut file: impl FnMut(Name, &fs::DirEntry)) -> Result<(), FolderError> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(io_error("list", &self.path))?,
        };
        for entry in entries {
            let entry = entry.map_err(io_error("list", &self.path))?;
            if let Some(name) = self.name_of(&entry) {
                file(name, &entry);
            }
        }
        Ok(())
    }

    /// The [`Name`] of a file; `None` if the file has another extension or its name is not valid.
    fn name_of(&self, entry: &fs::DirEntry) -> Option<Name> {
        let file = entry.file_name();
        let (stem, extension) = file.to_str()?.rsplit_once('.')?;
        if extension == self.extension { stem.parse().ok() } else { None }
    }

    fn path_of(&self, name: &Name) -> PathBuf {
        self.path.join(format!("{name}.{}", self.extension))
    }

    fn too_large(&self, size: u64) -> FolderError {
        FolderError::TooLarge { kind: self.kind, size, limit: self.largest }
    }

    /// What a file is called in messages.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    move |source| FolderError::Io { action, path: path.to_owned(), source }
}

fn move_to(file: NamedTempFile, path: &Path) -> Result<(), FolderError> {
    framewire_files::finish(file, path).map(drop).map_err(io_error("write", path))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn names(folder: &Folder) -> Vec<String> {
        folder.list().unwrap().iter().map(|entry| entry.name.to_string()).collect()
    }

    #[test]
    fn files_are_written_read_renamed_and_removed_by_name() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().join("new/folder"), "thing", "bin", 3, 10);
        assert_eq!(folder.list().unwrap(), []);
        folder.write(&name("b"), b"one", false).unwrap();
        folder.write(&name("A.x"), b"two", false).unwrap();
        assert_eq!(names(&folder), ["A.x", "b"]);
        assert_eq!(folder.read(&name("a.X")).unwrap(), b"two");
        assert_eq!(folder.head(&folder.entry(&name("b")).unwrap(), 2).unwrap(), b"on");
        assert_eq!(folder.size(&name("b")).unwrap(), 3);
        assert!(matches!(folder.write(&name("B"), b"", false), Err(FolderError::Taken { .. })));
        folder.write(&name("B"), b"three", true).unwrap();
        assert_eq!(folder.read(&name("b")).unwrap(), b"three");
        folder.rename(&name("b"), &name("c")).unwrap();
        folder.rename(&name("c"), &name("C")).unwrap();
        assert!(matches!(folder.rename(&name("c"), &name("a.x")), Err(FolderError::Taken { .. })));
        assert_eq!(names(&folder), ["A.x", "C"]);
        folder.remove(&name("c")).unwrap();
        assert!(matches!(folder.remove(&name("c")), Err(FolderError::Missing { .. })));
        assert!(matches!(folder.rename(&name("c"), &name("d")), Err(FolderError::Missing { .. })));
        assert!(matches!(folder.read(&name("c")), Err(FolderError::Missing { .. })));
        assert_eq!(names(&folder), ["A.x"]);
    }

    #[test]
    fn the_number_and_size_of_files_are_limited() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().to_owned(), "thing", "bin", 2, 4);
        assert!(matches!(folder.write(&name("a"), b"12345", false), Err(FolderError::TooLarge { .. })));
        folder.write(&name("a"), b"1234", false).unwrap();
        folder.write(&name("b"), b"", false).unwrap();
        assert!(matches!(folder.write(&name("c"), b"", false), Err(FolderError::Full { .. })));
        folder.write(&name("b"), b"1", true).unwrap();
        fs::write(home.path().join("b.bin"), b"12345").unwrap();
        assert!(matches!(folder.read(&name("b")), Err(FolderError::TooLarge { .. })));
    }

    #[test]
    fn rewrite_changes_bytes_and_name_or_neither() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().to_owned(), "thing", "bin", 2, 9);
        folder.write(&name("a"), b"one", false).unwrap();
        folder.write(&name("b"), b"two", false).unwrap();
        let rewrite = |from, to, bytes: &[u8]| folder.rewrite(&name(from), &name(to), |_| Ok(bytes.to_vec()));
        assert!(matches!(rewrite("a", "B", b"x"), Err(FolderError::Taken { .. })));
        assert!(matches!(rewrite("a", "c", &[0; 10]), Err(FolderError::TooLarge { .. })));
        assert!(matches!(rewrite("d", "c", b"x"), Err(FolderError::Missing { .. })));
        assert_eq!(folder.read(&name("a")).unwrap(), b"one");
        rewrite("a", "c", b"three").unwrap();
        rewrite("b", "B", b"four").unwrap();
        assert_eq!(names(&folder), ["B", "c"]);
        assert_eq!(folder.read(&name("c")).unwrap(), b"three");
        assert_eq!(folder.read(&name("b")).unwrap(), b"four");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_new_spelling_does_not_replace_another_file() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().to_owned(), "thing", "bin", 3, 9);
        for spelling in ["a", "A"] {
            fs::write(home.path().join(spelling).with_extension("bin"), spelling).unwrap();
        }
        // On a file system that ignores letter case, both are the same file.
        if names(&folder).len() < 2 {
            return;
        }
        assert!(matches!(folder.rename(&name("a"), &name("A")), Err(FolderError::Taken { .. })));
        let rewritten = folder.rewrite(&name("a"), &name("A"), Ok);
        assert!(matches!(rewritten, Err(FolderError::Taken { .. })));
        assert_eq!(folder.read(&name("A")).unwrap(), b"A");
    }

    #[test]
    fn a_file_replaced_during_rewrite_keeps_its_new_content() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().to_owned(), "thing", "bin", 2, 9);
        folder.write(&name("a"), b"one", false).unwrap();
        let (replaced, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let replace = || {
                folder.write(&name("a"), b"new", true).unwrap();
                replaced.send(()).unwrap();
            };
            let make = |mut bytes: Vec<u8>| {
                scope.spawn(replace);
                // The other thread must wait until this file is complete.
                assert!(wait.recv_timeout(Duration::from_millis(200)).is_err());
                bytes.extend_from_slice(b"+");
                Ok(bytes)
            };
            folder.rewrite(&name("a"), &name("a"), make).unwrap();
        });
        assert_eq!(folder.read(&name("a")).unwrap(), b"new");
    }

    #[test]
    fn an_unwritable_folder_is_detected_before_the_first_file() {
        let home = tempfile::tempdir().unwrap();
        let folder = |path: PathBuf| Folder::new(path, "thing", "bin", 2, 9);
        folder(home.path().join("not/there/yet")).check_writable().unwrap();
        folder(home.path().to_owned()).check_writable().unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        fs::write(home.path().join("file"), b"").unwrap();
        for path in ["file", "file/below", "file/far/below"] {
            assert!(folder(home.path().join(path)).check_writable().is_err(), "{path}");
        }
    }

    #[test]
    fn temporary_files_and_files_of_other_kinds_are_not_listed() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(home.path().to_owned(), "thing", "bin", 9, 9);
        for file in ["x.txt", "bin", ".bin", "two words.bin"] {
            fs::write(home.path().join(file), b"").unwrap();
        }
        fs::create_dir(home.path().join("folder.bin")).unwrap();
        let unfinished = folder.begin().unwrap();
        assert_eq!(names(&folder), [""; 0]);
        folder.finish(unfinished, &name("done"), false).unwrap();
        drop(folder.begin().unwrap());
        assert_eq!(names(&folder), ["done"]);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 6);
    }
}
