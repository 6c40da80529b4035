//! TLS for clients that ask for it (`NBD_OPT_STARTTLS`), or for all.
//!
//! ```text
//!   client ─TLS─► thread of the connection ─plain, socket pair─► front, in the engine's thread
//! ```
//!
//! When a client begins TLS, its socket goes to a thread of its own ([`relay`]). This thread makes the
//! handshake, encrypts and decrypts; the front talks to the other end of a pair of sockets, as if the client
//! were there. So no cryptography runs in the engine's thread, and neither a slow nor a hostile handshake
//! delays other clients. Time-outs and limits are the front's, as for connections without TLS: it hangs up on
//! its end, and the thread ends.
//!
//! If clients must have certificates, the thread tells the front the names in the certificate
//! ([`Certificate`](crate::peer::Certificate)), before it passes on the first byte.
//!
//! The names of the files are those that nbdkit and QEMU use.
//!
//! What it does not do: pre-shared keys, which rustls does not have; reload certificates while it runs;
//! schedule the time of processors, so that a client's cryptography costs its own thread and no share.
//!
//= nbd doc/proto.md#tls-support

mod keys;
pub(super) mod relay;

use crate::error::{Error, ErrorKind};
use crate::opening::read_file;
use relay::Threads;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a file of certificates, keys or revocations.
const PEM_MAX: u64 = 16 << 20;

/// Whether clients can use TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TlsMode {
    /// They cannot.
    #[default]
    Off,
    /// They can.
    On,
    /// They have to: before TLS, a client can neither list nor open an export.
    Require,
}

/// TLS of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TlsOptions {
    /// Whether clients can, or have to, use TLS. Default: they cannot.
    pub mode: TlsMode,
    /// The folder with `server-cert.pem` and `server-key.pem`, and `ca-cert.pem` and perhaps `ca-crl.pem` if
    /// clients are verified.
    pub certificates: PathBuf,
    /// Whether a client needs a certificate of the authority in `ca-cert.pem`. Default false.
    pub verify_peer: bool,
}

/// What connections need to begin TLS.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) mode: TlsMode,
    config: Arc<ServerConfig>,
    pub(super) threads: Arc<Threads>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS {:?}", self.mode)
    }
}

impl Tls {
    /// Reads the certificates. Returns `None` if there is to be no TLS.
    pub(super) fn new(options: &TlsOptions) -> Result<Option<Self>, Error> {
        if options.mode == TlsMode::Off {
            return Ok(None);
        }
        let provider = Arc::new(default_provider());
        let wrong =
            |path: &Path, why: String| Error::new(ErrorKind::File, format!("TLS: {}: {why}", path.display()));
        let (cert, key) = (options.file("server-cert.pem"), options.file("server-key.pem"));
        let chain: Vec<CertificateDer<'static>> = certificates(&cert)?;
        let secret = read_file(&key, PEM_MAX).map_err(|e| wrong(&key, e.to_string()))?;
        let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|e| wrong(&key, pem_error(&e)))?;
        let secret = keys::of_usual_length(secret);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::new(ErrorKind::Setting, format!("TLS: {e}")))?;
        let builder = match options.verify_peer {
            true => builder.with_client_cert_verifier(verifier(options, provider)?),
            false => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, secret).map_err(|e| wrong(&cert, e.to_string()))?;
        Ok(Some(Self { mode: options.mode, config: Arc::new(config), threads: Arc::default() }))
    }
}

impl TlsOptions {
    fn file(&self, name: &str) -> PathBuf {
        self.certificates.join(name)
    }
}

/// Verifies clients: their certificate is of the authority, has not expired, and is not revoked.
fn verifier(
    options: &TlsOptions,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let path = options.file("ca-cert.pem");
    let wrong =
        |path: &Path, why: String| Error::new(ErrorKind::File, format!("TLS: {}: {why}", path.display()));
    let mut roots = RootCertStore::empty();
    for authority in certificates(&path)? {
        roots.add(authority).map_err(|e| wrong(&path, e.to_string()))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let path = options.file("ca-crl.pem");
    if path.exists() {
        let lists = read_file(&path, PEM_MAX).map_err(|e| wrong(&path, e.to_string()))?;
        let lists = CertificateRevocationListDer::pem_slice_iter(&lists).collect::<Result<Vec<_>, _>>();
        let lists = lists.map_err(|e| wrong(&path, pem_error(&e)))?;
        builder =
            builder.with_crls(lists).only_check_end_entity_revocation().allow_unknown_revocation_status();
    }
    builder.build().map_err(|e| wrong(&path, e.to_string()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |why: String| Error::new(ErrorKind::File, format!("TLS: {}: {why}", path.display()));
    let all = read_file(path, PEM_MAX).map_err(|e| wrong(e.to_string()))?;
    let all = CertificateDer::pem_slice_iter(&all).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|e| wrong(pem_error(&e)))?;
    if all.is_empty() { Err(wrong("there is no certificate in it".to_owned())) } else { Ok(all) }
}

fn pem_error(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(e) => e.to_string(),
        pem::Error::NoItemsFound => "nothing of the kind is in it".to_owned(),
        other => format!("not PEM: {other}"),
    }
}
