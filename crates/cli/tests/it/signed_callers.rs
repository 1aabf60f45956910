//! Callers with JWTs of a configured issuer.

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::{
    hook::Hook,
    place::{Place, Serving},
};

/// A test key without any real use.
const KEY: &str = include_str!("../../../server/src/auth/testdata/rsa_a.pem");
const PUBLIC_KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/src/auth/testdata/rsa_a_public.pem");

fn serving(place: &Place, more: &str) -> Serving {
    place.configure(&format!(
        "auth:\n  jwt:\n    - issuer: https://login.example/\n      audience: gate\n      key: {{pem_file: {PUBLIC_KEY}}}\n{more}"
    ));
    Serving::start(place)
}

fn token(scope: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({
        "iss": "https://login.example/", "aud": "gate", "sub": "ann", "exp": now + 600, "scope": scope,
        // A claim that the operator did not configure.
        "role": "admin", "admin": true,
    });
    let key = EncodingKey::from_rsa_pem(KEY.as_bytes()).unwrap();
    encode(&Header::new(Algorithm::RS256), &claims, &key).unwrap()
}

/// This path does not exist: admins get 404, all others 403.
fn asks_as_admin(serving: &Serving, scope: &str) -> u16 {
    serving.post_to("/admin/nothing", Some(&token(scope)), &Value::Null, &[]).0
}

#[test]
fn missing_scope_is_named() {
    let place = Place::new();
    let serving = serving(&place, "      required_scopes: [tools:call, mcp]\n");
    for scope in ["", "tools:call", "tools:call mcp2", "TOOLS:CALL MCP"] {
        let (status, head, body) = serving.post(Some(&token(scope)), &json!({}), &[]);
        assert_eq!(status, 403, "{scope}: {head}{body}");
        for part in [r#"error="insufficient_scope""#, r#"scope="mcp tools:call""#, "resource_metadata="] {
            assert!(head.contains(part), "{part}: {head}");
        }
        assert!(body.contains("auth.insufficient_scope"), "{body}");
    }
    assert_eq!(serving.names(&token("mcp tools:call")), Vec::<String>::new());
    // Authenticated callers are not throttled for failed requests.
    for _ in 0..30 {
        assert_eq!(serving.post(Some(&token("")), &json!({}), &[]).0, 403);
    }
    serving.stop();
}

#[test]
fn only_the_configured_permission_makes_an_admin() {
    let place = Place::new();
    let with = serving(&place, "      admin_permission: gate-admin\n");
    assert_eq!(asks_as_admin(&with, "gate-admin"), 404);
    assert_eq!(asks_as_admin(&with, "gate-administrator admin"), 403);
    with.stop();
    let without = serving(&place, "");
    assert_eq!(asks_as_admin(&without, "gate-admin admin toolgate:admin"), 403);
    without.stop();
}

/// The issuer's key set with the public key of `ed25519.pem`.
fn key_set() -> Value {
    json!({ "keys": [{
        "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "one",
        "x": "nwtICeRXuwDzO_5yB0eo_UqpjaYVnExVVL80MpAmIXY",
    }] })
}

fn signed_with(key: &EncodingKey, algorithm: Algorithm) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({ "iss": "https://login.example/", "aud": "gate", "sub": "ann", "exp": now + 600 });
    encode(&Header { kid: Some("one".to_owned()), ..Header::new(algorithm) }, &claims, key).unwrap()
}

/// Checks that the good token is accepted and the one with a foreign signature is refused.
#[track_caller]
fn check_issuer(place: &Place, algorithm: &str, key: &str, good: &str, bad: &str) {
    place.configure(&format!(
        "auth:\n  jwt:\n    - issuer: https://login.example/\n      audience: gate\n      algorithms: [{algorithm}]\n      key: {{{key}}}\n"
    ));
    let serving = Serving::start(place);
    assert_eq!(serving.names(good), Vec::<String>::new());
    assert_eq!(serving.ask(Some(bad), "tools/list", json!({})).0, 401);
    serving.stop();
}

const ED25519: &[u8] = include_bytes!("../../../server/src/auth/testdata/ed25519.pem");

#[test]
fn keys_come_from_a_file_with_a_key_set() {
    let place = Place::new();
    fs::write(place.path().join("keys.json"), key_set().to_string()).unwrap();
    let good = signed_with(&EncodingKey::from_ed_pem(ED25519).unwrap(), Algorithm::EdDSA);
    check_issuer(&place, "EdDSA", "jwks_file: keys.json", &good, &token(""));
}

/// Fetched through the gateway's egress, from exactly the configured host.
#[test]
fn keys_are_fetched_from_the_issuer() {
    let (place, issuer) = (Place::new(), Hook::showing(&key_set()));
    let good = signed_with(&EncodingKey::from_ed_pem(ED25519).unwrap(), Algorithm::EdDSA);
    let (head, signature) = good.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}", signature.chars().rev().collect::<String>());
    check_issuer(&place, "EdDSA", &format!("jwks_url: '{}'", issuer.at("/keys")), &good, &forged);
    let (asked, _) = issuer.next();
    assert!(asked.starts_with("GET /keys HTTP/1.1\r\n"), "{asked}");
    assert!(!asked.contains("Bearer"), "{asked}");
}

#[test]
fn secret_comes_from_the_environment() {
    let mut place = Place::new();
    place.set("LOGIN_WORD", "the secret that issuer and gateway share");
    let signed = |secret: &str| signed_with(&EncodingKey::from_secret(secret.as_bytes()), Algorithm::HS256);
    let (good, bad) =
        (signed("the secret that issuer and gateway share"), signed("another secret, also long enough"));
    check_issuer(&place, "HS256", "secret_env: LOGIN_WORD", &good, &bad);
    let place = Place::new();
    place.configure(
        "auth: {jwt: [{issuer: i, audience: a, algorithms: [HS256], key: {secret_env: LOGIN_WORD}}]}\n",
    );
    let said = place.fails(&["serve", "--listen", "127.0.0.1:0"], 2);
    assert!(said.contains("`LOGIN_WORD`, which contains the secret of an issuer, is not set"), "{said}");
}

#[test]
fn scope_with_a_space_is_refused() {
    let place = Place::new();
    place.configure(&format!(
        "auth: {{jwt: [{{issuer: i, audience: a, key: {{pem_file: {PUBLIC_KEY}}}, required_scopes: ['a b']}}]}}"
    ));
    let said = place.fails(&["list"], 2);
    assert!(said.contains("is not one word of printable ASCII"), "{said}");
}
