//! A small file system, for tests of full disks.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::{Error, Framewire, Process, Result};

/// A small file system in memory. It is in the mount namespace of a process of its own, so it is gone when that process
/// ends.
#[derive(Debug)]
pub struct SmallDisk {
    holder: Process,
    /// The folder that contains the mount point, and the logs of the holder process.
    place: TempDir,
    as_root: bool,
}

impl SmallDisk {
    /// Makes a disk of this many KiB; `None` if this user may not mount one.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] without `unshare` or `setpriv`, [`Error::Io`] if they cannot be started, or
    /// [`Error::Timeout`] if the disk is not mounted in time.
    pub fn new(kib: u32) -> Result<Option<SmallDisk>> {
        let place = TempDir::new().map_err(Error::io("make a folder"))?;
        let disk = place.path().join("disk");
        fs::create_dir(&disk).map_err(Error::io("make a folder"))?;
        let as_root = fs::metadata("/proc/self").is_ok_and(|data| {
            use std::os::unix::fs::MetadataExt;
            data.uid() == 0
        });
        // In the script of `sh -c`, `$0` is the argument after the script: the folder `disk`.
        let mount =
            format!("mount -t tmpfs -o size={kib}k,mode=0777 none \"$0\" && echo mounted && exec sleep 3600");
        let mut holder = Process::spawn("unshare", place.path(), |command| {
            command.arg(if as_root { "-m" } else { "-Urm" }).args(["sh", "-c", &mount]).arg(&disk);
        })?;
        let mounted = holder.wait_for("a small disk was mounted", Duration::from_secs(10), |holder| {
            let mounted = holder.stdout().contains("mounted");
            Ok(if mounted { Some(()) } else { None })
        });
        match mounted {
            Ok(()) => Ok(Some(SmallDisk { holder, place, as_root })),
            Err(Error::Ended { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The path of a file on the disk, for programs that [`serve`](Self::serve) starts.
    #[must_use]
    pub fn inside(&self, name: &str) -> String {
        self.place.path().join("disk").join(name).display().to_string()
    }

    /// The path of the same file for this process.
    #[must_use]
    pub fn outside(&self, name: &str) -> PathBuf {
        Path::new(&format!("/proc/{}/root", self.holder.pid()))
            .join(self.inside(name).trim_start_matches('/'))
    }

    /// Like [`Framewire::serve`], in the namespace of the disk.
    ///
    /// # Errors
    ///
    /// Those of [`Framewire::serve`].
    pub fn serve(&self, args: &[&str]) -> Result<Framewire> {
        let wrapper = self.wrapper();
        Framewire::serve_by(&wrapper.iter().map(String::as_str).collect::<Vec<_>>(), args)
    }

    /// The command that runs a program in the namespace of the disk.
    fn wrapper(&self) -> Vec<String> {
        let pid = self.holder.pid().to_string();
        let mut wrapper = vec!["nsenter".to_owned(), "-t".to_owned(), pid, "-m".to_owned()];
        if !self.as_root {
            wrapper.extend(["-U".to_owned(), "--preserve-credentials".to_owned()]);
        }
        wrapper
    }

    /// Makes the disk read-only, or writable again.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the system refuses.
    pub fn set_read_only(&self, read_only: bool) -> Result<()> {
        let wrapper = self.wrapper();
        let option = if read_only { "remount,ro" } else { "remount,rw" };
        let mut command = Command::new(&wrapper[0]);
        command.args(&wrapper[1..]).args(["mount", "-o", option, &self.inside("")]);
        let failed = || Error::io("mount the disk again");
        let status = command.status().map_err(failed())?;
        if status.success() { Ok(()) } else { Err(failed()(std::io::Error::other(status.to_string()))) }
    }

    /// Fills the disk until only `left` bytes are free, rounded down to pages.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file that fills the disk cannot be written.
    pub fn fill_up_to(&self, left: u64) -> Result<()> {
        let failed = |what: &str| Error::io(what.to_owned());
        let mut file = File::create(self.outside("filler")).map_err(failed("make the filler"))?;
        let page = [0x5A; 4096];
        let mut size = 0;
        while file.write_all(&page).is_ok() {
            size += page.len() as u64;
        }
        file.set_len(size.saturating_sub(left)).map_err(failed("shorten the filler"))
    }

    /// Frees the space that [`fill_up_to`](Self::fill_up_to) took.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file that fills the disk cannot be removed.
    pub fn empty(&self) -> Result<()> {
        fs::remove_file(self.outside("filler")).map_err(Error::io("remove the filler"))
    }
}
