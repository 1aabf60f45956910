//! Certificate verification.

use std::{net::SocketAddr, sync::Arc};

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use super::*;

struct TlsServer {
    address: SocketAddr,
    roots: TlsRoots,
    task: JoinHandle<()>,
}

impl TlsServer {
    /// A server with a self-signed certificate for these names.
    async fn start(params: CertificateParams, answer: &'static str) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { address, roots: TlsRoots::Pem(certificate.pem().into_bytes()), task }
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.address.port())
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn named(names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, "test server");
    params
}

fn trusting(roots: &TlsRoots) -> Egress {
    let here = vec!["127.0.0.1".parse().unwrap()];
    let names = FakeResolver([("a.test", here.clone()), ("b.test", here)].into());
    Egress::new(Arc::new(names), roots, limits(), Listeners::of_this_process()).unwrap()
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nsafe";

#[tokio::test]
async fn trusted_certificate_is_accepted() {
    let server = TlsServer::start(named(&["a.test", "127.0.0.1"]), OK).await;
    let egress = trusting(&server.roots);
    for host in ["a.test", "A.test.", "127.0.0.1", "127.1"] {
        let response = fetch(&egress, &open(), Request::get(server.url(host))).await.unwrap();
        assert_eq!(&response.body[..], b"safe", "{host}");
    }
}

#[tokio::test]
async fn other_certificates_are_refused_without_revealing_names() {
    let server = TlsServer::start(named(&["a.test"]), OK).await;
    let mut params = named(&["a.test"]);
    params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let expired = TlsServer::start(params, OK).await;
    for (egress, url, why) in [
        (trusting(&server.roots), server.url("b.test"), "another name"),
        (trusting(&server.roots), server.url("127.0.0.1"), "another name"),
        (trusting(&some_roots()), server.url("a.test"), "not signed by a trusted root"),
        (trusting(&expired.roots), expired.url("a.test"), "expired"),
    ] {
        let error = fetch(&egress, &open(), Request::get(&url)).await.unwrap_err();
        assert_eq!(error.slug(), "tls-failed", "{url}");
        assert!(error.message.contains(why), "{error}");
        assert!(url.contains("a.test") || !error.message.contains("a.test"), "{error}");
    }
}

#[tokio::test]
async fn server_without_tls_receives_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/?s3cret", listener.local_addr().unwrap());
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nplain").await;
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        heard
    });
    let error = fetch(&egress(), &open(), Request::get(url)).await.unwrap_err();
    assert_eq!(error.slug(), "tls-failed");
    let heard = plain.await.unwrap();
    assert!(!heard.windows(6).any(|window| window == b"s3cret"));
}

#[tokio::test]
async fn downgrade_is_followed_only_without_secrets() {
    let plain = TestServer::start(|_| ok("clear")).await;
    let answer = format!("HTTP/1.1 302 Found\r\nlocation: {}\r\n\r\n", plain.url_as("a.test", "/"));
    let server = TlsServer::start(named(&["a.test"]), answer.leak()).await;
    let egress = trusting(&server.roots);
    let request = Request::get(server.url("a.test"));
    let keyed = Request { headers: vec![("Authorization".into(), "k".into())], ..request.clone() };
    assert_eq!(slug_of(&egress, &open(), keyed).await, "insecure-redirect");
    assert_eq!(plain.seen(), Vec::<String>::new());
    let response = fetch(&egress, &open(), request).await.unwrap();
    assert_eq!(&response.body[..], b"clear");
}

#[tokio::test]
async fn body_without_close_notify_is_truncated() {
    let server =
        TlsServer::start(named(&["a.test"]), "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsafe").await;
    let slug = slug_of(&trusting(&server.roots), &open(), Request::get(server.url("a.test"))).await;
    assert_eq!(slug, "response-truncated");
}

#[test]
fn unreadable_roots_are_an_error() {
    for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let roots = TlsRoots::Pem(pem.into());
        let error =
            Egress::new(Arc::new(FakeResolver([].into())), &roots, limits(), Listeners::of_this_process())
                .unwrap_err();
        assert_eq!(error.slug(), "tls-roots-unusable", "{pem}");
    }
}
