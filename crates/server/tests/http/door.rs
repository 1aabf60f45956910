//! Host, Origin, authentication, role: in this order, on every path.

use std::sync::{Arc, atomic::Ordering};

use serde_json::Value;

use crate::gateway::{Gateway, Leaps, settings, with_issuer, with_tokens};

const GOOD: &str =
    "POST /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\nContent-Length: 2\n\nhi";

fn with_header(line: &str) -> String {
    GOOD.replace("Content-Length", &format!("{line}\nContent-Length"))
}

#[tokio::test]
async fn a_known_caller_reaches_the_handler() {
    let gateway = Gateway::start().await;
    let answer = gateway.ask(GOOD).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "token:caller Caller 2"));
    assert!(gateway.refusals().is_empty());
}

/// The victim's browser is made to believe that `evil.example` is 127.0.0.1.
#[tokio::test]
async fn a_rebound_name_is_refused_before_the_token_is_looked_at() {
    let gateway = Gateway::start().await;
    let port = gateway.address.port();
    let hosts = [
        "evil.example".into(),
        format!("evil.example:{port}"),
        "localhost".into(),
        format!("localhost.:{port}"),
        String::new(),
    ];
    for host in hosts {
        for path in
            ["/mcp", "/healthz", "/readyz", "/.well-known/oauth-protected-resource", "/admin/tools", "/none"]
        {
            let request = format!("GET {path} HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_wrong\n\n");
            let answer = gateway.ask(&request).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (421, "http.host_not_allowed"),
                "{host} {path}"
            );
        }
    }
    assert_eq!(gateway.calls(), 0);
    assert!(gateway.refusals().iter().all(|code| code == "http.host_not_allowed"));
}

#[tokio::test]
async fn names_of_this_machine_are_ours() {
    let gateway = Gateway::start().await;
    for name in ["localhost", "LocalHost", "127.0.0.1", "[::1]"] {
        let request = GOOD.replace("{host}", &format!("{name}:{}", gateway.address.port()));
        assert_eq!(gateway.ask(&request).await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn a_missing_double_or_contradicting_host_is_refused() {
    let gateway = Gateway::start().await;
    for request in [
        "GET /mcp HTTP/1.1\nAuthorization: Bearer tg_caller\n\n",
        "GET /mcp HTTP/1.0\nAuthorization: Bearer tg_caller\n\n",
        "GET /mcp HTTP/1.1\nHost: {host}\nHost: evil.example\nAuthorization: Bearer tg_caller\n\n",
        "GET /mcp HTTP/1.1\nHost: {host}\nHost: {host}\nAuthorization: Bearer tg_caller\n\n",
        "GET http://evil.example/mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n",
        "GET http://{host}/mcp HTTP/1.1\nHost: evil.example\nAuthorization: Bearer tg_caller\n\n",
        "CONNECT {host} HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n",
    ] {
        let answer = gateway.ask(request).await;
        assert_eq!((answer.status, answer.code().as_str()), (421, "http.host_not_allowed"), "{request}");
    }
    assert_eq!(gateway.calls(), 0);
    let absolute = "GET http://{host}/mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n";
    assert_eq!(gateway.ask(absolute).await.status, 200);
}

#[tokio::test]
async fn pages_that_are_not_configured_are_refused() {
    let gateway = Gateway::start().await;
    for line in [
        "Origin: https://evil.example",
        "Origin: null",
        "Origin: http://{host}",
        "Origin: https://app.example\nOrigin: https://evil.example",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        let answer = gateway.ask(&with_header(line)).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "http.origin_not_allowed"), "{line}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{line}");
    }
    assert_eq!(gateway.calls(), 0);
}

/// Open streams learn that a token was revoked, without access to the token.
#[tokio::test]
async fn the_door_says_by_what_a_caller_was_let_in() {
    let gateway = Gateway::start().await;
    let ask = async |token: &str| {
        let request = format!("GET /standing HTTP/1.1\nHost: {{host}}\nAuthorization: Bearer {token}\n\n");
        gateway.ask(&request).await.body
    };
    assert_eq!(ask("tg_caller").await, "true");
    assert_eq!(ask("tg_leaving").await, "false");
}

/// A token is revoked while the body of its request arrives slowly.
#[tokio::test]
async fn a_token_that_lapses_while_the_body_is_read_calls_nothing() {
    let gateway = Gateway::with_clock(settings(), with_tokens(), Arc::<Leaps>::default()).await;
    let mut client = gateway.client().await;
    let request = gateway.fill(&GOOD.replace("tg_caller", "tg_leaving"));
    client.send(request.strip_suffix('i').unwrap().as_bytes()).await;
    client.send(b"i").await;
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (401, "auth.token_invalid"));
    assert!(answer.header("www-authenticate").unwrap().contains("invalid_token"));
    assert_eq!(gateway.calls(), 0);
    assert_eq!(gateway.refusals(), ["auth.token_invalid"]);
    assert_eq!(gateway.ask(GOOD).await.status, 200, "whoever is still let in is served");
}

#[tokio::test]
async fn a_configured_page_gets_its_headers_and_nobody_else_does() {
    let gateway = Gateway::start().await;
    let answer = gateway.ask(&with_header("Origin: https://app.example\nSec-Fetch-Site: cross-site")).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, Some("https://app.example"))
    );
    assert_eq!(answer.header("vary"), Some("Origin"));
    assert!(answer.header("access-control-expose-headers").unwrap().contains("Mcp-Session-Id"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    let plain = gateway.ask(GOOD).await;
    assert_eq!(plain.header("access-control-allow-origin"), None);
    // The page must be able to read why it was refused.
    let refused = GOOD
        .replace("tg_caller", "tg_wrong")
        .replace("Content-Length", "Origin: https://app.example\nContent-Length");
    assert_eq!(
        gateway.ask(&refused).await.header("access-control-allow-origin"),
        Some("https://app.example")
    );
}

#[tokio::test]
async fn a_preflight_is_answered_for_configured_pages_only() {
    let gateway = Gateway::start().await;
    let request = |origin: &str| {
        format!(
            "OPTIONS /mcp HTTP/1.1\nHost: {{host}}\nOrigin: {origin}\nAccess-Control-Request-Method: POST\n\n"
        )
    };
    let answer = gateway.ask(&request("https://app.example")).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (204, Some("https://app.example"))
    );
    assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST, DELETE"));
    let headers = answer.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    for name in
        ["authorization", "content-type", "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"]
    {
        assert!(headers.contains(name), "{name}");
    }
    assert_eq!(gateway.ask(&request("https://evil.example")).await.status, 403);
    assert_eq!(gateway.calls(), 0);
    // Without `Origin` it is an ordinary request, and needs a token like any other.
    let bare = "OPTIONS /mcp HTTP/1.1\nHost: {host}\nAccess-Control-Request-Method: POST\n\n";
    assert_eq!(gateway.ask(bare).await.status, 401);
}

#[tokio::test]
async fn every_path_needs_a_caller_also_those_that_do_not_exist() {
    let gateway = Gateway::start().await;
    for path in [
        "/mcp",
        "/mcp/x",
        "/admin/tools",
        "/none",
        "/",
        "//healthz",
        "/healthz/",
        "/healthz%00",
        "/%68ealthz",
        "/HEALTHZ",
        "/healthz/../mcp",
        "/mcp?access_token=tg_caller",
        "/mcp?/healthz",
        "/;/healthz",
        "*",
    ] {
        let answer = gateway.ask(&format!("GET {path} HTTP/1.1\nHost: {{host}}\n\n")).await;
        assert!(
            (answer.status, answer.code().as_str()) == (401, "auth.token_missing") || answer.status == 400,
            "{path}: {answer:?}"
        );
    }
    let post = "POST /healthz HTTP/1.1\nHost: {host}\nContent-Length: 0\n\n";
    assert_eq!(gateway.ask(post).await.status, 401);
    assert_eq!(gateway.calls(), 0);
}

/// Headers that a proxy might set, sent by the client.
#[tokio::test]
async fn no_header_stands_in_for_a_token() {
    let gateway = Gateway::start().await;
    for line in [
        "X-Toolgate-Identity: admin",
        "X-Forwarded-User: admin",
        "X-Remote-User: admin",
        "Cookie: token=tg_admin",
        "X-Api-Key: tg_admin",
        "Proxy-Authorization: Bearer tg_admin",
        "Identity: admin",
        "X-Forwarded-For: 127.0.0.1",
    ] {
        let answer = gateway.ask(&format!("GET /admin/tools HTTP/1.1\nHost: {{host}}\n{line}\n\n")).await;
        assert_eq!(answer.status, 401, "{line}");
    }
    assert_eq!(gateway.calls(), 0);
}

#[tokio::test]
async fn the_admin_api_needs_an_admin() {
    let gateway = Gateway::start().await;
    for path in ["/admin", "/admin/", "/admin/tools", "/admin/none", "/admin?x"] {
        let answer = gateway
            .ask(&format!("GET {path} HTTP/1.1\nHost: {{host}}\nAuthorization: Bearer tg_caller\n\n"))
            .await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "auth.insufficient_scope"), "{path}");
        assert!(answer.header("www-authenticate").unwrap().contains(r#"error="insufficient_scope""#));
    }
    assert_eq!(gateway.calls(), 0);
    let admin = "GET /admin/tools HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_admin\n\n";
    assert_eq!(gateway.ask(admin).await.body, "token:admin Admin 0");
    // Paths outside the admin API need no admin.
    let other = "GET /administration HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n";
    assert_eq!(gateway.ask(other).await.code(), "http.not_found");
}

#[tokio::test]
async fn challenges_point_to_the_metadata_where_there_is_one() {
    let gateway = Gateway::start().await;
    let missing = "GET /mcp HTTP/1.1\nHost: {host}\n\n";
    let answer = gateway.ask(missing).await;
    assert_eq!(answer.header("www-authenticate"), Some(r#"Bearer realm="toolgate""#));
    let document = "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\nHost: {host}\n\n";
    assert_eq!(gateway.ask(document).await.code(), "http.not_found");

    let gateway = Gateway::with(settings(), with_issuer()).await;
    let expected = gateway.fill(
        r#"Bearer realm="toolgate", resource_metadata="http://{host}/.well-known/oauth-protected-resource/mcp""#,
    );
    assert_eq!(gateway.ask(missing).await.header("www-authenticate"), Some(expected.as_str()));
    let wrong = gateway.ask("GET /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer a.b.c\n\n").await;
    assert!(wrong.header("www-authenticate").unwrap().contains(r#"error="invalid_token""#));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = gateway.ask(&format!("GET {path} HTTP/1.1\nHost: {{host}}\n\n")).await;
        let document: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(document["resource"], gateway.fill("http://{host}/mcp"));
        assert_eq!(document["authorization_servers"], serde_json::json!(["https://login.example"]));
        assert_eq!(document["bearer_methods_supported"], serde_json::json!(["header"]));
        assert_eq!(document["scopes_supported"], serde_json::json!(["tools:call"]));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    }
}

/// Clients that look for an authorization server of our own must learn that there is none, not that they need a token.
#[tokio::test]
async fn other_well_known_addresses_are_not_there() {
    let gateway = Gateway::with(settings(), with_issuer()).await;
    for path in
        ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/.well-known/"]
    {
        let answer = gateway.ask(&format!("GET {path} HTTP/1.1\nHost: {{host}}\n\n")).await;
        assert_eq!(answer.code(), "http.not_found", "{path}");
    }
    assert_eq!(gateway.ask("GET /.well-known HTTP/1.1\nHost: {host}\n\n").await.status, 401);
}

#[tokio::test]
async fn the_public_url_is_what_clients_are_told() {
    let mut public = settings();
    public.public_url = Some("https://gate.example/".into());
    let gateway = Gateway::with(public, with_issuer()).await;
    let answer =
        gateway.ask("GET /.well-known/oauth-protected-resource HTTP/1.1\nHost: gate.example\n\n").await;
    let document: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(document["resource"], "https://gate.example/mcp");
}

/// RFC 9728, section 3.1. Clients that go by it look nowhere else.
#[tokio::test]
async fn the_path_of_the_public_url_stands_behind_the_well_known_name() {
    const NAME: &str = "/.well-known/oauth-protected-resource";
    let mut public = settings();
    public.public_url = Some("https://example.com/gate/".into());
    let gateway = Gateway::with(public, with_issuer()).await;
    let answer = gateway.ask("GET /mcp HTTP/1.1\nHost: example.com\n\n").await;
    assert_eq!(
        answer.header("www-authenticate"),
        Some(
            r#"Bearer realm="toolgate", resource_metadata="https://example.com/.well-known/oauth-protected-resource/gate/mcp""#
        )
    );
    for path in ["", "/mcp", "/gate/mcp"] {
        let answer = gateway.ask(&format!("GET {NAME}{path} HTTP/1.1\nHost: example.com\n\n")).await;
        let document: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(document["resource"], "https://example.com/gate/mcp", "{path}");
    }
    for path in ["/gate", "/gatemcp", "/gate/mcp/", "/gate/mcp/mcp", "/other/mcp", "/gate/../gate/mcp", "mcp"]
    {
        let answer = gateway.ask(&format!("GET {NAME}{path} HTTP/1.1\nHost: example.com\n\n")).await;
        assert_eq!(answer.code(), "http.not_found", "{path}");
    }
}

#[tokio::test]
async fn guessing_is_slowed_down_by_address() {
    let gateway = Gateway::with(settings(), with_tokens()).await;
    assert_eq!(gateway.ask(GOOD).await.status, 200);
    for _ in 0..20 {
        assert_eq!(gateway.ask(&GOOD.replace("tg_caller", "tg_guess")).await.code(), "auth.token_invalid");
    }
    let answer = gateway.ask(&GOOD.replace("tg_caller", "tg_guess")).await;
    assert_eq!((answer.status, answer.code().as_str()), (429, "auth.rate_limited"));
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(gateway.ask(GOOD).await.status, 200, "who was let in before is still let in");
    let (_, peer, detail) = gateway.world.refusals.lock().unwrap().last().unwrap().clone();
    assert!(peer.unwrap().is_loopback() && !detail.contains("tg_"), "{detail}");
}

#[tokio::test]
async fn health_and_readiness_are_told_to_everybody_and_nothing_more() {
    let gateway = Gateway::start().await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\nHost: {{host}}\n\n");
    let health = gateway.ask(&get("/healthz")).await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    assert_eq!(gateway.ask(&get("/readyz")).await.code(), "http.not_ready");
    gateway.world.is_ready.store(true, Ordering::SeqCst);
    assert_eq!(gateway.ask(&get("/readyz")).await.status, 200);
    for answer in [health, gateway.ask(&get("/mcp")).await] {
        let said = format!("{}{}", answer.head, answer.body).to_ascii_lowercase();
        assert!(!said.contains(env!("CARGO_PKG_VERSION")) && answer.header("server").is_none(), "{said}");
    }
}
