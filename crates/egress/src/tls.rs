//! Whom do we believe over TLS? Certificates are always verified; only the roots can be chosen.

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
    error::{EgressError, Reason, quoted},
    target::TargetHost,
};

/// The certificates that sign for servers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TlsRoots {
    /// Those of this machine.
    System,
    /// These and no others, in PEM.
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
        // One configuration serves all callers: a resumed session would let a server tell that two of them are we,
        // and would be believed without a certificate.
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config) })
    }

    pub async fn shake_hands(
        &self,
        stream: TcpStream,
        host: &TargetHost,
    ) -> Result<TlsStream<TcpStream>, EgressError> {
        let name = match host {
            TargetHost::Address(address) => ServerName::IpAddress((*address).into()),
            TargetHost::Name(name) => ServerName::try_from(name.clone())
                .map_err(|_| failed(host, "the name cannot be in a certificate"))?,
        };
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(name, stream).await.map_err(|error| failed(host, &explained(&error)))
    }
}

fn system_roots() -> Result<RootCertStore, EgressError> {
    let mut store = RootCertStore::empty();
    // Some stores carry certificates that cannot be read; what remains is judged by whether anything remains.
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
    EgressError::new(Reason::TlsRootsUnusable, format!("the root certificates cannot be used: {why}"))
}

fn failed(host: &TargetHost, why: &str) -> EgressError {
    let message = format!("no secure connection to {}: {why}", quoted(&host.to_string()));
    EgressError::new(Reason::TlsFailed, message)
}

/// In our own words: those of the library list the names in the certificate, which are not the caller's to know.
fn explained(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match inner {
        Some(rustls::Error::InvalidCertificate(certificate)) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            CertificateError::UnknownIssuer => "its certificate is signed by nobody we trust",
            _ => "its certificate is not valid",
        },
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS",
        Some(_) => "it does not agree on a safe protocol",
        None => return error.kind().to_string(),
    };
    why.to_owned()
}
