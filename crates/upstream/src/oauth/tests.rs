//! A fake authorization server, honest and hostile.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use super::*;
use crate::{
    AuthChallenge, BearerSource, HttpFuture, HttpRequest, UpstreamError,
    http::testing::{ScriptedReply, ScriptedServer, json_reply, status},
};

/// Tokens in memory.
#[derive(Default)]
struct MemoryStore(Mutex<HashMap<String, Vec<u8>>>);

impl TokenStore for MemoryStore {
    fn load<'a>(&'a self, upstream: &'a str) -> HttpFuture<'a, Result<Option<Zeroizing<Vec<u8>>>, String>> {
        let found = self.0.lock().unwrap().get(upstream).cloned().map(Zeroizing::new);
        Box::pin(async move { Ok(found) })
    }

    fn save<'a>(
        &'a self,
        upstream: &'a str,
        tokens: Zeroizing<Vec<u8>>,
    ) -> HttpFuture<'a, Result<(), String>> {
        self.0.lock().unwrap().insert(upstream.to_owned(), tokens.to_vec());
        Box::pin(async move { Ok(()) })
    }

    fn remove<'a>(&'a self, upstream: &'a str) -> HttpFuture<'a, Result<(), String>> {
        self.0.lock().unwrap().remove(upstream);
        Box::pin(async move { Ok(()) })
    }
}

fn resource_metadata() -> Value {
    json!({
        "resource": "https://up.test/mcp", "authorization_servers": ["https://as.test/tenant"],
        "scopes_supported": ["read"],
    })
}

fn server_metadata() -> Value {
    json!({
        "issuer": "https://as.test/tenant",
        "authorization_endpoint": "https://as.test/authorize?tenant=1",
        "token_endpoint": "https://as.test/token",
        "registration_endpoint": "https://as.test/register",
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

const RESOURCE: &str = "https://up.test/.well-known/oauth-protected-resource/mcp";
const SERVER: &str = "https://as.test/.well-known/oauth-authorization-server/tenant";
const TOKEN: &str = "https://as.test/token";
const REGISTER: &str = "https://as.test/register";

/// Answers from a table of URLs. The token endpoint issues `access-1`, `access-2`, … for an hour.
fn server_with(table: Vec<(&'static str, Value)>) -> Arc<ScriptedServer> {
    let issued = AtomicUsize::new(0);
    ScriptedServer::start(move |request| {
        let changed = table.iter().find(|(url, _)| *url == request.url.as_str()).map(|(_, value)| value);
        if let Some(code) = changed.and_then(Value::as_u64) {
            return status(u16::try_from(code).unwrap());
        }
        match request.url.as_str() {
            RESOURCE => json_reply(200, changed.unwrap_or(&resource_metadata())),
            SERVER => json_reply(200, changed.unwrap_or(&server_metadata())),
            REGISTER => json_reply(201, changed.unwrap_or(&json!({ "client_id": "registered" }))),
            TOKEN => token_reply(changed, &issued),
            _ => changed.map_or_else(|| status(404), |value| json_reply(200, value)),
        }
    })
}

fn token_reply(changed: Option<&Value>, issued: &AtomicUsize) -> ScriptedReply {
    let number = issued.fetch_add(1, Ordering::SeqCst) + 1;
    if let Some(changed) = changed {
        return json_reply(if changed.get("error").is_some() { 400 } else { 200 }, changed);
    }
    json_reply(
        200,
        &json!({
            "access_token": format!("access-{number}"), "refresh_token": format!("refresh-{number}"),
            "token_type": "Bearer", "expires_in": 3600,
        }),
    )
}

fn code_settings() -> OAuthSettings {
    OAuthSettings {
        endpoint: Url::parse("https://up.test/mcp").unwrap(),
        issuer: None,
        client: ClientRegistration::Dynamic { name: "toolgate".to_owned() },
        grant: OAuthGrant::AuthorizationCode {
            redirect: Url::parse("http://127.0.0.1:8123/callback").unwrap(),
        },
        scopes: Vec::new(),
    }
}

fn machine_settings() -> OAuthSettings {
    let secret = Some(Zeroizing::new("client secret".to_owned()));
    OAuthSettings {
        client: ClientRegistration::Configured { id: "machine:1".to_owned(), secret },
        grant: OAuthGrant::ClientCredentials,
        ..code_settings()
    }
}

fn client(server: &Arc<ScriptedServer>, settings: OAuthSettings, store: &Arc<MemoryStore>) -> OAuthClient {
    let http: Arc<dyn crate::HttpClient> = Arc::<ScriptedServer>::clone(server);
    let store: Arc<dyn TokenStore> = Arc::<MemoryStore>::clone(store);
    OAuthClient::new("up".to_owned(), http, settings, store).unwrap()
}

fn fields(request: &HttpRequest) -> HashMap<String, String> {
    form_urlencoded::parse(&request.body).into_owned().collect()
}

fn query(url: &Url) -> HashMap<String, String> {
    url.query_pairs().into_owned().collect()
}

fn token_requests(server: &ScriptedServer) -> Vec<HashMap<String, String>> {
    server.seen().iter().filter(|request| request.url.as_str() == TOKEN).map(fields).collect()
}

/// Runs an authorization to its end.
async fn authorize(client: &OAuthClient) {
    let pending = client.begin(None).await.unwrap();
    let state = query(&pending.url)["state"].clone();
    client.finish(pending, &callback(&state, "")).await.unwrap();
}

fn callback(state: &str, more: &str) -> String {
    format!("?code=the-code&state={state}&iss=https%3A%2F%2Fas.test%2Ftenant{more}")
}

async fn token(client: &OAuthClient) -> Option<String> {
    client.token().await.unwrap().map(|token| token.as_str().to_owned())
}

#[tokio::test]
async fn authorization_code_with_pkce_and_registration() {
    let (server, store) = (server_with(Vec::new()), Arc::default());
    let client = client(&server, code_settings(), &store);
    assert_eq!(token(&client).await, None);
    let pending = client.begin(None).await.unwrap();
    let asked = query(&pending.url);
    assert_eq!(pending.url.host_str(), Some("as.test"));
    for (name, value) in [
        ("tenant", "1"),
        ("response_type", "code"),
        ("client_id", "registered"),
        ("redirect_uri", "http://127.0.0.1:8123/callback"),
        ("code_challenge_method", "S256"),
        ("resource", "https://up.test/mcp"),
        ("scope", "read"),
    ] {
        assert_eq!(asked[name], value, "{name}");
    }
    assert!(!format!("{pending:?} {client:?}").contains(&asked["state"]));
    client.finish(pending, &callback(&asked["state"], "")).await.unwrap();
    let [exchanged] = &token_requests(&server)[..] else { panic!() };
    assert_eq!(exchanged["grant_type"], "authorization_code");
    assert_eq!((exchanged["code"].as_str(), exchanged["client_id"].as_str()), ("the-code", "registered"));
    assert_eq!(exchanged["resource"], "https://up.test/mcp");
    let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(exchanged["code_verifier"].as_bytes()));
    assert_eq!(digest, asked["code_challenge"]);
    assert_eq!(token(&client).await.as_deref(), Some("access-1"));
    // Another process finds the token in the store.
    let again = client_of(&server, &store);
    assert_eq!(token(&again).await.as_deref(), Some("access-1"));
    again.forget().await.unwrap();
    assert_eq!(token(&again).await, None);
    assert_eq!(store.0.lock().unwrap().len(), 0);
}

fn client_of(server: &Arc<ScriptedServer>, store: &Arc<MemoryStore>) -> OAuthClient {
    client(server, code_settings(), store)
}

#[tokio::test]
async fn client_credentials_authenticate_with_the_secret() {
    for (methods, in_form) in [(json!(["client_secret_basic"]), false), (json!(["client_secret_post"]), true)]
    {
        let mut metadata = server_metadata();
        metadata["token_endpoint_auth_methods_supported"] = methods;
        let server = server_with(vec![(SERVER, metadata)]);
        let client = client(&server, machine_settings(), &Arc::default());
        assert_eq!(token(&client).await.as_deref(), Some("access-1"));
        assert_eq!(token(&client).await.as_deref(), Some("access-1"));
        let [asked] = &token_requests(&server)[..] else { panic!() };
        assert_eq!((asked["grant_type"].as_str(), asked["scope"].as_str()), ("client_credentials", "read"));
        assert_eq!(asked["resource"], "https://up.test/mcp");
        assert_eq!(asked.get("client_secret").map(String::as_str), in_form.then_some("client secret"));
        let seen = server.seen();
        let request = seen.iter().find(|request| request.url.as_str() == TOKEN).unwrap();
        let expect = (!in_form).then_some("Basic bWFjaGluZSUzQTE6Y2xpZW50K3NlY3JldA==");
        assert_eq!(request.header("authorization"), expect);
    }
}

#[tokio::test]
async fn many_callers_cause_one_refresh() {
    let (server, store) = (server_with(Vec::new()), Arc::<MemoryStore>::default());
    let client = Arc::new(client_of(&server, &store));
    authorize(&client).await;
    // The stored token has expired.
    let mut stored: Value = serde_json::from_slice(&store.0.lock().unwrap()["up"]).unwrap();
    stored["fresh_until"] = json!(1);
    store.0.lock().unwrap().insert("up".to_owned(), stored.to_string().into_bytes());
    let client = Arc::new(client_of(&server, &store));
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { token(&client).await })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap().as_deref(), Some("access-2"));
    }
    let requests = token_requests(&server);
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1]["refresh_token"], "refresh-1");
    assert_eq!(requests[1]["resource"], "https://up.test/mcp");
    // The rotated refresh token is stored.
    assert!(String::from_utf8(store.0.lock().unwrap()["up"].clone()).unwrap().contains("refresh-2"));
}

#[tokio::test]
async fn token_is_renewed_before_it_expires() {
    for (lifetime, fresh) in [(0, 0), (100, 80), (3600, 3540), (u64::MAX, 10 * 365 * 24 * 3600 - 60)] {
        let reply = json!({ "access_token": "a", "token_type": "bearer", "expires_in": lifetime });
        let (server, store) = (server_with(vec![(TOKEN, reply)]), Arc::<MemoryStore>::default());
        let client = client(&server, machine_settings(), &store);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        token(&client).await;
        token(&client).await;
        let stored: Value = serde_json::from_slice(&store.0.lock().unwrap()["up"]).unwrap();
        let found = stored["fresh_until"].as_u64().unwrap() - now;
        assert!((fresh..fresh + 10).contains(&found), "{lifetime}: {found}");
        assert_eq!(token_requests(&server).len(), if lifetime == 0 { 2 } else { 1 });
    }
}

#[tokio::test]
async fn rejected_token_is_replaced_but_not_in_a_loop() {
    let server = server_with(Vec::new());
    let store = Arc::<MemoryStore>::default();
    authorize(&client_of(&server, &store)).await;
    let client = client_of(&server, &store);
    assert_eq!(token(&client).await.as_deref(), Some("access-1"));
    let replaced = client.replace("access-1").await.unwrap().unwrap();
    assert_eq!(replaced.as_str(), "access-2");
    // Another caller had the same old token.
    assert_eq!(client.replace("access-1").await.unwrap().unwrap().as_str(), "access-2");
    // A new token that is rejected at once is not replaced again.
    assert!(client.replace("access-2").await.unwrap().is_none());
    assert_eq!(token_requests(&server).len(), 2);
}

#[tokio::test]
async fn revoked_refresh_token_is_removed() {
    let store = Arc::<MemoryStore>::default();
    authorize(&client_of(&server_with(Vec::new()), &store)).await;
    let server = server_with(vec![(TOKEN, json!({ "error": "invalid_grant" }))]);
    let client = client_of(&server, &store);
    assert!(client.replace("access-1").await.unwrap().is_none());
    assert_eq!(store.0.lock().unwrap().len(), 0);
    assert_eq!(token(&client).await, None);
}

#[tokio::test]
async fn failing_server_is_not_asked_again_by_every_caller() {
    let server = server_with(vec![(TOKEN, json!({ "error": "server_error" }))]);
    let client = client(&server, machine_settings(), &Arc::default());
    for _ in 0..5 {
        let failed = client.token().await.unwrap_err();
        assert!(matches!(&failed, UpstreamError::NoToken(why) if why.contains("server_error")), "{failed}");
    }
    assert_eq!(token_requests(&server).len(), 1);
}

/// Mix-up and injection: nothing is sent to the token endpoint.
#[tokio::test]
async fn foreign_callbacks_are_rejected() {
    let server = server_with(Vec::new());
    let client = client_of(&server, &Arc::default());
    let issuer = "https%3A%2F%2Fas.test%2Ftenant";
    for (answer, expect) in [
        ("code=x&iss=ISS".to_owned(), "state is unknown"),
        ("code=x&state=forged&iss=ISS".to_owned(), "state is unknown"),
        ("code=x&state=STATE&state=STATE&iss=ISS".to_owned(), "repeated"),
        ("code=x&state=STATE&iss=https%3A%2F%2Fevil.test".to_owned(), "another issuer"),
        ("code=x&state=STATE&iss=ISS%2F".to_owned(), "another issuer"),
        ("code=x&state=STATE".to_owned(), "names no issuer"),
        ("code=x&code=y&state=STATE&iss=ISS".to_owned(), "repeated"),
        ("state=STATE&iss=ISS".to_owned(), "no code"),
        ("error=access_denied&state=STATE&iss=ISS".to_owned(), "access_denied"),
        ("error=leaks-the-token&state=STATE&iss=ISS".to_owned(), "an unknown error"),
        ("error=access_denied&state=STATE&iss=https%3A%2F%2Fevil.test".to_owned(), "another issuer"),
        (format!("code={}&state=STATE&iss=ISS", "x".repeat(20_000)), "too long"),
    ] {
        let pending = client.begin(None).await.unwrap();
        let state = query(&pending.url)["state"].clone();
        let answer = answer.replace("STATE", &state).replace("ISS", issuer);
        let refused = client.finish(pending, &answer).await.unwrap_err().to_string();
        assert!(refused.contains(expect), "{expect}: {refused}");
    }
    assert_eq!(token_requests(&server).len(), 0);
}

async fn refusal(
    settings: OAuthSettings,
    changes: Vec<(&'static str, Value)>,
) -> (String, Arc<ScriptedServer>) {
    let server = server_with(changes);
    let refused = client(&server, settings, &Arc::default()).begin(None).await;
    (refused.map(drop).unwrap_err().to_string(), server)
}

#[tokio::test]
async fn unusable_metadata_is_rejected() {
    let with = |mut document: Value, name: &str, value: Value| {
        document[name] = value;
        document
    };
    let resource = |name: &str, value: Value| (RESOURCE, with(resource_metadata(), name, value));
    let server = |name: &str, value: Value| (SERVER, with(server_metadata(), name, value));
    for (change, expect) in [
        (resource("resource", json!("https://other.test/mcp")), "another resource"),
        (resource("resource", json!("https://up.test/mc")), "another resource"),
        (resource("resource", json!("https://up.test/mcp?x=1")), "another resource"),
        (resource("authorization_servers", json!([])), "names no authorization server"),
        (resource("authorization_servers", json!(["http://as.test"])), "not a secure URL"),
        (resource("authorization_servers", json!(["http://127.0.0.1/"])), "not a secure URL"),
        (resource("authorization_servers", json!(["https://user:pw@as.test"])), "not a secure URL"),
        (server("issuer", json!("https://honest.test")), "another issuer"),
        (server("token_endpoint", json!("http://as.test/token")), "not a secure URL"),
        (server("token_endpoint", Value::Null), "no token endpoint"),
        (server("authorization_endpoint", Value::Null), "no authorization endpoint"),
        (server("code_challenge_methods_supported", json!(["plain"])), "PKCE"),
        (server("registration_endpoint", Value::Null), "configure a client id"),
        ((SERVER, json!(404)), "no metadata"),
        ((SERVER, json!(302)), "no metadata"),
        ((RESOURCE, json!(404)), "configure the issuer"),
        ((RESOURCE, json!(500)), "failed"),
    ] {
        let (refused, _) = refusal(code_settings(), vec![change]).await;
        assert!(refused.contains(expect), "{expect}: {refused}");
    }
}

#[tokio::test]
async fn configured_issuer_is_the_only_one_used() {
    let pinned = |issuer: &str| OAuthSettings { issuer: Some(issuer.to_owned()), ..code_settings() };
    let (refused, server) = refusal(pinned("https://mine.test"), Vec::new()).await;
    assert!(refused.contains("configured issuer"), "{refused}");
    assert!(server.seen().iter().all(|request| request.url.host_str() == Some("up.test")));
    // Without metadata of the resource, the configured issuer is enough.
    let server = server_with(vec![(RESOURCE, json!(404))]);
    let client = client(&server, pinned("https://as.test/tenant"), &Arc::default());
    authorize(&client).await;
    assert_eq!(token_requests(&server)[0]["resource"], "https://up.test/mcp");
}

#[tokio::test]
async fn metadata_is_found_at_all_well_known_places() {
    let root = "https://up.test/.well-known/oauth-protected-resource";
    let inserted = "https://as.test/.well-known/openid-configuration/tenant";
    let appended = "https://as.test/tenant/.well-known/openid-configuration";
    for place in [inserted, appended] {
        let changes = vec![
            (RESOURCE, json!(404)),
            (root, resource_metadata()),
            (SERVER, json!(404)),
            (place, server_metadata()),
        ];
        authorize(&client_of(&server_with(changes), &Arc::default())).await;
    }
    let named = "https://meta.test/doc";
    let server = server_with(vec![(named, resource_metadata())]);
    let challenge = AuthChallenge {
        status: 401,
        is_bearer: true,
        resource_metadata: Some(named.to_owned()),
        scope: Some("files:read files:write".to_owned()),
        error: None,
    };
    let pending = client_of(&server, &Arc::default()).begin(Some(&challenge)).await.unwrap();
    assert_eq!(query(&pending.url)["scope"], "files:read files:write");
    assert_eq!(server.seen()[0].url.as_str(), named);
    let insecure = AuthChallenge { resource_metadata: Some("http://meta.test/doc".to_owned()), ..challenge };
    let refused = client_of(&server, &Arc::default()).begin(Some(&insecure)).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("not secure"), "{refused}");
}

#[tokio::test]
async fn invalid_token_responses_are_rejected_without_repeating_them() {
    for (reply, expect) in [
        (json!({ "access_token": "sekret", "token_type": "mac" }), "not a bearer token"),
        (json!({ "token_type": "bearer" }), "no token"),
        (json!({ "access_token": "sekret\r\nx: y", "token_type": "bearer" }), "invalid form"),
        (json!({ "access_token": "", "token_type": "bearer" }), "invalid form"),
        (json!({ "access_token": "x".repeat(20_000), "token_type": "bearer" }), "invalid form"),
        (json!({ "access_token": ["sekret"], "token_type": "bearer" }), "not text"),
        (json!({ "error": "sekret", "error_description": "sekret" }), "an unknown error"),
        (json!({ "access_token": "sekret", "padding": "x".repeat(300_000) }), "too large"),
    ] {
        let server = server_with(vec![(TOKEN, reply)]);
        let client = client(&server, machine_settings(), &Arc::default());
        let failed = client.token().await.unwrap_err();
        assert!(failed.to_string().contains(expect), "{expect}: {failed}");
        assert!(!format!("{failed:?}").contains("sekret"));
    }
}

/// A refresh token stays with the issuer that sent it.
#[tokio::test]
async fn changed_issuer_gets_no_old_token() {
    let store = Arc::<MemoryStore>::default();
    authorize(&client_of(&server_with(Vec::new()), &store)).await;
    let mut resource = resource_metadata();
    resource["authorization_servers"] = json!(["https://evil.test"]);
    let mut metadata = server_metadata();
    metadata["issuer"] = json!("https://evil.test");
    let server = server_with(vec![
        (RESOURCE, resource),
        ("https://evil.test/.well-known/oauth-authorization-server", metadata),
    ]);
    let client = client_of(&server, &store);
    assert!(client.replace("access-1").await.unwrap().is_none());
    assert_eq!(token_requests(&server).len(), 0);
    // A new authorization registers a new client there.
    client.begin(None).await.unwrap();
    assert!(server.seen().iter().any(|request| request.url.as_str() == REGISTER));
}

#[tokio::test]
async fn configured_scopes_are_the_most_that_is_asked_for() {
    let settings = OAuthSettings { scopes: vec!["read".to_owned()], ..code_settings() };
    let challenge =
        AuthChallenge { status: 403, scope: Some("admin".to_owned()), ..AuthChallenge::default() };
    let pending =
        client(&server_with(Vec::new()), settings, &Arc::default()).begin(Some(&challenge)).await.unwrap();
    assert_eq!(query(&pending.url)["scope"], "read");
}

#[test]
fn unsafe_settings_are_rejected() {
    let at = |url: &str| Url::parse(url).unwrap();
    let redirect = |url: &str| OAuthGrant::AuthorizationCode { redirect: at(url) };
    for (settings, expect) in [
        (OAuthSettings { endpoint: at("http://up.test/mcp"), ..code_settings() }, "https"),
        (OAuthSettings { grant: redirect("http://evil.test/"), ..code_settings() }, "loopback"),
        (OAuthSettings { grant: OAuthGrant::ClientCredentials, ..code_settings() }, "secret"),
    ] {
        let refused = settings.check().unwrap_err().to_string();
        assert!(refused.contains(expect), "{refused}");
    }
    assert!(OAuthSettings { endpoint: at("http://127.0.0.1:1/mcp"), ..code_settings() }.check().is_ok());
    assert!(!format!("{:?}", machine_settings()).contains("client secret"));
}
