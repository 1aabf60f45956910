//! Tests of authentication, from headers to identity or challenge.

use std::{
    collections::BTreeSet,
    time::{Duration, UNIX_EPOCH},
};

use http::HeaderValue;

use toolgate_policy::Caller;

use super::*;

struct FakeTokens;

impl TokenVerifier for FakeTokens {
    fn verify(&self, presented: &str, now: SystemTime) -> Result<Option<TokenIdentity>, String> {
        let known = |id: &str, subject: &str, role, expires| TokenIdentity {
            id: id.into(),
            subject: subject.into(),
            permissions: BTreeSet::from(["files:read".to_owned()]),
            role,
            expires,
        };
        match presented {
            "tg_ci" => Ok(Some(known("t1", "ci", Role::Caller, None))),
            "tg_boss" => Ok(Some(known("t2", "boss", Role::Admin, Some(now + Duration::from_mins(1))))),
            "tg_over" => Ok(Some(known("t3", "over", Role::Caller, Some(now)))),
            "tg_odd" => Ok(Some(known("t4", "a\u{202e}b", Role::Caller, None))),
            "tg_down" => Err("disk on fire".into()),
            _ => Ok(None),
        }
    }

    fn is_good(&self, id: &str, _: SystemTime) -> Result<bool, String> {
        match id {
            "t1" | "t2" => Ok(true),
            "t5" => Err("disk on fire".into()),
            _ => Ok(false),
        }
    }
}

fn settings() -> AuthSettings {
    AuthSettings { tokens: Some(Arc::new(FakeTokens)), ..AuthSettings::default() }
}

fn bearer(token: &str) -> HeaderMap {
    HeaderMap::from_iter([(
        http::header::AUTHORIZATION,
        HeaderValue::try_from(format!("Bearer {token}")).unwrap(),
    )])
}

const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

async fn ask(settings: AuthSettings, headers: &HeaderMap) -> Result<AuthIdentity, Challenge> {
    Authenticator::new(settings).unwrap().authenticate(headers, UNIX_EPOCH).await
}

#[tokio::test]
async fn gateway_token_names_its_caller() {
    let identity = ask(settings(), &bearer("tg_boss")).await.unwrap();
    assert_eq!(identity.caller, Caller::new("token:boss", ["files:read"]));
    assert_eq!((identity.role, identity.how), (Role::Admin, How::Token { id: "t2".into() }));
    assert_eq!(identity.expires, Some(UNIX_EPOCH + Duration::from_mins(1)));
}

/// Unknown, revoked, expired and malformed tokens get one answer, so guesses reveal nothing.
#[tokio::test]
async fn invalid_tokens_get_the_same_answer() {
    let first = ask(settings(), &bearer("tg_unknown")).await.unwrap_err();
    assert_eq!(first.code, DoorCode::TokenInvalid);
    for token in ["tg_over", "tg_odd", "tg_", "tg_ci."] {
        assert_eq!(ask(settings(), &bearer(token)).await.unwrap_err(), first, "{token}");
    }
    assert_eq!(ask(AuthSettings::default(), &bearer("tg_ci")).await.unwrap_err(), first);
}

#[tokio::test]
async fn failing_store_rejects_without_details() {
    let challenge = ask(settings(), &bearer("tg_down")).await.unwrap_err();
    assert_eq!(challenge.code, DoorCode::Unavailable);
    assert!(challenge.to_operator.contains("disk on fire"));
    let response = challenge.into_answer(None);
    assert_eq!(response.status(), 503);
    let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    assert!(!String::from_utf8_lossy(&body).contains("fire"));
}

#[tokio::test]
async fn missing_token_is_challenged() {
    for settings in [settings(), AuthSettings::default()] {
        assert_eq!(ask(settings, &HeaderMap::new()).await.unwrap_err().code, DoorCode::TokenMissing);
    }
}

#[tokio::test]
async fn anonymous_caller_has_no_token_and_is_never_admin() {
    let open = || AuthSettings {
        danger_anonymous: Some(Anonymous { name: "anyone".into(), permissions: BTreeSet::new() }),
        ..settings()
    };
    let identity = ask(open(), &HeaderMap::new()).await.unwrap();
    assert_eq!(identity.caller.subject, "anonymous:anyone");
    assert_eq!((identity.role, identity.how), (Role::Caller, How::Anonymous));
    // An invalid token does not make the caller anonymous.
    for headers in [
        bearer("tg_unknown"),
        bearer("x"),
        HeaderMap::from_iter([(http::header::AUTHORIZATION, HeaderValue::from_static("Basic eDp5"))]),
    ] {
        assert_eq!(ask(open(), &headers).await.unwrap_err().code, DoorCode::TokenInvalid);
    }
    let unnamed = AuthSettings {
        danger_anonymous: Some(Anonymous { name: " ".into(), permissions: BTreeSet::new() }),
        ..settings()
    };
    assert!(Authenticator::new(unnamed).is_err());
}

#[tokio::test]
async fn local_caller_has_no_token_and_is_never_admin() {
    let local =
        |name: &str| Some(Local { name: name.into(), permissions: BTreeSet::from(["files.read".into()]) });
    let open = || AuthSettings { danger_local: local("agent"), ..settings() };
    let identity = ask(open(), &HeaderMap::new()).await.unwrap();
    assert_eq!(identity.caller.subject, "local:agent");
    assert!(identity.caller.permissions.contains("files.read"));
    assert_eq!((identity.role, identity.how), (Role::Caller, How::Local));
    assert_eq!(ask(open(), &bearer("tg_unknown")).await.unwrap_err().code, DoorCode::TokenInvalid);
    assert!(Authenticator::new(AuthSettings { danger_local: local(" "), ..settings() }).is_err());
    let both = AuthSettings {
        danger_anonymous: Some(Anonymous { name: "anyone".into(), permissions: BTreeSet::new() }),
        ..open()
    };
    assert!(Authenticator::new(both).is_err());
}

#[tokio::test]
async fn guessing_address_is_limited_while_valid_tokens_pass() {
    let gate = Authenticator::new(settings()).unwrap();
    assert!(gate.admit(PEER, &bearer("tg_ci"), UNIX_EPOCH).await.is_ok());
    for guess in 0..20 {
        let challenge = gate.admit(PEER, &bearer(&format!("tg_{guess}")), UNIX_EPOCH).await.unwrap_err();
        assert_eq!(challenge.code, DoorCode::TokenInvalid);
    }
    let challenge = gate.admit(PEER, &bearer("tg_20"), UNIX_EPOCH).await.unwrap_err();
    assert_eq!(
        (challenge.code, challenge.retry_after),
        (DoorCode::RateLimited, Some(Duration::from_mins(1)))
    );
    // A valid token passes, because clients behind a proxy share its address.
    assert!(gate.admit(PEER, &bearer("tg_boss"), UNIX_EPOCH).await.is_ok());
    assert!(gate.admit(PEER, &bearer("tg_ci"), UNIX_EPOCH).await.is_ok());
    let later = UNIX_EPOCH + Duration::from_mins(1);
    let challenge = gate.admit(PEER, &bearer("tg_20"), later).await.unwrap_err();
    assert_eq!(challenge.code, DoorCode::TokenInvalid);
}

/// A missing token and a failing store do not count as guesses.
#[tokio::test]
async fn only_wrong_tokens_count_as_failures() {
    let gate = Authenticator::new(settings()).unwrap();
    for _ in 0..50 {
        assert_eq!(
            gate.admit(PEER, &HeaderMap::new(), UNIX_EPOCH).await.unwrap_err().code,
            DoorCode::TokenMissing
        );
        assert_eq!(
            gate.admit(PEER, &bearer("tg_down"), UNIX_EPOCH).await.unwrap_err().code,
            DoorCode::Unavailable
        );
    }
    assert!(gate.admit(PEER, &bearer("tg_ci"), UNIX_EPOCH).await.is_ok());
}

#[test]
fn local_caller_has_its_own_namespace() {
    let identity = AuthIdentity::local("me", ["files:read".to_owned()], Role::Caller);
    assert_eq!(identity.caller.subject, "local:me");
    assert_eq!(identity.how.to_string(), "local");
}

#[tokio::test]
async fn debug_output_and_challenges_contain_no_secrets() {
    let settings = || AuthSettings { issuers: vec![issuer()], ..settings() };
    let gate = Authenticator::new(settings()).unwrap();
    let mut said = format!("{:?} {gate:?} {:?}", settings(), issuer().keys);
    for token in ["tg_hunter2", "hunter2", "hunter2.hunter2.hunter2", "eyJhbGciOiJIUzI1NiJ9.e30.hunter2"] {
        let challenge = gate.admit(PEER, &bearer(token), UNIX_EPOCH).await.unwrap_err();
        said =
            format!("{said} {challenge:?} {:?}", challenge.clone().into_answer(Some("https://gate.example")));
    }
    let known = gate.admit(PEER, &bearer("tg_ci"), UNIX_EPOCH).await.unwrap();
    said = format!("{said} {known:?} {gate:?}");
    for hidden in ["s3cr3t", "115, 51", "hunter2", "tg_ci", "eyJhb"] {
        assert!(!said.contains(hidden), "{hidden} in {said}");
    }
}

#[test]
fn metadata_exists_only_with_an_issuer() {
    assert!(Authenticator::new(settings()).unwrap().metadata().is_none());
}

#[test]
fn authentication_ends_with_its_token_or_settings() {
    let now = UNIX_EPOCH + Duration::from_hours(1);
    let later = Some(now + Duration::from_secs(1));
    let token = |id: &str| How::Token { id: id.into() };
    let anonymous = || Some(Anonymous { name: "anyone".into(), permissions: BTreeSet::new() });
    let open = || AuthSettings { issuers: vec![issuer()], danger_anonymous: anonymous(), ..settings() };
    let authenticator = Authenticator::new(open()).unwrap();
    let then = authenticator.active();
    let by = |how: How, expires| {
        let name = if how == How::Anonymous { "anonymous:anyone" } else { "somebody" };
        AuthIdentity { caller: Caller::new::<String>(name, []), role: Role::Caller, how, expires }
    };
    let stays = |how: How, expires| authenticator.still_lets_in(&by(how, expires), &then, now);
    assert!(stays(token("t1"), None) && stays(token("t1"), later));
    assert!(!stays(token("t1"), Some(now)), "expired");
    assert!(!stays(token("t3"), None), "revoked");
    assert!(!stays(token("t5"), None), "the store cannot tell");
    assert!(stays(How::Jwt { issuer: "login".into() }, later));
    assert!(!stays(How::Jwt { issuer: "login".into() }, Some(now)));
    assert!(stays(How::Anonymous, None));
    assert!(!stays(How::Jwt { issuer: "other".into() }, later), "this issuer is not configured");
    assert!(!stays(How::Local, None), "no local caller is configured");
    // Changes to other settings keep callers authenticated.
    let wider = AuthSettings { issuers: vec![issuer()], tokens: None, ..open() };
    authenticator.replace(authenticator.prepare(wider).unwrap());
    assert!(stays(How::Jwt { issuer: "login".into() }, later) && stays(How::Anonymous, None));
    assert!(!stays(token("t1"), None), "there are no tokens any more");
    // Any change to the caller's own settings ends the authentication.
    let scopes = IssuerSettings { required_scopes: BTreeSet::from(["tools".to_owned()]), ..issuer() };
    let permissions = BTreeSet::from(["files.read".to_owned()]);
    let narrower = AuthSettings {
        issuers: vec![scopes],
        danger_anonymous: Some(Anonymous { name: "anyone".into(), permissions }),
        ..settings()
    };
    authenticator.replace(authenticator.prepare(narrower).unwrap());
    assert!(!stays(How::Jwt { issuer: "login".into() }, later) && !stays(How::Anonymous, None));
    assert!(stays(token("t1"), None));
}

#[tokio::test]
async fn new_settings_apply_at_once_and_invalid_ones_are_rejected() {
    let gate = Authenticator::new(settings()).unwrap();
    for guess in 0..21 {
        let _ = gate.admit(PEER, &bearer(&format!("tg_{guess}")), UNIX_EPOCH).await;
    }
    let twice = AuthSettings { issuers: vec![issuer(), issuer()], ..AuthSettings::default() };
    assert!(gate.prepare(twice).is_err());
    assert!(gate.admit(PEER, &bearer("tg_ci"), UNIX_EPOCH).await.is_ok());
    assert!(gate.metadata().is_none());
    let none = AuthSettings { issuers: vec![issuer()], ..AuthSettings::default() };
    gate.replace(gate.prepare(none).unwrap());
    let challenge = gate.admit(PEER, &bearer("tg_ci"), UNIX_EPOCH).await.unwrap_err();
    assert_eq!(challenge.code, DoorCode::RateLimited, "failure counts stay");
    assert!(gate.metadata().is_some());
}

fn issuer() -> IssuerSettings {
    IssuerSettings {
        name: "login".into(),
        issuer: "https://login.example".into(),
        audiences: BTreeSet::from(["us".to_owned()]),
        algorithms: BTreeSet::from([Algorithm::Hs256]),
        keys: KeySettings::Secret(Secret::new(SECRET)),
        subject_claim: "sub".into(),
        permissions_claim: None,
        admin_permission: None,
        required_scopes: BTreeSet::new(),
        clock_skew: Duration::ZERO,
        refresh: Duration::from_mins(10),
        scopes: vec![],
    }
}

const SECRET: &str = "s3cr3t-s3cr3t-s3cr3t-s3cr3t-s3cr3t";
