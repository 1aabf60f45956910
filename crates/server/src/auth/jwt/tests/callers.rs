//! Whose token is it, for whom, until when, and what may they? Attacks with a good signature.

use super::*;
use crate::auth::identity::{How, Role};

async fn check_claims(changes: Value, flaw: JwtError) {
    let token = good(changes);
    refused(ask(rsa(), &token).await, flaw);
}

#[tokio::test]
async fn a_token_must_expire_and_must_not_have_expired() {
    check_claims(json!({"exp": null}), JwtError::Expiry).await;
    check_claims(json!({"exp": NOW - 61}), JwtError::Expired).await;
    check_claims(json!({"exp": NOW - 60}), JwtError::Expired).await;
    assert!(ask(rsa(), &good(json!({"exp": NOW - 59}))).await.is_ok());
    for wrong in [json!("1800000300"), json!(-1), json!(1e300), json!(true), json!([1])] {
        check_claims(json!({"exp": wrong}), JwtError::Time).await;
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

/// Expiry is not revealed without a valid signature.
#[tokio::test]
async fn an_unsigned_token_is_not_told_that_it_expired() {
    let token = good(json!({"exp": 1}));
    let (message, _) = token.rsplit_once('.').unwrap();
    refused(ask(rsa(), &format!("{message}.AAAA")).await, JwtError::Signature);
}

#[tokio::test]
async fn tokens_of_the_future_are_refused_beyond_the_skew() {
    for name in ["nbf", "iat"] {
        check_claims(json!({name: NOW + 61}), JwtError::NotYet).await;
        assert!(ask(rsa(), &good(json!({name: NOW + 60}))).await.is_ok());
        assert!(ask(rsa(), &good(json!({name: null}))).await.is_ok());
        check_claims(json!({name: "soon"}), JwtError::Time).await;
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
        check_claims(json!({"aud": audience}), JwtError::Audience).await;
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
        check_claims(json!({"iss": issuer}), JwtError::Issuer).await;
    }
}

/// A token of one trusted issuer claims to be from another.
#[tokio::test]
async fn one_issuer_cannot_speak_for_another() {
    let mut other = issuer(pem(RSA_B_PUBLIC), &[Algorithm::Rs256]);
    other.name = "other".into();
    other.issuer = "https://other.example/".into();
    let verifier = JwtVerifier::new(vec![rsa(), other], None).unwrap();
    let key = EncodingKey::from_rsa_pem(RSA_B.as_bytes()).unwrap();
    let header = r#"{"alg":"RS256"}"#;
    let forged = signed(header, &claims(json!({})).to_string(), &key, Alg::RS256);
    refused(verifier.verify(&forged, now()).await, JwtError::Signature);
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
        check_claims(json!({"sub": name}), JwtError::Subject).await;
    }
}

#[tokio::test]
async fn the_caller_is_named_by_the_configured_claim() {
    let mut settings = rsa();
    settings.subject_claim = "client_id".into();
    let token = good(json!({"client_id": "robot"}));
    assert_eq!(ask(settings.clone(), &token).await.unwrap().caller.subject, "jwt:login:robot");
    refused(ask(settings, &good(json!({}))).await, JwtError::Subject);
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
        check_claims(json!({"permissions": wrong}), JwtError::Permissions).await;
    }
    check_claims(json!({"scope": 7}), JwtError::Permissions).await;
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
    // Admin tokens need the scopes too, and invalid tokens learn nothing about scopes.
    let admin = good(json!({"scope": "toolgate:admin"}));
    assert_eq!(ask(needing(&["mcp"]), &admin).await.unwrap_err().code, DoorCode::InsufficientScope);
    let expired = good(json!({"exp": NOW - 300}));
    refused(ask(needing(&["mcp"]), &expired).await, JwtError::Expired);
}
