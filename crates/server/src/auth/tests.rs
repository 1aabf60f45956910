//! The whole of authentication, from headers to identity or challenge.

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

async fn ask(settings: AuthSettings, headers: &HeaderMap) -> Result<Identity, Challenge> {
    Authenticator::new(settings).unwrap().authenticate(headers, UNIX_EPOCH).await
}

#[tokio::test]
async fn a_local_token_names_its_caller() {
    let identity = ask(settings(), &bearer("tg_boss")).await.unwrap();
    assert_eq!(identity.caller, Caller::new("token:boss", ["files:read"]));
    assert_eq!((identity.role, identity.how), (Role::Admin, How::Token { id: "t2".into() }));
    assert_eq!(identity.expires, Some(UNIX_EPOCH + Duration::from_mins(1)));
}

/// Unknown, revoked, expired, misshapen, or no tokens at all: a guess learns nothing from the answer.
#[tokio::test]
async fn every_bad_local_token_gets_the_same_answer() {
    let first = ask(settings(), &bearer("tg_unknown")).await.unwrap_err();
    assert_eq!(first.code, DoorCode::TokenInvalid);
    for token in ["tg_over", "tg_odd", "tg_", "tg_ci."] {
        assert_eq!(ask(settings(), &bearer(token)).await.unwrap_err(), first, "{token}");
    }
    assert_eq!(ask(AuthSettings::default(), &bearer("tg_ci")).await.unwrap_err(), first);
}

#[tokio::test]
async fn a_store_that_cannot_tell_keeps_the_door_shut_and_its_reasons_inside() {
    let challenge = ask(settings(), &bearer("tg_down")).await.unwrap_err();
    assert_eq!(challenge.code, DoorCode::Unavailable);
    assert!(challenge.to_operator.contains("disk on fire"));
    let response = challenge.into_answer(None);
    assert_eq!(response.status(), 503);
    let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    assert!(!String::from_utf8_lossy(&body).contains("fire"));
}

#[tokio::test]
async fn without_a_token_there_is_a_challenge_and_nothing_configured_lets_nobody_in() {
    for settings in [settings(), AuthSettings::default()] {
        assert_eq!(ask(settings, &HeaderMap::new()).await.unwrap_err().code, DoorCode::TokenMissing);
    }
}

#[tokio::test]
async fn anonymous_is_for_those_without_a_token_and_never_an_admin() {
    let open = || AuthSettings {
        danger_anonymous: Some(Anonymous { name: "anyone".into(), permissions: BTreeSet::new() }),
        ..settings()
    };
    let identity = ask(open(), &HeaderMap::new()).await.unwrap();
    assert_eq!(identity.caller.subject, "anonymous:anyone");
    assert_eq!((identity.role, identity.how), (Role::Caller, How::Anonymous));
    // A bad token is somebody who is not who they say, not nobody in particular.
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
async fn the_local_caller_is_whoever_comes_without_a_token_and_never_an_admin() {
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
async fn an_address_that_guesses_is_told_to_wait_while_good_tokens_pass() {
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
    // A good one passes, also at its first use: behind a proxy everybody has one address.
    assert!(gate.admit(PEER, &bearer("tg_boss"), UNIX_EPOCH).await.is_ok());
    assert!(gate.admit(PEER, &bearer("tg_ci"), UNIX_EPOCH).await.is_ok());
    let later = UNIX_EPOCH + Duration::from_mins(1);
    let challenge = gate.admit(PEER, &bearer("tg_20"), later).await.unwrap_err();
    assert_eq!(challenge.code, DoorCode::TokenInvalid);
}

/// To ask for the challenge, or to come while the store is down, is no guess.
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
fn a_local_caller_has_a_namespace_of_its_own() {
    let identity = Identity::local("me", ["files:read".to_owned()], Role::Caller);
    assert_eq!(identity.caller.subject, "local:me");
    assert_eq!(identity.how.to_string(), "local");
}

#[tokio::test]
async fn nothing_secret_shows_in_debug_output_or_challenges() {
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
fn metadata_exists_only_where_an_issuer_does() {
    assert!(Authenticator::new(settings()).unwrap().metadata().is_none());
}

#[test]
fn nobody_stays_longer_than_the_proof_they_came_with() {
    let now = UNIX_EPOCH + Duration::from_hours(1);
    let later = Some(now + Duration::from_secs(1));
    let token = |id: &str| How::Token { id: id.into() };
    let anonymous = || Some(Anonymous { name: "anyone".into(), permissions: BTreeSet::new() });
    let open = || AuthSettings { issuers: vec![issuer()], danger_anonymous: anonymous(), ..settings() };
    let authenticator = Authenticator::new(open()).unwrap();
    let then = authenticator.believed();
    let by = |how: How, expires| {
        let name = if how == How::Anonymous { "anonymous:anyone" } else { "somebody" };
        Identity { caller: Caller::new::<String>(name, []), role: Role::Caller, how, expires }
    };
    let stays = |how: How, expires| authenticator.still_lets_in(&by(how, expires), &then, now);
    assert!(stays(token("t1"), None) && stays(token("t1"), later));
    assert!(!stays(token("t1"), Some(now)), "expired");
    assert!(!stays(token("t3"), None), "revoked");
    assert!(!stays(token("t5"), None), "the store cannot tell");
    assert!(stays(How::Jwt { issuer: "login".into() }, later));
    assert!(!stays(How::Jwt { issuer: "login".into() }, Some(now)));
    assert!(stays(How::Anonymous, None));
    assert!(!stays(How::Jwt { issuer: "other".into() }, later), "nobody of that name is believed");
    assert!(!stays(How::Local, None), "nobody is the local caller here");
    // What does not concern somebody leaves them in.
    let wider = AuthSettings { issuers: vec![issuer()], tokens: None, ..open() };
    authenticator.replace(authenticator.prepare(wider).unwrap());
    assert!(stays(How::Jwt { issuer: "login".into() }, later) && stays(How::Anonymous, None));
    assert!(!stays(token("t1"), None), "there are no tokens any more");
    // What does shuts them out, whatever has changed.
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
async fn other_settings_count_at_once_and_unsound_ones_change_nothing() {
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
    assert_eq!(challenge.code, DoorCode::RateLimited, "who guessed before has still guessed");
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
