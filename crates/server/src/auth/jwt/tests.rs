//! Attacks on signed tokens, one a test. The keys in `testdata` were made for these tests and open nothing.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm as Alg, DecodingKey, EncodingKey, crypto, jwk::Jwk};
use serde_json::{Value, json};

use super::{key::Key, *};
use crate::auth::{
    identity::{How, Role},
    settings::{Algorithm, KeySettings, PemKey, Secret},
};

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

async fn ask(settings: IssuerSettings, token: &str) -> Result<Identity, Challenge> {
    JwtVerifier::new(vec![settings], None).unwrap().verify(token, now()).await
}

#[track_caller]
fn refused(outcome: Result<Identity, Challenge>, flaw: Flaw) {
    let challenge = outcome.unwrap_err();
    assert_eq!(challenge.detail, flaw.detail());
    let code = if flaw == Flaw::Expired { DoorCode::TokenExpired } else { DoorCode::TokenInvalid };
    assert_eq!(challenge.code, code);
}

async fn check_claims(changes: Value, flaw: Flaw) {
    let token = good(changes);
    refused(ask(rsa(), &token).await, flaw);
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
        refused(ask(issuer(keys, &[algorithm]), &format!("{message}.{signature}")).await, Flaw::Signature);
    }
}

/// The oldest one: take the public key, which everybody has, as the secret of an HMAC.
#[tokio::test]
async fn a_public_key_never_serves_as_a_secret() {
    let der = DecodingKey::from_rsa_pem(RSA_A_PUBLIC.as_bytes()).unwrap();
    for secret in [RSA_A_PUBLIC.as_bytes(), RSA_A_PUBLIC.trim().as_bytes(), der.try_get_as_bytes().unwrap()] {
        let key = EncodingKey::from_secret(secret);
        let token = signed(r#"{"alg":"HS256"}"#, &claims(json!({})).to_string(), &key, Alg::HS256);
        refused(ask(rsa(), &token).await, Flaw::Algorithm);
    }
    let mixed = issuer(pem(RSA_A_PUBLIC), &[Algorithm::Rs256, Algorithm::Hs256]);
    let error = JwtVerifier::new(vec![mixed], None).unwrap_err().to_string();
    assert!(error.contains("never mix them"), "{error}");
    let key = Key::from_pem(&PemKey { kid: None, pem: RSA_A_PUBLIC.into() }).unwrap();
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
        refused(ask(rsa(), &token).await, Flaw::Algorithm);
        let (message, _) = token.rsplit_once('.').unwrap();
        refused(ask(rsa(), &format!("{message}.")).await, Flaw::Shape);
    }
}

#[tokio::test]
async fn a_token_must_name_its_algorithm_as_text() {
    for header in
        [json!({"typ": "JWT"}), json!({"alg": null}), json!({"alg": ["RS256"]}), json!({"alg": 256})]
    {
        refused(ask(rsa(), &rs256(header, claims(json!({})))).await, Flaw::Algorithm);
    }
}

/// A weaker algorithm than the configured one, with the right key.
#[tokio::test]
async fn only_the_configured_algorithms_count() {
    let key = EncodingKey::from_rsa_pem(RSA_A.as_bytes()).unwrap();
    let token = signed(r#"{"alg":"RS512"}"#, &claims(json!({})).to_string(), &key, Alg::RS512);
    refused(ask(rsa(), &token).await, Flaw::Algorithm);
    // The header says what is configured; the signature is another algorithm's.
    let token = signed(r#"{"alg":"RS256"}"#, &claims(json!({})).to_string(), &key, Alg::PS256);
    refused(ask(rsa(), &token).await, Flaw::Signature);
}

#[tokio::test]
async fn extensions_that_matter_are_not_passed_over() {
    for header in [
        json!({"alg": "RS256", "crit": ["exp"], "exp": 1}),
        json!({"alg": "RS256", "crit": []}),
        json!({"alg": "RS256", "crit": ["b64"], "b64": false}),
        json!({"alg": "RS256", "b64": false}),
    ] {
        refused(ask(rsa(), &rs256(header, claims(json!({})))).await, Flaw::Critical);
    }
}

#[tokio::test]
async fn nested_encrypted_and_compressed_tokens_are_refused() {
    for header in [
        json!({"alg": "RS256", "cty": "JWT"}),
        json!({"alg": "RS256", "enc": "A128GCM"}),
        json!({"alg": "RS256", "zip": "DEF"}),
    ] {
        refused(ask(rsa(), &rs256(header, claims(json!({})))).await, Flaw::Nested);
    }
    let inner = good(json!({}));
    let key = EncodingKey::from_rsa_pem(RSA_A.as_bytes()).unwrap();
    refused(ask(rsa(), &signed(r#"{"alg":"RS256"}"#, &inner, &key, Alg::RS256)).await, Flaw::Shape);
    refused(ask(rsa(), &format!("{inner}.{inner}")).await, Flaw::Shape);
}

/// An ID token, a logout token or a DPoP proof of the same issuer is no access token.
#[tokio::test]
async fn tokens_for_another_purpose_are_refused() {
    for kind in [json!("dpop+jwt"), json!("logout+jwt"), json!("secevent+jwt"), json!(1), json!("")] {
        refused(
            ask(rsa(), &rs256(json!({"alg": "RS256", "typ": kind}), claims(json!({})))).await,
            Flaw::Kind,
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
        refused(ask(rsa(), &text).await, Flaw::Shape);
    }
    // Other spellings of the same signature bytes would be other tokens to whoever counts or revokes them.
    refused(ask(rsa(), &format!("{token}=")).await, Flaw::Signature);
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
    refused(ask(rsa(), &signed(r#"{"alg":"RS256"}"#, &twice, &key, Alg::RS256)).await, Flaw::Shape);
    refused(
        ask(rsa(), &signed(r#"{"alg":"none","alg":"RS256"}"#, &text, &key, Alg::RS256)).await,
        Flaw::Shape,
    );
}

#[tokio::test]
async fn a_token_must_expire_and_must_not_have_expired() {
    check_claims(json!({"exp": null}), Flaw::Expiry).await;
    check_claims(json!({"exp": NOW - 61}), Flaw::Expired).await;
    check_claims(json!({"exp": NOW - 60}), Flaw::Expired).await;
    assert!(ask(rsa(), &good(json!({"exp": NOW - 59}))).await.is_ok());
    for wrong in [json!("1800000300"), json!(-1), json!(1e300), json!(true), json!([1])] {
        check_claims(json!({"exp": wrong}), Flaw::Time).await;
    }
}

/// For the journal: whose token it was is known where the signature is good, and only there.
#[tokio::test]
async fn an_expired_token_still_names_its_caller_and_a_forged_one_does_not() {
    let expired = good(json!({"exp": 1}));
    let caller = async |token: &str| ask(rsa(), token).await.unwrap_err().caller;
    assert_eq!(caller(&expired).await.as_deref(), Some("jwt:login:ann"));
    let (message, _) = expired.rsplit_once('.').unwrap();
    assert_eq!(caller(&format!("{message}.AAAA")).await, None);
    assert_eq!(caller(&good(json!({"aud": "https://other.example"}))).await, None);
}

/// A stranger must not learn from us when somebody's token expired.
#[tokio::test]
async fn an_unsigned_token_is_not_told_that_it_expired() {
    let token = good(json!({"exp": 1}));
    let (message, _) = token.rsplit_once('.').unwrap();
    refused(ask(rsa(), &format!("{message}.AAAA")).await, Flaw::Signature);
}

#[tokio::test]
async fn tokens_of_the_future_are_refused_beyond_the_skew() {
    for name in ["nbf", "iat"] {
        check_claims(json!({name: NOW + 61}), Flaw::NotYet).await;
        assert!(ask(rsa(), &good(json!({name: NOW + 60}))).await.is_ok());
        assert!(ask(rsa(), &good(json!({name: null}))).await.is_ok());
        check_claims(json!({name: "soon"}), Flaw::Time).await;
    }
}

/// A token that another service of the same issuer was given, replayed here.
#[tokio::test]
async fn tokens_for_somebody_else_are_refused() {
    for audience in [
        json!(null),
        json!("https://other.example"),
        json!(""),
        json!([]),
        json!(["https://other.example"]),
        json!(7),
        json!({"0": AUDIENCE}),
        json!([AUDIENCE, 7]),
        json!(format!("{AUDIENCE}/")),
        json!([[AUDIENCE]]),
    ] {
        check_claims(json!({"aud": audience}), Flaw::Audience).await;
    }
    assert!(ask(rsa(), &good(json!({"aud": ["https://other.example", AUDIENCE]}))).await.is_ok());
}

#[tokio::test]
async fn issuers_are_known_to_the_letter() {
    for issuer in [
        json!(null),
        json!("https://login.example"),
        json!("HTTPS://login.example/"),
        json!([ISSUER]),
        json!(1),
    ] {
        check_claims(json!({"iss": issuer}), Flaw::Issuer).await;
    }
}

/// Somebody with a key of one trusted issuer speaks in the name of another.
#[tokio::test]
async fn one_issuer_cannot_speak_for_another() {
    let mut other = issuer(pem(RSA_B_PUBLIC), &[Algorithm::Rs256]);
    other.name = "other".into();
    other.issuer = "https://other.example/".into();
    let verifier = JwtVerifier::new(vec![rsa(), other], None).unwrap();
    let key = EncodingKey::from_rsa_pem(RSA_B.as_bytes()).unwrap();
    let header = r#"{"alg":"RS256"}"#;
    let forged = signed(header, &claims(json!({})).to_string(), &key, Alg::RS256);
    refused(verifier.verify(&forged, now()).await, Flaw::Signature);
    let own = signed(header, &claims(json!({"iss": "https://other.example/"})).to_string(), &key, Alg::RS256);
    assert_eq!(verifier.verify(&own, now()).await.unwrap().caller.subject, "jwt:other:ann");
}

#[tokio::test]
async fn a_caller_has_a_name_that_can_be_read() {
    for name in [
        json!(null),
        json!(""),
        json!("  "),
        json!(7),
        json!("a\nb"),
        json!("an\u{202e}n"),
        json!("x".repeat(300)),
    ] {
        check_claims(json!({"sub": name}), Flaw::Subject).await;
    }
}

#[tokio::test]
async fn the_caller_is_named_by_the_configured_claim() {
    let mut settings = rsa();
    settings.subject_claim = "client_id".into();
    let token = good(json!({"client_id": "robot"}));
    assert_eq!(ask(settings.clone(), &token).await.unwrap().caller.subject, "jwt:login:robot");
    refused(ask(settings, &good(json!({}))).await, Flaw::Subject);
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
    refused(ask(rsa(), &token).await, Flaw::Signature);
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
        refused(ask(settings.clone(), &token).await, Flaw::Signature);
    }
    for kid in [json!(1), json!(null), json!("k".repeat(300))] {
        let token = rs256(json!({"alg": "RS256", "kid": kid}), claims(json!({})));
        refused(ask(settings.clone(), &token).await, Flaw::Shape);
    }
}

/// Each try is work that strangers can ask for.
#[tokio::test]
async fn the_number_of_tries_is_bounded() {
    let many = (0..9).map(|_| PemKey { kid: None, pem: RSA_A_PUBLIC.into() }).collect();
    refused(
        ask(issuer(KeySettings::Pem(many), &[Algorithm::Rs256]), &good(json!({}))).await,
        Flaw::Signature,
    );
}

#[tokio::test]
async fn permissions_come_from_the_configured_claim_and_from_scope() {
    let token = good(json!({"permissions": ["files:read", "x"], "scope": "web:read  x"}));
    let identity = ask(rsa(), &token).await.unwrap();
    let held: Vec<&str> = identity.caller.permissions.iter().map(String::as_str).collect();
    assert_eq!(held, ["files:read", "web:read", "x"]);
    assert_eq!(identity.role, Role::Caller);
    assert_eq!(identity.how, How::Jwt { issuer: "login".into() });
    assert_eq!(identity.expires, Some(now() + Duration::from_mins(6)), "with the skew that is allowed");

    let mut nested = rsa();
    nested.permissions_claim = Some("/realm_access/roles".into());
    let token = good(json!({"realm_access": {"roles": ["ops"]}, "permissions": ["ignored"]}));
    assert_eq!(ask(nested, &token).await.unwrap().caller.permissions, BTreeSet::from(["ops".to_owned()]));
}

#[tokio::test]
async fn permissions_of_the_wrong_kind_refuse_the_token() {
    let many: Vec<String> = (0..257).map(|number| format!("p{number}")).collect();
    for wrong in [
        json!(7),
        json!({"admin": true}),
        json!(["a", 7]),
        json!([["a"]]),
        json!(many),
        json!(["p".repeat(129)]),
        json!(["a\u{200b}"]),
    ] {
        check_claims(json!({"permissions": wrong}), Flaw::Permissions).await;
    }
    check_claims(json!({"scope": 7}), Flaw::Permissions).await;
}

#[tokio::test]
async fn only_the_configured_permission_makes_an_admin() {
    let token = good(json!({"scope": "toolgate:admin"}));
    assert_eq!(ask(rsa(), &token).await.unwrap().role, Role::Admin);
    let mut without = rsa();
    without.admin_permission = None;
    assert_eq!(ask(without, &token).await.unwrap().role, Role::Caller);
    let claimed = good(json!({"role": "admin", "admin": true, "scope": "toolgate:administrator"}));
    assert_eq!(ask(rsa(), &claimed).await.unwrap().role, Role::Caller);
}

#[tokio::test]
async fn every_required_scope_must_be_there() {
    let needing = |scopes: &[&str]| {
        let mut settings = rsa();
        settings.required_scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        settings
    };
    let token = good(json!({"scope": "tools:call", "permissions": ["mcp"]}));
    assert!(ask(needing(&["tools:call", "mcp"]), &token).await.is_ok());
    for (scopes, header) in [
        (&["tools:call", "other"][..], r#"scope="other tools:call""#),
        (&["tools"][..], r#"scope="tools""#),
        (&["TOOLS:CALL"][..], r#"scope="TOOLS:CALL""#),
    ] {
        let challenge = ask(needing(scopes), &token).await.unwrap_err();
        assert_eq!(challenge.code, DoorCode::InsufficientScope);
        let response = challenge.into_answer(Some("https://gate.example/metadata"));
        assert_eq!(response.status(), 403);
        let said = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
        assert!(said.contains(r#"error="insufficient_scope""#) && said.contains(header), "{said}");
        assert!(said.contains(r#"resource_metadata="https://gate.example/metadata""#), "{said}");
    }
    // An admin's token is a token, and one that does not hold is told nothing of scopes.
    let admin = good(json!({"scope": "toolgate:admin"}));
    assert_eq!(ask(needing(&["mcp"]), &admin).await.unwrap_err().code, DoorCode::InsufficientScope);
    let expired = good(json!({"exp": NOW - 300}));
    refused(ask(needing(&["mcp"]), &expired).await, Flaw::Expired);
}

#[test]
fn a_scope_that_would_break_out_of_its_header_is_refused_at_start() {
    for scope in ["", "a b", "a\"b", "a\\b", "a\nb", "ä"] {
        let mut settings = rsa();
        settings.required_scopes = BTreeSet::from([scope.to_owned()]);
        let error = JwtVerifier::new(vec![settings], None).unwrap_err().to_string();
        assert!(error.contains("`required_scopes`"), "{error}");
    }
}

#[test]
fn weak_and_foreign_keys_are_refused_at_start() {
    for (key, why) in [
        (RSA_SHORT_PUBLIC, "2048"),
        (RSA_A, "PUBLIC KEY"),
        ("", "PUBLIC KEY"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no RSA"),
    ] {
        let error =
            JwtVerifier::new(vec![issuer(pem(key), &[Algorithm::Rs256])], None).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    for (length, algorithm) in
        [(31, Algorithm::Hs256), (47, Algorithm::Hs384), (63, Algorithm::Hs512), (0, Algorithm::Hs256)]
    {
        let keys = KeySettings::Secret(Secret::new(vec![7; length]));
        assert!(JwtVerifier::new(vec![issuer(keys, &[algorithm])], None).is_err(), "{algorithm:?}");
    }
    assert!(JwtVerifier::new(vec![issuer(pem(RSA_A_PUBLIC), &[Algorithm::Es256])], None).is_err());
    assert!(JwtVerifier::new(vec![issuer(KeySettings::Pem(vec![]), &[Algorithm::Rs256])], None).is_err());
}

type Change = fn(&mut IssuerSettings);

#[test]
fn doubtful_settings_are_refused_at_start() {
    let broken: [(&str, Change); 12] = [
        ("a minute", |issuer| issuer.refresh = Duration::ZERO),
        ("a day", |issuer| issuer.refresh = Duration::MAX),
        ("`sub`", |issuer| issuer.subject_claim = String::new()),
        ("name", |issuer| issuer.name = "a:b".into()),
        ("name", |issuer| issuer.name = String::new()),
        ("issuer", |issuer| issuer.issuer = " ".into()),
        ("audiences", |issuer| issuer.audiences.clear()),
        ("algorithms", |issuer| issuer.algorithms.clear()),
        ("clock_skew", |issuer| issuer.clock_skew = Duration::from_secs(601)),
        ("https", |issuer| issuer.keys = KeySettings::JwksUrl("http://login.example/keys".into())),
        ("password", |issuer| issuer.keys = KeySettings::JwksUrl("https://u:p@login.example/keys".into())),
        ("no way to fetch", |issuer| issuer.keys = KeySettings::JwksUrl("https://login.example/keys".into())),
    ];
    for (word, change) in broken {
        let mut settings = rsa();
        change(&mut settings);
        let error = JwtVerifier::new(vec![settings], None).unwrap_err().to_string();
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(JwtVerifier::new(vec![rsa(), rsa()], None).is_err());
}

#[test]
fn keys_of_a_set_are_checked_one_by_one() {
    let point = |curve: &str, x: &[u8], y: &[u8]| json!({"kty": "EC", "crv": curve, "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)});
    let modulus = URL_SAFE_NO_PAD.encode([0xff; 256]);
    for jwk in [
        // Not on the curve, and the wrong size for it.
        point("P-256", &[1; 32], &[1; 32]),
        point("P-256", &[1; 31], &[1; 32]),
        point("P-384", &[1; 48], &[1; 48]),
        point("P-521", &[1; 66], &[1; 66]),
        // A key too short would make the library panic.
        json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}),
        json!({"kty": "OKP", "crv": "X25519", "x": URL_SAFE_NO_PAD.encode([1; 32])}),
        json!({"kty": "RSA", "n": modulus, "e": "AQ"}),
        json!({"kty": "RSA", "n": modulus, "e": "Ag"}),
        json!({"kty": "RSA", "n": modulus, "e": ""}),
        json!({"kty": "RSA", "n": modulus}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "use": "enc"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "key_ops": ["encrypt"]}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "d": "AQAB"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RSA-OAEP"}),
        // A secret in a public set is nobody's secret.
        json!({"kty": "oct", "k": URL_SAFE_NO_PAD.encode(SECRET)}),
        json!({}),
    ] {
        assert!(Key::from_jwk(jwk.as_object().unwrap()).is_err(), "{jwk}");
    }
    let fine = json!({"kty": "RSA", "n": modulus, "e": "AQAB", "use": "sig", "alg": "PS256"});
    let key = Key::from_jwk(fine.as_object().unwrap()).unwrap();
    assert!(key.fits(Algorithm::Ps256) && !key.fits(Algorithm::Rs256));
}

#[test]
fn nothing_secret_shows_in_debug_output() {
    let verifier = JwtVerifier::new(vec![shared()], None).unwrap();
    let said = format!("{verifier:?} {:?} {:?}", shared(), Key::shared(&Secret::new(*SECRET)));
    assert!(!said.contains("0123456789abcdef") && !said.contains("48, 49, 50"), "{said}");
}
