//! Proxies in the environment of the gateway are ignored. Tested in a separate process, because all tests of a process
//! share its environment.

use std::{env, io, net, process};

use super::*;

#[tokio::test]
async fn proxies_from_the_environment_are_ignored() {
    if let Ok(url) = env::var(ASKED) {
        return ask(url).await;
    }
    let server = TestServer::start(|_| ok("direct")).await;
    let (proxy, proxy_address) = listener();
    let (tls, tls_address) = listener();
    for url in [server.url("/"), format!("https://{tls_address}/")] {
        let proxy_url = format!("http://{proxy_address}");
        let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        let mut child = process::Command::new(env::current_exe().unwrap());
        child.args(["--exact", "fetch::tests::environment::proxies_from_the_environment_are_ignored"]);
        child.env(ASKED, &url).envs(names.map(|name| (name, &proxy_url)));
        child.env_remove("NO_PROXY").env_remove("no_proxy");
        let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{url}: {said}");
        assert!(!was_called(&proxy), "{url} went to the proxy");
    }
    assert_eq!(server.seen().len(), 1);
    assert!(was_called(&tls));
    // This connection is detected.
    let _call = net::TcpStream::connect(&proxy_address).unwrap();
    assert!(was_called(&proxy));
}

async fn ask(url: String) {
    let is_tls = url.starts_with("https:");
    let egress = egress_with(EgressLimits { tls: Duration::from_millis(100), ..limits() });
    match fetch(&egress, &loopback(), Request::get(url)).await {
        Ok(response) => assert_eq!(&response.body[..], b"direct"),
        // The server never responds; connecting is enough.
        Err(error) => assert!(is_tls && error.slug() == "tls-timeout", "{error:?}"),
    }
}

fn listener() -> (net::TcpListener, String) {
    let listener = net::TcpListener::bind((net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// The kernel completes a connection before `connect` returns, so no connection is missed after the client has ended.
fn was_called(listener: &net::TcpListener) -> bool {
    match listener.accept() {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            false
        }
    }
}

const ASKED: &str = "TOOLGATE_TEST_URL";
