//! TLS connections. Certificates are always verified; only the roots are configurable.

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    error::{EgressError, EgressReason, quoted},
    target::TargetHost,
};

/// The root certificates to trust.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TlsRoots {
    /// Those of this machine.
    System,
    /// Only these, in PEM.
    Pem(Vec<u8>),
}

#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    pub fn new(roots: &TlsRoots) -> Result<Self, EgressError> {
        let store = match roots {
            TlsRoots::System => system_roots()?,
            TlsRoots::Pem(pem) => pem_roots(pem)?,
        };
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error.to_string()))?
            .with_root_certificates(store)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // All callers share this configuration. A resumed session would let a server link two callers, and it skips
        // certificate verification.
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config) })
    }

    pub async fn handshake(
        &self,
        stream: TcpStream,
        host: &TargetHost,
    ) -> Result<TlsStream<TcpStream>, EgressError> {
        let name = match host {
            TargetHost::Address(address) => ServerName::IpAddress((*address).into()),
            TargetHost::Name(name) => ServerName::try_from(name.clone())
                .map_err(|_| failed(host, "the name is not valid for a certificate"))?,
        };
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(name, stream).await.map_err(|error| failed(host, &describe(&error)))
    }
}

fn system_roots() -> Result<RootCertStore, EgressError> {
    let mut store = RootCertStore::empty();
    // Some stores contain unreadable certificates. They are skipped; an empty result is an error.
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        return Err(unusable("this machine has none; install ca-certificates"));
    }
    Ok(store)
}

fn pem_roots(pem: &[u8]) -> Result<RootCertStore, EgressError> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| unusable(&error.to_string()))?;
        store.add(certificate).map_err(|error| unusable(&error.to_string()))?;
    }
    if store.is_empty() {
        return Err(unusable("the PEM text holds no certificate"));
    }
    Ok(store)
}

fn unusable(why: &str) -> EgressError {
    EgressError::new(EgressReason::TlsRootsUnusable, format!("the root certificates cannot be used: {why}"))
}

fn failed(host: &TargetHost, why: &str) -> EgressError {
    let message = format!("TLS connection to {} failed: {why}", quoted(&host.to_string()));
    EgressError::new(EgressReason::TlsFailed, message)
}

/// Describes a TLS error. The library's messages list the names in the certificate, which would tell the caller about
/// other hosts.
fn describe(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match inner {
        Some(rustls::Error::InvalidCertificate(certificate)) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            CertificateError::UnknownIssuer => "its certificate is not signed by a trusted root",
            _ => "its certificate is not valid",
        },
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS",
        Some(_) => "it supports no accepted TLS version or cipher",
        None => return error.kind().to_string(),
    };
    why.to_owned()
}
