//! Files that only their owner may read: tokens and private keys.

use std::fs::Metadata;

/// Checks that only the owner of a file has access to it. The error is the file's mode.
#[cfg(unix)]
pub(crate) fn check_owner_only(metadata: &Metadata) -> Result<(), u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(mode) }
}

/// On other systems the folder decides who has access.
#[cfg(not(unix))]
pub(crate) fn check_owner_only(_metadata: &Metadata) -> Result<(), u32> {
    Ok(())
}
