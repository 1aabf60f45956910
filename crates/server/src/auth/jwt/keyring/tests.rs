//! Rotation, outage, flood: what becomes of keys over time.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use jsonwebtoken::{Algorithm as Alg, DecodingKey, EncodingKey, jwk::Jwk};
use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::{
    auth::{
        jwt::{
            JwtVerifier,
            tests::{RSA_A, RSA_A_PUBLIC, RSA_B, RSA_B_PUBLIC, claims, issuer, now, signed},
        },
        settings::{Algorithm, KeySettings},
    },
    http::DoorCode,
};

/// A server of key sets with configured answers.
struct FakeFetch {
    answer: Mutex<Result<Bytes, String>>,
    fetched: AtomicUsize,
    begun: Notify,
    done: Notify,
}

impl FakeFetch {
    fn new(answer: Result<Bytes, String>) -> Arc<Self> {
        let (begun, done) = (Notify::new(), Notify::new());
        Arc::new(Self { answer: Mutex::new(answer), fetched: AtomicUsize::new(0), begun, done })
    }

    fn answers(&self, answer: Result<Bytes, String>) {
        *self.answer.lock().unwrap() = answer;
    }

    fn count(&self) -> usize {
        self.fetched.load(Ordering::SeqCst)
    }
}

impl Fetch for FakeFetch {
    fn get<'a>(&'a self, _url: &'a str) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + 'a>> {
        Box::pin(async move {
            self.fetched.fetch_add(1, Ordering::SeqCst);
            self.begun.notify_one();
            // Others get their turn while this is under way, as with a real network.
            tokio::task::yield_now().await;
            let answer = self.answer.lock().unwrap().clone();
            self.done.notify_one();
            answer
        })
    }
}

fn jwks(keys: &[(&str, &str)]) -> Bytes {
    let keys: Vec<_> = keys
        .iter()
        .map(|(kid, pem)| {
            let key = DecodingKey::from_rsa_pem(pem.as_bytes()).unwrap();
            let mut jwk = serde_json::to_value(Jwk::from_decoding_key(&key, None).unwrap()).unwrap();
            jwk["kid"] = json!(kid);
            jwk
        })
        .collect();
    Bytes::from(json!({"keys": keys}).to_string())
}

/// Good at `at`, signed by the named key.
fn token(kid: &str, pem: &str, at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let claims = claims(json!({"exp": seconds + 60, "iat": seconds, "nbf": seconds}));
    let header = json!({"alg": "RS256", "kid": kid}).to_string();
    signed(&header, &claims.to_string(), &EncodingKey::from_rsa_pem(pem.as_bytes()).unwrap(), Alg::RS256)
}

fn at_url(fetch: &Arc<FakeFetch>) -> JwtVerifier {
    let keys = KeySettings::JwksUrl("https://login.example/keys".into());
    let fetch: Arc<dyn Fetch> = Arc::<FakeFetch>::clone(fetch);
    JwtVerifier::new(vec![issuer(keys, &[Algorithm::Rs256])], Some(&fetch)).unwrap()
}

async fn check(verifier: &JwtVerifier, kid: &str, pem: &str, at: SystemTime) -> Option<DoorCode> {
    verifier.verify(&token(kid, pem, at), at).await.err().map(|challenge| challenge.code)
}

fn later(seconds: u64) -> SystemTime {
    now() + Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it_and_an_old_one_goes() {
    let fetch = FakeFetch::new(Ok(jwks(&[("a", RSA_A_PUBLIC)])));
    let verifier = at_url(&fetch);
    assert_eq!(check(&verifier, "a", RSA_A, now()).await, None);
    assert_eq!(check(&verifier, "a", RSA_A, later(5)).await, None);
    assert_eq!(fetch.count(), 1, "the second token used the cache");
    fetch.answers(Ok(jwks(&[("b", RSA_B_PUBLIC)])));
    assert_eq!(check(&verifier, "b", RSA_B, later(10)).await, None);
    assert_eq!(fetch.count(), 2);
    assert_eq!(check(&verifier, "a", RSA_A, later(11)).await, Some(DoorCode::TokenInvalid));
}

/// Tokens with made-up key names must not make us knock at the issuer's door for each of them.
#[tokio::test]
async fn unknown_keys_are_looked_for_every_thirty_seconds_at_most() {
    let fetch = FakeFetch::new(Ok(jwks(&[("a", RSA_A_PUBLIC)])));
    let verifier = at_url(&fetch);
    assert_eq!(check(&verifier, "a", RSA_A, now()).await, None);
    for attempt in 0..50 {
        let made_up = format!("made-up-{attempt}");
        assert_eq!(
            check(&verifier, &made_up, RSA_B, later(attempt % 30)).await,
            Some(DoorCode::TokenInvalid)
        );
    }
    assert_eq!(fetch.count(), 2);
    assert_eq!(check(&verifier, "made-up", RSA_B, later(30)).await, Some(DoorCode::TokenInvalid));
    assert_eq!(fetch.count(), 3);
}

#[tokio::test]
async fn keys_are_refreshed_behind_the_scenes_while_the_old_ones_serve() {
    let fetch = FakeFetch::new(Ok(jwks(&[("a", RSA_A_PUBLIC)])));
    let verifier = at_url(&fetch);
    assert_eq!(check(&verifier, "a", RSA_A, now()).await, None);
    fetch.done.notified().await;
    fetch.answers(Ok(jwks(&[("a", RSA_A_PUBLIC), ("b", RSA_B_PUBLIC)])));
    for _ in 0..5 {
        assert_eq!(check(&verifier, "a", RSA_A, later(601)).await, None);
    }
    fetch.done.notified().await;
    assert_eq!(fetch.count(), 2);
    assert_eq!(check(&verifier, "b", RSA_B, later(602)).await, None);
    assert_eq!(fetch.count(), 2, "the key was there before its first token");
}

#[tokio::test]
async fn old_keys_serve_for_an_hour_after_they_are_due_and_no_longer() {
    let fetch = FakeFetch::new(Ok(jwks(&[("a", RSA_A_PUBLIC)])));
    let verifier = at_url(&fetch);
    assert_eq!(check(&verifier, "a", RSA_A, now()).await, None);
    fetch.answers(Err("unreachable".into()));
    assert_eq!(check(&verifier, "a", RSA_A, later(4199)).await, None);
    assert_eq!(check(&verifier, "a", RSA_A, later(4220)).await, Some(DoorCode::Unavailable));
    fetch.answers(Ok(jwks(&[("a", RSA_A_PUBLIC)])));
    assert_eq!(check(&verifier, "a", RSA_A, later(4240)).await, None);
}

#[tokio::test]
async fn without_keys_nobody_gets_in_and_attempts_are_spaced() {
    let fetch = FakeFetch::new(Err("unreachable".into()));
    let verifier = at_url(&fetch);
    for seconds in 0..10 {
        assert_eq!(check(&verifier, "a", RSA_A, later(seconds)).await, Some(DoorCode::Unavailable));
    }
    assert_eq!(fetch.count(), 1);
    assert_eq!(check(&verifier, "a", RSA_A, later(10)).await, Some(DoorCode::Unavailable));
    assert_eq!(fetch.count(), 2);
}

/// The issuer's server is taken over, or serves its error page with status 200.
#[tokio::test]
async fn a_set_that_makes_no_sense_does_not_replace_a_good_one() {
    let padding = " ".repeat(MAX_JWKS_BYTES);
    let many: Vec<_> = (0..65).map(|_| json!({"kty": "RSA"})).collect();
    for nonsense in [
        "<html>".to_owned(),
        "{}".into(),
        r#"{"keys":[]}"#.into(),
        r#"{"keys":{}}"#.into(),
        r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#.into(),
        r#"{"keys":[],"keys":[]}"#.into(),
        json!({"keys": many}).to_string(),
        format!("{}{padding}", String::from_utf8(jwks(&[("b", RSA_B_PUBLIC)]).to_vec()).unwrap()),
    ] {
        let fetch = FakeFetch::new(Ok(jwks(&[("a", RSA_A_PUBLIC)])));
        let verifier = at_url(&fetch);
        assert_eq!(check(&verifier, "a", RSA_A, now()).await, None);
        fetch.answers(Ok(Bytes::from(nonsense)));
        assert_eq!(check(&verifier, "b", RSA_B, later(40)).await, Some(DoorCode::TokenInvalid));
        assert_eq!(fetch.count(), 2);
        assert_eq!(check(&verifier, "a", RSA_A, later(41)).await, None);
    }
}

#[tokio::test]
async fn concurrent_strangers_share_one_fetch() {
    let fetch = FakeFetch::new(Ok(jwks(&[("a", RSA_A_PUBLIC)])));
    let verifier = Arc::new(at_url(&fetch));
    let asked: Vec<_> = (0..20)
        .map(|_| {
            let verifier = Arc::clone(&verifier);
            tokio::spawn(async move { check(&verifier, "a", RSA_A, now()).await })
        })
        .collect();
    for answer in asked {
        assert_eq!(answer.await.unwrap(), None);
    }
    assert_eq!(fetch.count(), 1);
}

/// A stranger asks for the keys, hangs up, and does so again and again: they would never be loaded.
#[tokio::test]
async fn who_hangs_up_does_not_end_the_fetch() {
    let fetch = FakeFetch::new(Ok(jwks(&[("a", RSA_A_PUBLIC)])));
    let verifier = Arc::new(at_url(&fetch));
    let stranger = {
        let verifier = Arc::clone(&verifier);
        tokio::spawn(async move { check(&verifier, "a", RSA_B, now()).await })
    };
    fetch.begun.notified().await;
    stranger.abort();
    assert!(stranger.await.unwrap_err().is_cancelled());
    assert_eq!(check(&verifier, "a", RSA_A, later(1)).await, None);
    assert_eq!(fetch.count(), 1);
}

#[tokio::test]
async fn a_file_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let verifier =
        JwtVerifier::new(vec![issuer(KeySettings::JwksFile(path.clone()), &[Algorithm::Rs256])], None)
            .unwrap();
    assert_eq!(check(&verifier, "a", RSA_A, now()).await, Some(DoorCode::Unavailable));
    fs::write(&path, jwks(&[("a", RSA_A_PUBLIC)])).unwrap();
    assert_eq!(check(&verifier, "a", RSA_A, later(1)).await, None);
    let replacement = folder.path().join("new.json");
    fs::write(&replacement, jwks(&[("b", RSA_B_PUBLIC)])).unwrap();
    fs::rename(&replacement, &path).unwrap();
    assert_eq!(check(&verifier, "b", RSA_B, later(2)).await, None);
    assert_eq!(check(&verifier, "a", RSA_A, later(3)).await, Some(DoorCode::TokenInvalid));
    // Half a file, or none: the last good keys serve for an hour.
    fs::write(&path, b"{\"keys\": [").unwrap();
    assert_eq!(check(&verifier, "b", RSA_B, later(4)).await, None);
    fs::remove_file(&path).unwrap();
    assert_eq!(check(&verifier, "b", RSA_B, later(3000)).await, None);
    assert_eq!(check(&verifier, "b", RSA_B, later(3700)).await, Some(DoorCode::Unavailable));
}

#[tokio::test]
async fn what_is_no_plain_file_or_too_long_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("long.json");
    let mut bytes = jwks(&[("a", RSA_A_PUBLIC)]).to_vec();
    bytes.resize(MAX_JWKS_BYTES + 1, b' ');
    fs::write(&long, bytes).unwrap();
    for path in [long, folder.path().to_owned(), "/dev/zero".into()] {
        let verifier =
            JwtVerifier::new(vec![issuer(KeySettings::JwksFile(path), &[Algorithm::Rs256])], None).unwrap();
        assert_eq!(check(&verifier, "a", RSA_A, now()).await, Some(DoorCode::Unavailable));
    }
}

/// A pipe has no end until its writer says so.
#[tokio::test]
async fn a_pipe_in_place_of_the_file_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let settings = issuer(KeySettings::JwksFile(pipe.clone()), &[Algorithm::Rs256]);
    let verifier = JwtVerifier::new(vec![settings], None).unwrap();
    let outcome = timeout(Duration::from_secs(20), check(&verifier, "a", RSA_A, now())).await;
    if outcome.is_err() {
        // Frees the reader, so the test fails instead of hanging.
        fs::write(&pipe, b"").unwrap();
    }
    assert_eq!(outcome, Ok(Some(DoorCode::Unavailable)));
}

#[test]
fn debug_output_names_the_source_only() {
    let fetch: Arc<dyn Fetch> = FakeFetch::new(Err(String::new()));
    let keyring = Keyring::url("https://login.example/keys".into(), Duration::from_mins(10), fetch);
    assert_eq!(format!("{keyring:?}"), r#"Url(UrlKeys { url: "https://login.example/keys", .. })"#);
}
