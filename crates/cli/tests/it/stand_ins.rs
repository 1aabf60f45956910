//! A fake internet in namespaces: public names lead to a test server, and scripts replace rare programs.
//!
//! The binary under test is unchanged, and no traffic leaves this machine.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rcgen::{CertificateParams, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring, pki_types::PrivateKeyDer};

/// Runs the named test again inside the namespaces, where it may change mounts and addresses.
#[track_caller]
pub fn enter(test: &str) {
    let world = tempfile::tempdir().unwrap();
    write_world(world.path());
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", MAKE_WORLD, "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("TOOLGATE_TEST_WORLD", world.path())
        .env("TOOLGATE_TEST_ADDRESS", ADDRESS)
        .output()
        .unwrap();
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    // A name that matches no test would pass without running anything.
    assert!(
        output.status.success() && said.contains("1 passed"),
        "this test needs namespaces (`unshare`) and iproute2 (`ip`)\n{said}"
    );
}

/// Inside: starts the server and passes the environment that trusts its certificate.
pub fn inside(world: &Path, check: impl FnOnce(&[(&str, String)])) {
    let seen = observed(world, |environment, _| check(environment));
    assert_eq!(seen, BTreeSet::from(HOSTS.map(str::to_owned)), "every tool of the web asked its own host");
}

/// Like `inside`, but returns the requested hosts. `check` also gets the number of connections and DNS queries so far.
pub fn observed(world: &Path, check: impl FnOnce(&[(&str, String)], &AtomicUsize)) -> BTreeSet<String> {
    let roots = world.join("roots.pem");
    let requests = Arc::new(AtomicUsize::new(0));
    know_nothing_more(Arc::clone(&requests));
    let seen = serve(&roots, Arc::clone(&requests));
    let token = || TOKEN.to_owned();
    let environment = [
        ("SSL_CERT_FILE", roots.display().to_string()),
        ("MESSAGE_TOKEN", token()),
        ("ARGOCD_TOKEN", token()),
        ("LOKI_TOKEN", token()),
    ];
    check(&environment, &requests);
    seen.lock().unwrap().clone()
}

/// A name server that answers every query with no records. It gets queries that the hosts file does not answer, such as
/// for the other address family.
fn know_nothing_more(requests: Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
    thread::spawn(move || {
        let mut message = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut message) {
            requests.fetch_add(1, Ordering::SeqCst);
            let Some(message) = message.get_mut(..length).filter(|message| message.len() > 12) else {
                continue;
            };
            // A successful answer without records.
            message[2..4].copy_from_slice(&[0x81, 0x80]);
            message[6..12].fill(0);
            let end = 12 + message[12..].iter().position(|byte| *byte == 0).unwrap_or_default() + 5;
            drop(socket.send_to(message.get(..end).unwrap_or_default(), from));
        }
    });
}

/// Writes a copy of `/etc` with test hosts and a kubeconfig, and the programs.
fn write_world(world: &Path) {
    for folder in ["etc", "bin"] {
        fs::create_dir(world.join(folder)).unwrap();
    }
    for (name, script) in [("kubectl", KUBECTL), ("argocd", ARGOCD), ("logcli", LOGCLI)] {
        let program = world.join("bin").join(name);
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let hosts = HOSTS.map(|name| format!("{ADDRESS} {name}\n"));
    fs::write(world.join("hosts"), hosts.concat()).unwrap();
}

/// Skips unreadable files, because only root can read all of `/etc`.
const MAKE_WORLD: &str = r#"set -e
cd "$TOOLGATE_TEST_WORLD"
PATH="$PATH:/usr/sbin:/sbin"
cp -a /etc/. etc/ 2>/dev/null || true
mkdir -p etc/toolgate/kube
echo 'apiVersion: v1' > etc/toolgate/kube/config
rm -f etc/hosts etc/resolv.conf
cp hosts etc/hosts
echo 'nameserver 127.0.0.1' > etc/resolv.conf
mount --bind etc /etc
mount --bind bin /usr/local/bin
ip link set lo up
ip addr add "$TOOLGATE_TEST_ADDRESS/32" dev lo
exec "$@"
"#;

/// The scripts refuse arguments that the real programs would refuse, so broken command lines fail.
const KUBECTL: &str = r#"#!/bin/sh
[ -r "$KUBECONFIG" ] || { echo "no kubeconfig" >&2; exit 1; }
case "$1 $2" in
  "get pods") echo '{"items": [{"metadata": {"name": "web-0"}, "spec": {}, "status": {"phase": "Running"}}]}' ;;
  "get events") echo '{"items": [{"type": "Warning", "reason": "BackOff", "message": "restarting"}]}' ;;
  "logs --namespace=default") echo '2026-01-01T00:00:00Z ready' ;;
  *) echo "unknown command: $*" >&2; exit 2 ;;
esac
"#;

const ARGOCD: &str = r#"#!/bin/sh
[ "$ARGOCD_AUTH_TOKEN" = stand-in-token ] || { echo "no token" >&2; exit 1; }
case "$1 $2" in
  "app get") echo '{"metadata": {"name": "storefront"}, "spec": {}, "status": {"sync": {"status": "Synced", "revision": "abc"}}}' ;;
  "app diff") ;;
  *) echo "unknown command: $*" >&2; exit 2 ;;
esac
"#;

const LOGCLI: &str = r#"#!/bin/sh
[ "$LOKI_BEARER_TOKEN" = stand-in-token ] || { echo "no token" >&2; exit 1; }
[ "$1" = query ] || { echo "unknown command: $*" >&2; exit 2; }
echo '{"line": "an error", "timestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}}'
"#;

/// An HTTPS server for all hosts. Returns the requested hosts as they arrive.
fn serve(roots: &Path, requests: Arc<AtomicUsize>) -> Arc<Mutex<BTreeSet<String>>> {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = HOSTS.map(str::to_owned).into();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    fs::write(roots, certificate.pem()).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((ADDRESS, 443)).unwrap();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let noted = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            requests.fetch_add(1, Ordering::SeqCst);
            let (config, noted) = (Arc::clone(&config), Arc::clone(&noted));
            // The client reports a broken connection.
            thread::spawn(move || drop(talk(config, stream, &noted)));
        }
    });
    seen
}

fn talk(config: Arc<ServerConfig>, stream: TcpStream, seen: &Mutex<BTreeSet<String>>) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let (mut host, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "host" => value.clone_into(&mut host),
            "content-length" => length = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let (kind, body) = answer(&host, &request);
    seen.lock().unwrap().insert(host);
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\n");
    let stream = reader.get_mut();
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len())?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// Shortened answers of the real hosts.
fn answer(host: &str, request: &str) -> (&'static str, &'static str) {
    match host {
        "example.com" => ("text/html", "<title>Example</title><p>For use in examples."),
        "docs.github.com" => ("text/plain", "User-agent: *\nDisallow:\n"),
        "hacker-news.firebaseio.com" if request.contains("topstories") => (JSON, "[11, 12, 13]"),
        "hacker-news.firebaseio.com" => {
            (JSON, r#"{"title": "A story", "score": 3, "by": "ada", "time": 1700000000}"#)
        }
        "pypi.org" => (
            JSON,
            r#"{"info": {"version": "2.32.0", "summary": "HTTP for humans", "license": "Apache-2.0"}}"#,
        ),
        "api.github.com" => (JSON, r#"{"full_name": "rust-lang/rust", "stargazers_count": 1}"#),
        "en.wikipedia.org" => (JSON, r#"{"title": "Ada Lovelace", "extract": "A mathematician."}"#),
        _ => (JSON, r#"{"ok": true}"#),
    }
}

const JSON: &str = "application/json";

/// The hosts in the test values of the shipped tools.
const HOSTS: [&str; 7] = [
    "api.github.com",
    "api.telegram.org",
    "docs.github.com",
    "en.wikipedia.org",
    "example.com",
    "hacker-news.firebaseio.com",
    "pypi.org",
];

/// A public address, because tools may not reach private ones. In this namespace it belongs to the loopback device.
const ADDRESS: &str = "93.184.215.14";

const TOKEN: &str = "stand-in-token";
