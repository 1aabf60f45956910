//! Requests to a listener of the gateway itself.

use url::Url;

use super::*;

/// An `Egress` that knows the server as a listener of the gateway.
async fn gateway() -> (TestServer, Egress) {
    let (server, egress) = (TestServer::start(|_| ok("called")).await, egress());
    egress.listeners().register(server.address).unwrap();
    (server, egress)
}

fn listing(host: &str) -> EgressRules {
    EgressRules {
        mode: EgressMode::Allowlist,
        hosts: vec![HostRule::exact(host.into())],
        ..EgressRules::blocked()
    }
}

#[tokio::test]
async fn gateway_is_refused_by_address_and_by_name() {
    let (server, egress) = gateway().await;
    let port = server.address.port();
    let hosts = ["127.0.0.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "a.test"];
    for host in hosts {
        let request = Request::get(format!("http://{host}:{port}/"));
        assert_eq!(slug_of(&egress, &open(), request).await, "gateway-listener", "{host}");
    }
    let direct = || Request::get(server.url("/"));
    assert_eq!(slug_of(&egress, &loopback(), direct()).await, "gateway-listener");
    // The rules for webhooks, collectors and issuers.
    let only = EgressRules::only(&Url::parse(&server.url("/")).unwrap());
    assert_eq!(slug_of(&egress, &only, direct()).await, "gateway-listener");
    let listed = EgressRules { guard_private: crate::Guard::Off, ..listing("a.test") };
    let named = Request::get(server.url_as("a.test", "/"));
    assert_eq!(slug_of(&egress, &listed, named).await, "gateway-listener");
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn redirect_does_not_lead_to_the_gateway() {
    let (gateway, egress) = gateway().await;
    for location in [gateway.url("/mcp"), gateway.url_as("a.test", "/mcp"), gateway.url_as("0x7f.1", "/mcp")]
    {
        let server = TestServer::start(move |_| redirect(307, &location)).await;
        assert_eq!(slug_of(&egress, &open(), Request::get(server.url("/"))).await, "gateway-listener");
        assert_eq!(server.seen().len(), 1);
    }
    assert_eq!(gateway.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn other_port_of_the_same_address_is_reached() {
    let (_gateway, egress) = gateway().await;
    let other = TestServer::start(|_| ok("other")).await;
    let response = fetch(&egress, &loopback(), Request::get(other.url("/"))).await.unwrap();
    assert_eq!(&response.body[..], b"other");
}
