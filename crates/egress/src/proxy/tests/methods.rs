//! Methods that need approval.

use super::*;

fn asking(tunnel: u16) -> ProxyLimits {
    ProxyLimits {
        refused_methods: vec!["POST".into(), "DELETE".into()],
        ..tunnelling(tunnel, Carries::Anything)
    }
}

fn request(method: &str, server: &TestServer) -> String {
    let host = server.address;
    format!("{method} http://{host}/x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\nhi")
}

#[tokio::test]
async fn method_without_approval_is_refused() {
    let server = TestServer::start(|_| ok("")).await;
    let jail = Jail::new(loopback(), asking(server.address.port()));
    for method in ["POST", "post", "Delete"] {
        let answer = jail.say(request(method, &server)).await;
        assert!(answer.starts_with("HTTP/1.1 403 toolgate refused: method-needs-approval\r\n"), "{answer}");
        assert!(body(&answer).contains("(`approval.askForMethods`)"), "{answer}");
    }
    assert_eq!(server.seen(), Vec::<String>::new());
    for request in [get(&server, ""), request("PUT", &server)] {
        let answer = jail.say(request).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!(server.seen().len(), 2);
    assert_eq!(
        jail.recorded().await,
        [
            "http POST 127.0.0.1 method-needs-approval",
            "http post 127.0.0.1 method-needs-approval",
            "http Delete 127.0.0.1 method-needs-approval",
            "http GET 127.0.0.1 ok",
            "http PUT 127.0.0.1 ok",
        ]
    );
}

/// A method override header turns a POST into a DELETE on the server.
#[tokio::test]
async fn method_override_header_is_checked() {
    let server = TestServer::start(|_| ok("")).await;
    let jail = Jail::new(loopback(), asking(server.address.port()));
    for header in [
        "X-HTTP-Method-Override: DELETE",
        "x-http-method: delete",
        "X-Method-Override: PUT, Delete",
        "X_HTTP_Method_Override: DELETE",
        "X-HTTP-Method-Override: PUT\r\nX-HTTP-Method-Override: DELETE",
    ] {
        let answer = jail.say(get(&server, &format!("{header}\r\n"))).await;
        assert!(answer.starts_with("HTTP/1.1 403 toolgate refused: method-needs-approval\r\n"), "{answer}");
    }
    assert_eq!(server.seen(), Vec::<String>::new());
    for header in ["X-HTTP-Method-Override: PUT", "X-Other: DELETE"] {
        let answer = jail.say(get(&server, &format!("{header}\r\n"))).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

/// Inside a tunnel a command could send any method.
#[tokio::test]
async fn tunnel_is_refused_if_methods_need_approval() {
    let server = TestServer::start(|_| ok("")).await;
    let port = server.address.port();
    let jail = Jail::new(open(), asking(port));
    let answer = jail.say(format!("CONNECT a.test:{port} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 403 toolgate refused: method-needs-approval\r\n"), "{answer}");
    assert_eq!(server.seen(), Vec::<String>::new());
    assert_eq!(jail.recorded().await, ["connect CONNECT a.test method-needs-approval"]);
}
