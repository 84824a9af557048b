//! Which operations a caller may use, on every route, and which files it may name.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use framewire_emulator::EmulatorError;
use framewire_protocol::{Batch, Effect, OpError};

use super::caller::{Caller, Reach, Rights};

/// A caller's rights to use emulators.
#[derive(Debug, Clone)]
pub(crate) struct Permit {
    caller: Caller,
    /// The only folder in which the caller may name files. Without a folder, callers on this machine may name any file,
    /// and other callers may not name files.
    files: Option<Files>,
}

impl Permit {
    /// The permit of a caller; `None` if the caller may do everything and nothing has to be added to its batches.
    pub(crate) fn of(caller: &Caller, files: Option<&Files>) -> Option<Permit> {
        let Caller { reach, rights, trace, .. } = caller;
        let is_unbounded =
            *rights == Rights::Full && *reach == Reach::Local && trace.is_none() && files.is_none();
        if is_unbounded { None } else { Some(Permit { caller: caller.clone(), files: files.cloned() }) }
    }

    /// Checks a batch, resolves the files that it names, and adds the request's id for logs.
    pub(crate) fn check(&self, batch: &mut Batch) -> Result<(), EmulatorError> {
        if self.caller.rights == Rights::Read
            && let Some(change) = batch.ops.iter().find(|op| op.info().effect == Effect::Change)
        {
            let name = change.info().name;
            return Err(EmulatorError::Forbidden(format!(
                "the token of the request is read-only, and {name} changes something"
            )));
        }
        batch.trace = self.caller.trace.as_deref().map(str::to_owned);
        batch.ops.iter_mut().try_for_each(|op| op.try_for_each_path(|path| self.check_path(path)))
    }

    pub(crate) fn may_name_files(&self) -> Result<(), EmulatorError> {
        match (&self.files, self.caller.reach) {
            (None, Reach::Remote) => Err(EmulatorError::Forbidden(
                "files cannot be named from another machine unless framewire is started with --files DIR"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    fn check_path(&self, path: &mut String) -> Result<(), EmulatorError> {
        self.may_name_files()?;
        if let Some(files) = &self.files {
            *path = files.resolve(path)?;
        }
        Ok(())
    }
}

/// The name of the folder for games that callers send. It is inside the folder of [`Files`] or, if there is no such
/// folder, inside the data folder.
pub(crate) const UPLOADS: &str = "uploads";

/// The folder with the files that callers may name. Paths that lead out of this folder are refused.
#[derive(Debug, Clone)]
pub struct Files {
    /// The path of the folder, after following all links.
    root: PathBuf,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be the folder for files", path.display())]
pub struct FilesError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

impl Files {
    /// Lets callers name files in this folder, which must exist.
    ///
    /// # Errors
    /// If there is no folder at `path`, or if the folder's path cannot be resolved or is not UTF-8.
    pub fn within(path: &Path) -> Result<Files, FilesError> {
        let failed = |source| FilesError { path: path.to_owned(), source };
        let root = path.canonicalize().map_err(failed)?;
        if !root.is_dir() {
            return Err(failed(ErrorKind::NotADirectory.into()));
        }
        if root.to_str().is_none() {
            return Err(failed(std::io::Error::new(ErrorKind::InvalidInput, "its path is not UTF-8")));
        }
        Ok(Files { root })
    }

    pub(crate) fn uploads(&self) -> PathBuf {
        self.root.join(UPLOADS)
    }

    /// The file at a caller's `path`, after following links. It must be inside the folder for files. It may be missing,
    /// but the folder that would contain it must exist. The error does not reveal what exists outside.
    pub(crate) fn resolve(&self, path: &str) -> Result<String, OpError> {
        let refused = || {
            OpError::bad_argument(format!(
                "the path {path:?} is not inside the folder for files, or a folder in this path does not exist; name a \
                 file by its path from the folder for files, without .., such as game.gba or states/1.ss"
            ))
        };
        let asked = Path::new(path);
        let plain = |component| matches!(component, Component::Normal(_) | Component::CurDir);
        let steps = asked.strip_prefix(&self.root).unwrap_or(asked);
        if path.is_empty() || path.contains('\0') || !steps.components().all(plain) {
            return Err(refused());
        }
        let found = follow(&self.root.join(steps)).filter(|found| found.starts_with(&self.root));
        found.and_then(|found| found.into_os_string().into_string().ok()).ok_or_else(refused)
    }
}

/// The file to which a path leads after following all links. Only the last part of the path may be missing. A path can
/// continue after a file, because a game in an archive is named that way: `pack.zip/game.gba`.
fn follow(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(found) => Some(found),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            let file = path.ancestors().find(|part| part.is_file())?;
            Some(file.canonicalize().ok()?.join(path.strip_prefix(file).ok()?))
        }
        Err(error) if error.kind() != ErrorKind::NotFound => None,
        // The path is a link to a missing file. Creating the file would follow the link.
        Err(_) if path.symlink_metadata().is_ok() => None,
        Err(_) => Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder for files next to a secret, with links of each kind.
    fn folder() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("in");
        std::fs::create_dir_all(inside.join("states")).unwrap();
        std::fs::create_dir(folder.path().join("inside-too")).unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::fs::write(inside.join("game.gba"), "g").unwrap();
        symlink(folder.path().join("secret"), inside.join("out")).unwrap();
        symlink("../nothing", inside.join("dangling")).unwrap();
        symlink(folder.path(), inside.join("up")).unwrap();
        symlink("game.gba", inside.join("alias")).unwrap();
        symlink("loop", inside.join("loop")).unwrap();
        let files = Files::within(&inside).unwrap();
        (folder, files)
    }

    #[test]
    fn paths_inside_the_folder_are_found() {
        let (folder, files) = folder();
        let root = folder.path().canonicalize().unwrap().join("in");
        for (path, leads) in [
            ("game.gba", "game.gba"),
            ("./game.gba", "game.gba"),
            ("states/new.ss", "states/new.ss"),
            ("alias", "game.gba"),
            ("a file \u{e9}.png", "a file \u{e9}.png"),
            ("..game", "..game"),
            ("game.gba/inside", "game.gba/inside"),
            ("alias/folder/inside", "game.gba/folder/inside"),
        ] {
            assert_eq!(Path::new(&files.resolve(path).unwrap()), root.join(leads), "{path}");
        }
        let absolute = root.join("game.gba");
        assert_eq!(Path::new(&files.resolve(absolute.to_str().unwrap()).unwrap()), absolute);
    }

    #[test]
    fn paths_that_lead_outside_the_folder_are_refused() {
        let (folder, files) = folder();
        let base = folder.path().to_str().unwrap();
        let absolute =
            [format!("{base}/secret"), format!("{base}/in/../secret"), format!("{base}/inside-too/x")];
        let relative = [
            "",
            "..",
            "../secret",
            "states/../../secret",
            "states/../game.gba",
            "/etc/passwd",
            "//etc/passwd",
            "out",
            "dangling",
            "up/secret",
            "up/in/../secret",
            "up/new",
            "loop",
            "none/new",
            "out/inside",
            "up/secret/inside",
            "game.gba/../../secret",
            "a\0b",
            "./../secret",
        ];
        for path in absolute.iter().map(String::as_str).chain(relative) {
            assert!(files.resolve(path).is_err(), "{path:?} gave {:?}", files.resolve(path));
        }
        assert!(
            !files.resolve("out").unwrap_err().message.contains(base),
            "the refusal must not show where links lead"
        );
    }

    #[test]
    fn only_a_folder_can_hold_files() {
        let (folder, _) = folder();
        assert!(Files::within(&folder.path().join("secret")).is_err());
        assert!(Files::within(&folder.path().join("nothing")).is_err());
    }
}
