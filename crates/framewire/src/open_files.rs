//! The system's limit on open files, which also limits connections.

/// The first file descriptor for which select(2) is undefined. libmgba's script sockets use it: a higher one ends the
/// whole process.
#[cfg(unix)]
const SELECT: u64 = 1024;

/// Descriptors that are not for HTTP connections: 400 for clients of a script, 64 for clients that are being turned away,
/// and 48 for files, the runtime and listening sockets.
#[cfg(unix)]
const RESERVED: u64 = 512;

/// Raises the soft limit to the hard one: the usual 1,024 is less than the server's own limit on connections. Returns
/// the number of HTTP connections that this allows.
#[cfg(unix)]
pub fn raise_limit() -> usize {
    set_limit(u64::MAX)
}

/// Sets the soft limit to what libmgba's script sockets can handle. Returns the number of HTTP connections that this allows.
#[cfg(unix)]
pub fn limit_for_select() -> usize {
    set_limit(SELECT)
}

#[cfg(unix)]
fn set_limit(most: u64) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let target = limit.maximum.unwrap_or(u64::MAX).min(most);
    let target = if target == u64::MAX { None } else { Some(target) };
    let current = match setrlimit(Resource::Nofile, Rlimit { current: target, ..limit }) {
        Ok(()) => target,
        Err(error) => {
            tracing::debug!("the limit on open files stays at {:?}: {error}", limit.current);
            limit.current
        }
    };
    let current = current.unwrap_or(u64::MAX);
    // With a low limit, half of the descriptors are for HTTP anyway.
    current.saturating_sub(RESERVED).max(current / 2).try_into().unwrap_or(usize::MAX)
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub fn raise_limit() -> usize {
    usize::MAX
}

/// Other systems bear any descriptor.
#[cfg(not(unix))]
pub fn limit_for_select() -> usize {
    usize::MAX
}
