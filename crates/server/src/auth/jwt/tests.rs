//! Attacks on signed tokens, one a test. The keys in `testdata` were made for these tests and open nothing.

mod callers;
mod settings;

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm as Alg, DecodingKey, EncodingKey, crypto, jwk::Jwk};
use serde_json::{Value, json};

use super::{key::VerificationKey, *};
use crate::auth::settings::{Algorithm, KeySettings, PemKey, Secret};

pub(super) const RSA_A: &str = include_str!("../testdata/rsa_a.pem");
pub(super) const RSA_A_PUBLIC: &str = include_str!("../testdata/rsa_a_public.pem");
pub(super) const RSA_B: &str = include_str!("../testdata/rsa_b.pem");
pub(super) const RSA_B_PUBLIC: &str = include_str!("../testdata/rsa_b_public.pem");
const RSA_SHORT_PUBLIC: &str = include_str!("../testdata/rsa_short_public.pem");
const P256: &str = include_str!("../testdata/p256.pem");
const P256_PUBLIC: &str = include_str!("../testdata/p256_public.pem");
const P384: &str = include_str!("../testdata/p384.pem");
const P384_PUBLIC: &str = include_str!("../testdata/p384_public.pem");
const ED25519: &str = include_str!("../testdata/ed25519.pem");
const ED25519_PUBLIC: &str = include_str!("../testdata/ed25519_public.pem");
const SECRET: &[u8; 64] = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const ISSUER: &str = "https://login.example/";
const AUDIENCE: &str = "https://gate.example/mcp";
pub(super) const NOW: u64 = 1_800_000_000;

pub(super) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

pub(super) fn issuer(keys: KeySettings, algorithms: &[Algorithm]) -> IssuerSettings {
    IssuerSettings {
        name: "login".into(),
        issuer: ISSUER.into(),
        audiences: BTreeSet::from([AUDIENCE.to_owned()]),
        algorithms: algorithms.iter().copied().collect(),
        keys,
        subject_claim: "sub".into(),
        permissions_claim: Some("permissions".into()),
        admin_permission: Some("toolgate:admin".into()),
        required_scopes: BTreeSet::new(),
        clock_skew: Duration::from_mins(1),
        refresh: Duration::from_mins(10),
        scopes: vec![],
    }
}

fn pem(pem: &str) -> KeySettings {
    KeySettings::Pem(vec![PemKey { kid: None, pem: pem.into() }])
}

fn rsa() -> IssuerSettings {
    issuer(pem(RSA_A_PUBLIC), &[Algorithm::Rs256])
}

fn shared() -> IssuerSettings {
    issuer(KeySettings::Secret(Secret::new(*SECRET)), &[Algorithm::Hs256])
}

#[expect(clippy::needless_pass_by_value, reason = "`json!` reads better without `&`")]
/// Claims of a good token, with these changed; `null` takes one away.
pub(super) fn claims(changes: Value) -> Value {
    let mut claims =
        json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 300, "iat": NOW, "nbf": NOW});
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

pub(super) fn signed(header: &str, claims: &str, key: &EncodingKey, algorithm: Alg) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = crypto::sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

#[expect(clippy::needless_pass_by_value, reason = "`json!` reads better without `&`")]
pub(super) fn rs256(header: Value, claims: Value) -> String {
    let key = EncodingKey::from_rsa_pem(RSA_A.as_bytes()).unwrap();
    signed(&header.to_string(), &claims.to_string(), &key, Alg::RS256)
}

fn good(changes: Value) -> String {
    rs256(json!({"alg": "RS256", "typ": "JWT"}), claims(changes))
}

async fn ask(settings: IssuerSettings, token: &str) -> Result<AuthIdentity, Challenge> {
    JwtVerifier::new(vec![settings], None).unwrap().verify(token, now()).await
}

#[track_caller]
fn refused(outcome: Result<AuthIdentity, Challenge>, flaw: JwtError) {
    let challenge = outcome.unwrap_err();
    assert_eq!(challenge.detail, flaw.detail());
    let code = if flaw == JwtError::Expired { DoorCode::TokenExpired } else { DoorCode::TokenInvalid };
    assert_eq!(challenge.code, code);
}

#[tokio::test]
async fn every_algorithm_verifies_with_its_own_kind_of_key() {
    let rsa_key = || EncodingKey::from_rsa_pem(RSA_A.as_bytes()).unwrap();
    let secret = || EncodingKey::from_secret(SECRET);
    let hmac = || KeySettings::Secret(Secret::new(*SECRET));
    for (algorithm, alg, key, keys) in [
        (Algorithm::Hs256, Alg::HS256, secret(), hmac()),
        (Algorithm::Hs384, Alg::HS384, secret(), hmac()),
        (Algorithm::Hs512, Alg::HS512, secret(), hmac()),
        (Algorithm::Rs256, Alg::RS256, rsa_key(), pem(RSA_A_PUBLIC)),
        (Algorithm::Rs384, Alg::RS384, rsa_key(), pem(RSA_A_PUBLIC)),
        (Algorithm::Rs512, Alg::RS512, rsa_key(), pem(RSA_A_PUBLIC)),
        (Algorithm::Ps256, Alg::PS256, rsa_key(), pem(RSA_A_PUBLIC)),
        (Algorithm::Ps384, Alg::PS384, rsa_key(), pem(RSA_A_PUBLIC)),
        (Algorithm::Ps512, Alg::PS512, rsa_key(), pem(RSA_A_PUBLIC)),
        (Algorithm::Es256, Alg::ES256, EncodingKey::from_ec_pem(P256.as_bytes()).unwrap(), pem(P256_PUBLIC)),
        (Algorithm::Es384, Alg::ES384, EncodingKey::from_ec_pem(P384.as_bytes()).unwrap(), pem(P384_PUBLIC)),
        (
            Algorithm::EdDsa,
            Alg::EdDSA,
            EncodingKey::from_ed_pem(ED25519.as_bytes()).unwrap(),
            pem(ED25519_PUBLIC),
        ),
    ] {
        let header = json!({"alg": algorithm.name()}).to_string();
        let token = signed(&header, &claims(json!({})).to_string(), &key, alg);
        let identity = ask(issuer(keys.clone(), &[algorithm]), &token).await.unwrap();
        assert_eq!(identity.caller.subject, "jwt:login:ann", "{algorithm:?}");
        let forged = signed(&header, &claims(json!({"sub": "eve"})).to_string(), &key, alg);
        let (message, _) = forged.rsplit_once('.').unwrap();
        let (_, signature) = token.rsplit_once('.').unwrap();
        refused(
            ask(issuer(keys, &[algorithm]), &format!("{message}.{signature}")).await,
            JwtError::Signature,
        );
    }
}

/// The oldest one: take the public key, which everybody has, as the secret of an HMAC.
#[tokio::test]
async fn a_public_key_never_serves_as_a_secret() {
    let der = DecodingKey::from_rsa_pem(RSA_A_PUBLIC.as_bytes()).unwrap();
    for secret in [RSA_A_PUBLIC.as_bytes(), RSA_A_PUBLIC.trim().as_bytes(), der.try_get_as_bytes().unwrap()] {
        let key = EncodingKey::from_secret(secret);
        let token = signed(r#"{"alg":"HS256"}"#, &claims(json!({})).to_string(), &key, Alg::HS256);
        refused(ask(rsa(), &token).await, JwtError::Algorithm);
    }
    let mixed = issuer(pem(RSA_A_PUBLIC), &[Algorithm::Rs256, Algorithm::Hs256]);
    let error = JwtVerifier::new(vec![mixed], None).unwrap_err().to_string();
    assert!(error.contains("never mix them"), "{error}");
    let key = VerificationKey::from_pem(&PemKey { kid: None, pem: RSA_A_PUBLIC.into() }).unwrap();
    assert!(
        Algorithm::ALL
            .iter()
            .filter(|algorithm| key.fits(**algorithm))
            .all(|fit| !fit.name().starts_with('H'))
    );
}

#[tokio::test]
async fn none_is_no_algorithm_in_any_spelling() {
    for name in ["none", "None", "NONE", "nOnE", "", "RS256 ", "rs256", "HS1"] {
        let token = rs256(json!({"alg": name}), claims(json!({})));
        refused(ask(rsa(), &token).await, JwtError::Algorithm);
        let (message, _) = token.rsplit_once('.').unwrap();
        refused(ask(rsa(), &format!("{message}.")).await, JwtError::Shape);
    }
}

#[tokio::test]
async fn a_token_must_name_its_algorithm_as_text() {
    for header in
        [json!({"typ": "JWT"}), json!({"alg": null}), json!({"alg": ["RS256"]}), json!({"alg": 256})]
    {
        refused(ask(rsa(), &rs256(header, claims(json!({})))).await, JwtError::Algorithm);
    }
}

/// A weaker algorithm than the configured one, with the right key.
#[tokio::test]
async fn only_the_configured_algorithms_count() {
    let key = EncodingKey::from_rsa_pem(RSA_A.as_bytes()).unwrap();
    let token = signed(r#"{"alg":"RS512"}"#, &claims(json!({})).to_string(), &key, Alg::RS512);
    refused(ask(rsa(), &token).await, JwtError::Algorithm);
    // The header says what is configured; the signature is another algorithm's.
    let token = signed(r#"{"alg":"RS256"}"#, &claims(json!({})).to_string(), &key, Alg::PS256);
    refused(ask(rsa(), &token).await, JwtError::Signature);
}

#[tokio::test]
async fn extensions_that_matter_are_not_passed_over() {
    for header in [
        json!({"alg": "RS256", "crit": ["exp"], "exp": 1}),
        json!({"alg": "RS256", "crit": []}),
        json!({"alg": "RS256", "crit": ["b64"], "b64": false}),
        json!({"alg": "RS256", "b64": false}),
    ] {
        refused(ask(rsa(), &rs256(header, claims(json!({})))).await, JwtError::Critical);
    }
}

#[tokio::test]
async fn nested_encrypted_and_compressed_tokens_are_refused() {
    for header in [
        json!({"alg": "RS256", "cty": "JWT"}),
        json!({"alg": "RS256", "enc": "A128GCM"}),
        json!({"alg": "RS256", "zip": "DEF"}),
    ] {
        refused(ask(rsa(), &rs256(header, claims(json!({})))).await, JwtError::Nested);
    }
    let inner = good(json!({}));
    let key = EncodingKey::from_rsa_pem(RSA_A.as_bytes()).unwrap();
    refused(ask(rsa(), &signed(r#"{"alg":"RS256"}"#, &inner, &key, Alg::RS256)).await, JwtError::Shape);
    refused(ask(rsa(), &format!("{inner}.{inner}")).await, JwtError::Shape);
}

/// ID tokens, logout tokens and DPoP proofs of the same issuer are not access tokens.
#[tokio::test]
async fn tokens_for_another_purpose_are_refused() {
    for kind in [json!("dpop+jwt"), json!("logout+jwt"), json!("secevent+jwt"), json!(1), json!("")] {
        refused(
            ask(rsa(), &rs256(json!({"alg": "RS256", "typ": kind}), claims(json!({})))).await,
            JwtError::Kind,
        );
    }
    for kind in ["JWT", "jwt", "at+jwt", "application/at+jwt"] {
        assert!(
            ask(rsa(), &rs256(json!({"alg": "RS256", "typ": kind}), claims(json!({})))).await.is_ok(),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let token = good(json!({}));
    let parts: Vec<&str> = token.split('.').collect();
    for text in [
        String::new(),
        ".".into(),
        "..".into(),
        "a.b".into(),
        parts[..2].join("."),
        format!("{}..{}", parts[0], parts[2]),
        format!(".{}.{}", parts[1], parts[2]),
        format!("{}=.{}.{}", parts[0], parts[1], parts[2]),
        format!("{}.{}.{}.", parts[0], parts[1], parts[2]),
        format!("{}.{}.{}", URL_SAFE_NO_PAD.encode("[]"), parts[1], parts[2]),
        format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode("{} {}"), parts[2]),
        format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode([0xff, 0xfe]), parts[2]),
    ] {
        refused(ask(rsa(), &text).await, JwtError::Shape);
    }
    // Other encodings of the same signature bytes would be different tokens.
    refused(ask(rsa(), &format!("{token}=")).await, JwtError::Signature);
}

#[tokio::test]
async fn no_character_of_a_token_can_be_changed() {
    let key = EncodingKey::from_secret(SECRET);
    let token = signed(r#"{"alg":"HS256"}"#, &claims(json!({})).to_string(), &key, Alg::HS256);
    let verifier = JwtVerifier::new(vec![shared()], None).unwrap();
    assert!(verifier.verify(&token, now()).await.is_ok());
    for (place, original) in token.char_indices() {
        for other in ['A', 'B', 'Q', 'g', '_', '.', '='] {
            let changed = format!("{}{other}{}", &token[..place], &token[place + 1..]);
            assert!(other == original || verifier.verify(&changed, now()).await.is_err(), "{place}: {other}");
        }
        let shorter = format!("{}{}", &token[..place], &token[place + 1..]);
        assert!(verifier.verify(&shorter, now()).await.is_err(), "{place}");
    }
}

/// One reader takes the first `sub`, the next one the last.
#[tokio::test]
async fn a_claim_or_header_that_comes_twice_is_refused() {
    let key = EncodingKey::from_rsa_pem(RSA_A.as_bytes()).unwrap();
    let text = claims(json!({})).to_string();
    let twice = text.replace(r#""sub":"ann""#, r#""sub":"ann","sub":"root""#);
    assert_ne!(text, twice);
    refused(ask(rsa(), &signed(r#"{"alg":"RS256"}"#, &twice, &key, Alg::RS256)).await, JwtError::Shape);
    refused(
        ask(rsa(), &signed(r#"{"alg":"none","alg":"RS256"}"#, &text, &key, Alg::RS256)).await,
        JwtError::Shape,
    );
}

/// The token brings its own key, or says where to fetch one.
#[tokio::test]
async fn keys_and_addresses_in_a_token_are_never_used() {
    let own =
        Jwk::from_decoding_key(&DecodingKey::from_rsa_pem(RSA_B_PUBLIC.as_bytes()).unwrap(), None).unwrap();
    let key = EncodingKey::from_rsa_pem(RSA_B.as_bytes()).unwrap();
    let header = json!({
        "alg": "RS256", "jwk": own, "jku": "https://evil.example/keys", "x5u": "https://evil.example/cert", "x5c": ["AAAA"],
    });
    let token = signed(&header.to_string(), &claims(json!({})).to_string(), &key, Alg::RS256);
    refused(ask(rsa(), &token).await, JwtError::Signature);
    // Beside a good signature they do no harm: they are not looked at.
    assert!(ask(rsa(), &rs256(header, claims(json!({})))).await.is_ok());
}

#[tokio::test]
async fn without_a_kid_every_fitting_key_is_tried_and_none_other() {
    let several = KeySettings::Pem(vec![
        PemKey { kid: Some("ec".into()), pem: P256_PUBLIC.into() },
        PemKey { kid: Some("b".into()), pem: RSA_B_PUBLIC.into() },
        PemKey { kid: Some("a".into()), pem: RSA_A_PUBLIC.into() },
    ]);
    let settings = issuer(several, &[Algorithm::Rs256, Algorithm::Es256]);
    assert!(ask(settings.clone(), &good(json!({}))).await.is_ok());
    assert!(
        ask(settings.clone(), &rs256(json!({"alg": "RS256", "kid": "a"}), claims(json!({})))).await.is_ok()
    );
    for kid in ["b", "ec", "c", "../../dev/null", "' OR 1=1"] {
        let token = rs256(json!({"alg": "RS256", "kid": kid}), claims(json!({})));
        refused(ask(settings.clone(), &token).await, JwtError::Signature);
    }
    for kid in [json!(1), json!(null), json!("k".repeat(300))] {
        let token = rs256(json!({"alg": "RS256", "kid": kid}), claims(json!({})));
        refused(ask(settings.clone(), &token).await, JwtError::Shape);
    }
}

/// Each try is work that strangers can ask for.
#[tokio::test]
async fn the_number_of_tries_is_bounded() {
    let many = (0..9).map(|_| PemKey { kid: None, pem: RSA_A_PUBLIC.into() }).collect();
    refused(
        ask(issuer(KeySettings::Pem(many), &[Algorithm::Rs256]), &good(json!({}))).await,
        JwtError::Signature,
    );
}
