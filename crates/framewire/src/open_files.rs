//! The system's limit on open files, which is one on connections too.

/// Raises the soft limit to the hard one: the usual 1,024 is less than the server's own limit on connections.
#[cfg(unix)]
pub fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::debug!("the limit on open files stays at {:?}: {error}", limit.current);
    }
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub fn raise_limit() {}
