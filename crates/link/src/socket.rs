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

/// Lets the system notice a peer whose machine is gone: a paused mGBA's machine still acknowledges, a dead one does not.
pub(crate) fn notice_when_gone(stream: &TcpStream, after: Duration) -> io::Result<()> {
    let socket = socket2::SockRef::from(stream);
    let keepalive = socket2::TcpKeepalive::new().with_time(after / 2);
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
    let keepalive = keepalive.with_interval(Duration::from_secs(1).max(after / 10));
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(after))?;
    Ok(())
}
