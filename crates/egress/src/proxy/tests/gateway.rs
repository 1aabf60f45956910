//! Commands that try to reach a listener of the gateway through the proxy.

use super::*;

#[tokio::test]
async fn proxy_refuses_listeners_of_the_gateway() {
    let (gateway, egress) = (TestServer::start(|_| ok("called")).await, egress());
    egress.listeners().register(gateway.address).unwrap();
    let port = gateway.address.port();
    for host in ["127.0.0.1", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]", "a.test"] {
        let authority = format!("{host}:{port}");
        for request in [
            format!("POST http://{authority}/mcp HTTP/1.1\r\nHost: {authority}\r\nContent-Length: 0\r\n\r\n"),
            format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"),
        ] {
            let jail = Jail::with(&egress, open(), tunnelling(port, Carries::Anything));
            let answer = jail.say(&request).await;
            assert_eq!(
                header(&answer, "x-toolgate-refusal"),
                Some("gateway-listener"),
                "{request}\n{answer}"
            );
        }
    }
    assert_eq!(gateway.seen(), Vec::<String>::new());
}
