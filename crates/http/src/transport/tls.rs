//! Connections with or without TLS, and the server's certificate and key.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// First byte of a TLS connection: a record of type handshake (RFC 8446, 5.1).
pub(crate) const HANDSHAKE: u8 = 22;

/// The largest file with certificates or a key that is accepted, in bytes.
const MAX_PEM: u64 = 1 << 20;

/// The server's certificate and private key, for TLS 1.2 and 1.3.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

/// Why a certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", .0.display())]
    Unreadable(PathBuf, #[source] std::io::Error),
    /// A file does not contain what it should.
    #[error("{} holds no {wanted} in PEM form, which begins with -----BEGIN {label}-----", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What should be in it.
        wanted: &'static str,
        /// The PEM label of what should be in it, such as `CERTIFICATE`.
        label: &'static str,
    },
    /// A file is damaged.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The permissions of the key's file let other users read or change the key.
    #[error(
        "other users can read or change the private key {} (mode {mode:03o}); type: chmod 600 {}", path.display(), path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The certificate and the key do not belong together, or are of a kind that is not supported.
    #[error("the certificate {} and the key {} cannot be used together", certificate.display(), key.display())]
    Unfit {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong with them.
        #[source]
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads a certificate with its chain, and its private key, both in PEM form.
    ///
    /// # Errors
    /// If a file cannot be read or contains something else, if the certificate and the key do not belong together, or
    /// if other users have access to the key.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let pem = framewire_files::read(certificate, MAX_PEM)
            .map_err(|error| TlsError::Unreadable(certificate.to_owned(), error))?;
        let chain = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| wrong(certificate, "certificate", "CERTIFICATE", error))?;
        if chain.is_empty() {
            return Err(wrong(certificate, "certificate", "CERTIFICATE", PemError::NoItemsFound));
        }
        let unreadable = |error| TlsError::Unreadable(key.to_owned(), error);
        let file = File::open(key).map_err(unreadable)?;
        check_owner_only(&file.metadata().map_err(unreadable)?)
            .map_err(|mode| TlsError::Exposed { path: key.to_owned(), mode })?;
        let pem = framewire_files::read_from(file, MAX_PEM).map_err(unreadable)?;
        let secret = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|error| wrong(key, "private key", "PRIVATE KEY", error))?;
        let unfit =
            |source| TlsError::Unfit { certificate: certificate.to_owned(), key: key.to_owned(), source };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unfit)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(Arc::new(config)))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.clone())
    }
}

fn wrong(path: &Path, wanted: &'static str, label: &'static str, error: PemError) -> TlsError {
    let path = path.to_owned();
    match error {
        PemError::NoItemsFound => TlsError::Missing { path, wanted, label },
        error => TlsError::Damaged { path, reason: error.to_string() },
    }
}

/// A stream to and from a client, with or without TLS.
#[derive(Debug)]
pub(crate) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ClientStream {
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            ClientStream::Plain(stream) => stream,
            ClientStream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Whether the client will send nothing more: it has closed the connection, or only its own side of it. Bytes that
    /// it sent before may still be waiting here.
    pub(crate) fn has_left(&self) -> bool {
        // With `WRITABLE`, the result is available at once, even if there is nothing to read.
        let interest = Interest::READABLE | Interest::WRITABLE;
        matches!(self.socket().ready(interest).now_or_never(), Some(Ok(ready)) if ready.is_read_closed())
    }
}

/// Calls the same method on either kind of stream.
macro_rules! either {
    ($stream:expr, $method:ident($($arg:expr),*)) => {
        match $stream.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).$method($($arg),*),
            ClientStream::Tls(stream) => Pin::new(stream.as_mut()).$method($($arg),*),
        }
    };
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, poll_read(cx, buffer))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            ClientStream::Plain(stream) => stream.is_write_vectored(),
            ClientStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, poll_shutdown(cx))
    }
}

/// Checks that only the owner of a file has access to it. The error is the file's mode.
#[cfg(unix)]
pub(crate) fn check_owner_only(metadata: &Metadata) -> Result<(), u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(mode) }
}

/// On other systems, nothing is checked: the permissions of the folder decide who has access.
#[cfg(not(unix))]
pub(crate) fn check_owner_only(_metadata: &Metadata) -> Result<(), u32> {
    Ok(())
}
