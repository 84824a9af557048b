//! The file of a recording in progress.
//!
//! The file is in the folder of recordings. Its temporary name contains the final name, and it is locked while the
//! program runs. Even if the program is killed, the recording can be played up to the last complete entry of this file.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use framewire_protocol::wire::Wire;
use framewire_states::{Folder, FolderError, Name};
use tempfile::NamedTempFile;

use crate::reader::EndPlace;
use crate::{Entry, MAX_FILE};

/// The beginning of the names of such files. No [`Name`] begins like this.
const PREFIX: &str = ".recording-";

/// Creates the file of a recording that will be called `name`. The file is removed when the handle is dropped, unless
/// its cleanup is disabled.
pub(crate) fn begin(folder: &Folder, name: &Name) -> Result<NamedTempFile, FolderError> {
    folder.begin_with(&format!("{PREFIX}{name}-"))
}

/// The files of all recordings that are not complete, with the final names of the recordings. Such a recording may
/// still be in progress, in this program or another one, or its program may have ended before the recording was
/// complete.
pub(crate) fn all(folder: &Folder) -> Vec<(PathBuf, Name)> {
    let files = fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let named = files.filter_map(|file| {
        let name = file.file_name();
        let (name, _) = name.to_str()?.strip_prefix(PREFIX)?.rsplit_once('-')?;
        Some((file.path(), name.parse().ok()?))
    });
    named.collect()
}

/// Describes a recording whose file was completed.
pub(crate) struct Completed {
    pub frames: u64,
    pub bytes: u64,
    pub reason: String,
}

/// Completes a file after a failed write: writes the entry for the end after the last complete entry. If the disk is
/// full, the end replaces the last entries. `reason` gets the number of frames, and returns the reason for the end.
pub(crate) fn complete(file: &mut File, reason: impl Fn(u64) -> String) -> io::Result<Completed> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    Read::by_ref(file).take(MAX_FILE).read_to_end(&mut bytes)?;
    let places = EndPlace::last(&bytes).map_err(io::Error::other)?;
    let mut failure = None;
    for EndPlace { offset, frames, mut checksum } in places.into_iter().rev() {
        let reason = reason(frames);
        let mut end = Entry::End { frames, reason: reason.clone() }.to_bytes();
        checksum.update(&end);
        checksum.finalize().encode(&mut end);
        let total = (offset + end.len()) as u64;
        // After a failed write, the disk may be full, so the file must not become longer.
        if failure.is_some() && total > bytes.len() as u64 {
            continue;
        }
        file.seek(SeekFrom::Start(offset as u64))?;
        let written = file.write_all(&end).and_then(|()| file.set_len(total)).and_then(|()| file.sync_data());
        match written {
            Ok(()) => return Ok(Completed { frames, bytes: total, reason }),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::Error::other("nothing in it can be played")))
}
