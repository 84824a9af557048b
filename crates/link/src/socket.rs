//! TCP settings of our sockets.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

/// Connects within `limit` to the first address of `address` that accepts.
pub(crate) async fn connect(address: &str, limit: Duration) -> io::Result<TcpStream> {
    let stream = timeout(limit, TcpStream::connect(address))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}")))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Makes the system notice when the other machine is gone, while no bytes are in flight.
///
/// There is no limit on unacknowledged data (`TCP_USER_TIMEOUT`): it would also count the time for which the buffers of a
/// paused mGBA are full (tcp(7)), and would break a connection that works again when mGBA continues.
pub(crate) fn notice_when_gone(stream: &TcpStream, after: Duration) -> io::Result<()> {
    let second = Duration::from_secs(1);
    let keepalive = socket2::TcpKeepalive::new().with_time(second.max(after / 2));
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
    let keepalive = keepalive.with_interval(second.max(after / 10));
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    let keepalive = keepalive.with_retries(5);
    socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
