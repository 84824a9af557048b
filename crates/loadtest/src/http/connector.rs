//! Opens connections to a server: over TCP or a Unix socket, with or without TLS.

use std::fmt;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
#[cfg(unix)]
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

use super::HttpOptions;
use crate::check::MAX_FILE;
use crate::url::{Url, UrlError};

/// The time between two attempts to connect to a Unix socket whose queue of new connections is full.
#[cfg(unix)]
const QUEUE_PERIOD: Duration = Duration::from_millis(1);

/// A connection, as a stream of bytes.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug> Stream for T {}

/// Which servers are trusted over TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Trust {
    /// Servers with a certificate that was issued by an authority that this machine trusts.
    #[default]
    System,
    /// Servers with a certificate that was issued by an authority in this PEM file, or with a self-signed certificate
    /// that is in the file.
    File(PathBuf),
    /// Every server, with any certificate. Only for tests.
    AnyCertificate,
}

/// Why connections cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// The address cannot be used.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The address is not an HTTP address.
    #[error("{0}:// is not supported; use an http:// or https:// address")]
    Scheme(String),
    /// The file of certificates cannot be used.
    #[error("{path} has no certificate in PEM form that can be used: {reason}")]
    Certificates {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// This machine does not trust any authority.
    #[error("this machine has no certificates of authorities; name a file with --cacert")]
    NoAuthorities,
    /// The host has a name that no certificate can have.
    #[error("{0:?} cannot be the name of a TLS server")]
    Name(String),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The system has no Unix sockets.
    #[error("this system has no Unix sockets; leave --unix-socket out")]
    NoUnixSockets,
}

/// The address of a server.
#[derive(Debug, Clone)]
enum Place {
    /// The addresses of its host, and the index of the address that accepted the last connection. That address is tried
    /// first.
    Tcp(Vec<SocketAddr>, Arc<AtomicUsize>),
    #[cfg(unix)]
    Unix(PathBuf),
}

/// Opens connections to one server.
#[derive(Clone)]
pub(super) struct Connector {
    place: Place,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// Whether the system may hold back small packets.
    nagle: bool,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("place", &self.place).field("tls", &self.tls.is_some()).finish()
    }
}

impl Connector {
    /// A connector for the server at `url`, or for the server that listens on the Unix socket of `options`.
    pub(super) fn new(url: &Url, options: &HttpOptions) -> Result<Connector, ConnectorError> {
        let tls = match url.scheme.as_str() {
            "http" => None,
            "https" => {
                let name = ServerName::try_from(url.host.clone());
                let name = name.map_err(|_| ConnectorError::Name(url.host.clone()))?;
                Some((TlsConnector::from(Arc::new(config(&options.trust, options.http2)?)), name))
            }
            other => return Err(ConnectorError::Scheme(other.to_owned())),
        };
        let place = match &options.unix_socket {
            None => Place::Tcp(url.resolve()?, Arc::default()),
            #[cfg(unix)]
            Some(path) => Place::Unix(path.clone()),
            #[cfg(not(unix))]
            Some(_) => return Err(ConnectorError::NoUnixSockets),
        };
        Ok(Connector { place, tls, nagle: options.nagle })
    }

    pub(super) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match &self.place {
            Place::Tcp(addresses, accepted) => {
                let stream = connect(addresses, accepted).await?;
                stream.set_nodelay(!self.nagle)?;
                self.secure(stream).await
            }
            #[cfg(unix)]
            Place::Unix(path) => self.secure(connect_unix(path).await?).await,
        }
    }

    async fn secure(&self, stream: impl Stream + 'static) -> io::Result<Box<dyn Stream>> {
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some((connector, name)) => Ok(Box::new(connector.connect(name.clone(), stream).await?)),
        }
    }
}

/// Connects to one of the addresses. Tries the one with the index `accepted` first.
async fn connect(addresses: &[SocketAddr], accepted: &AtomicUsize) -> io::Result<TcpStream> {
    let first = accepted.load(Relaxed);
    let mut result = Err(io::ErrorKind::NotFound.into());
    for index in (first..addresses.len()).chain(0..first) {
        result = TcpStream::connect(addresses[index]).await;
        if result.is_ok() {
            accepted.store(index, Relaxed);
            break;
        }
    }
    result
}

/// Connects to a Unix socket. While the server's queue of new connections is full, the system's `connect` waits if the
/// socket is a blocking one; otherwise, as here, it fails. This function waits in both cases.
#[cfg(unix)]
async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(QUEUE_PERIOD).await,
            result => return result,
        }
    }
}

fn config(trust: &Trust, http2: bool) -> Result<ClientConfig, ConnectorError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::AnyCertificate => {
            let verifier = Arc::new(Unverified(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
        trust => builder.with_root_certificates(authorities(trust)?).with_no_client_auth(),
    };
    let protocol: &[u8] = if http2 { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

fn authorities(trust: &Trust) -> Result<RootCertStore, ConnectorError> {
    let mut store = RootCertStore::empty();
    let Trust::File(path) = trust else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if store.is_empty() { Err(ConnectorError::NoAuthorities) } else { Ok(store) };
    };
    let unusable = |reason: String| ConnectorError::Certificates { path: path.display().to_string(), reason };
    let pem = framewire_files::read(path, MAX_FILE).map_err(|error| unusable(error.to_string()))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        store.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if store.is_empty() { Err(unusable("it has no CERTIFICATE section".to_owned())) } else { Ok(store) }
}

/// Accepts every certificate, for tests of servers whose certificate is not signed by an authority.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
