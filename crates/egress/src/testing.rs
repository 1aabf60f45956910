//! Test servers on loopback, and rules and limits for tests.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
    task::JoinHandle,
};

use crate::{
    Egress, EgressError, EgressLimits, EgressMode, EgressRules, Guard, HostRule, Listeners, Request, Resolve,
    Resolving, Response, TlsRoots,
};

/// An HTTP server that answers each request with `answer` and records the requests.
pub struct TestServer {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl TestServer {
    pub async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::speaking(move |mut stream, request| {
            let answer = Arc::clone(&answer);
            async move {
                let bytes = answer(&request);
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    /// A server that sends the same bytes until the connection is closed.
    pub async fn endless(bytes: &'static str) -> Self {
        Self::speaking(move |mut stream, _| async move {
            while stream.write_all(bytes.repeat(100).as_bytes()).await.is_ok() {}
        })
        .await
    }

    /// A server that reads a request and then runs `speak`.
    pub async fn speaking<F, S>(speak: F) -> Self
    where
        F: Fn(TcpStream, String) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (speak, noted) = (Arc::new(speak), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (speak, noted) = (Arc::clone(&speak), Arc::clone(&noted));
                tokio::spawn(async move {
                    let request = read_request(&mut stream).await;
                    noted.lock().unwrap().push(request.clone());
                    speak(stream, request).await;
                });
            }
        });
        Self { address, seen, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The same URL with a name that `egress` resolves.
    pub fn url_as(&self, name: &str, path: &str) -> String {
        format!("http://{name}:{}{path}", self.address.port())
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let announced = header(head, "content-length").and_then(|length| length.parse().ok());
            if body.len() >= announced.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            _ => return text,
        }
    }
}

/// Returns the value of a header from a recorded request.
pub fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let lines = request.split("\r\n\r\n").next()?.lines().skip(1);
    let mut pairs = lines.filter_map(|line| line.split_once(": "));
    pairs.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

pub fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub fn redirect(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

/// Resolves these names; every other name fails.
pub struct FakeResolver(pub HashMap<&'static str, Vec<IpAddr>>);

impl Resolve for FakeResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        let found = self.0.get(name).cloned();
        Box::pin(async move { found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)) })
    }
}

/// An `Egress` that resolves `a.test` and `b.test` to loopback.
pub fn egress() -> Egress {
    egress_with(limits())
}

pub fn egress_with(limits: EgressLimits) -> Egress {
    let here = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let names = HashMap::from([("a.test", here.clone()), ("b.test", here), ("nothing.test", Vec::new())]);
    Egress::new(Arc::new(FakeResolver(names)), &some_roots(), limits, Listeners::of_this_process()).unwrap()
}

pub fn limits() -> EgressLimits {
    EgressLimits { response_body_bytes: 100_000, ..EgressLimits::default() }
}

/// A root certificate without servers. Most tests do not use TLS, and tests must not depend on this machine's roots.
pub fn some_roots() -> TlsRoots {
    let signed = rcgen::generate_simple_self_signed(vec!["nobody.test".to_owned()]).unwrap();
    TlsRoots::Pem(signed.cert.pem().into_bytes())
}

/// Allows everything except metadata endpoints.
pub fn open() -> EgressRules {
    EgressRules { mode: EgressMode::Open, guard_private: Guard::Off, ..EgressRules::blocked() }
}

/// Allows the loopback address and nothing else.
pub fn loopback() -> EgressRules {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let hosts = vec![HostRule::exact(address.to_string())];
    EgressRules { mode: EgressMode::Allowlist, hosts, ..EgressRules::blocked() }
}

/// Sends a request, with a timeout for the test.
pub async fn fetch(egress: &Egress, rules: &EgressRules, request: Request) -> Result<Response, EgressError> {
    let guarded = tokio::time::timeout(Duration::from_mins(1), egress.fetch(rules, request));
    guarded.await.expect("the request must end before the test timeout")
}

pub async fn slug_of(egress: &Egress, rules: &EgressRules, request: Request) -> &'static str {
    match fetch(egress, rules, request).await {
        Ok(response) => panic!("expected an error, got {response:?}"),
        Err(error) => error.slug(),
    }
}

/// A DNS server over UDP. `answer` gets the question and the number of earlier questions, and returns the datagrams to
/// send.
pub struct DnsServer {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl DnsServer {
    pub async fn start(answer: impl FnMut(&[u8], usize) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let mut answer = answer;
        let task = tokio::spawn(async move {
            let mut chunk = [0; 4096];
            for before in 0.. {
                let Ok((count, from)) = socket.recv_from(&mut chunk).await else { return };
                for datagram in answer(&chunk[..count], before) {
                    let _ = socket.send_to(&datagram, from).await;
                }
            }
        });
        Self { address, task }
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
