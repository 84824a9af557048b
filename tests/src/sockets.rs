//! Counts the sockets of a process through `/proc`.

use std::fs;

use crate::{Error, Result};

/// The number of sockets of a process.
///
/// # Errors
///
/// [`Error::Io`] if the process has ended.
pub fn held_by(pid: u32) -> Result<usize> {
    let folder = format!("/proc/{pid}/fd");
    let entries = fs::read_dir(&folder).map_err(Error::io(format!("look into {folder}")))?;
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    Ok(links.filter(|link| link.to_string_lossy().starts_with("socket:")).count())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_socket_counts_while_it_is_held() {
        let pid = std::process::id();
        // Other tests in this process also open sockets, but far fewer.
        let before = held_by(pid).unwrap();
        let sockets: Vec<_> = (0..100).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        assert!(held_by(pid).unwrap() >= before + 50);
        drop(sockets);
        assert!(held_by(pid).unwrap() < before + 50);
    }
}
