//! The bodies of the fuzz targets. Shared with the test that replays the seeds, so both run the same code.
#![allow(dead_code, reason = "each fuzz target uses one of these")]

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::LazyLock,
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime},
};

use jsonwebtoken::{Algorithm as Signature, EncodingKey, crypto::sign};
use toolgate_audit::{Key, Receipt, verify, verify_receipt};
use toolgate_config::{Config, Overrides};
use toolgate_egress::{EgressMode, EgressRules, Guard, parse_url};
use toolgate_policy::{PolicySet, rate, resolve};
use toolgate_sandbox::wire::{FromWorker, HEADER, ToWorker};
use toolgate_server::{
    Algorithm, AuthIdentity, AuthSettings, Authenticator, IssuerSettings, KeySettings, Secret,
};
use toolgate_spec::{
    ArgTemplate, FieldPattern, FileCheck, Format, HostPattern, PathPattern, PathRoots, Template, ToolCheck,
    check, digest, locate,
};
use toolgate_upstream::{AuthChallenge, EventParser};

/// Included by path, because the counter is private to the handlers crate.
#[path = "../crates/handlers/src/js/values.rs"]
mod values;

pub fn document_json(data: &[u8]) {
    judge(data, Format::Json);
}

pub fn document_yaml(data: &[u8]) {
    judge(data, Format::Yaml);
}

/// The bytes are the handler of an otherwise valid manifest, so the fuzzer reaches handlers quickly.
pub fn manifest(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(handler) = serde_json::from_str::<serde_json::Value>(text) else { return };
    let params = serde_json::json!([
        { "name": "path", "required": true, "type": "STRING", "testValue": "a" },
        { "name": "list", "required": false, "type": "ARRAY", "testValue": "[1]" },
    ]);
    let document =
        serde_json::json!({ "name": "t", "classification": "read", "params": params, "handler": handler });
    judge(document.to_string().as_bytes(), Format::Json);
}

pub fn placeholder(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(template) = Template::parse(text) {
        assert_eq!(template.text(), text);
        assert!(template.names().all(|name| text.contains(&format!("${{{name}}}"))));
    }
}

pub fn path_pattern(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, path) = text.split_once('\n').unwrap_or((text, "/ws/a/b"));
    let roots = PathRoots { workspace: "/ws", home: "/home/u" };
    if let Ok(pattern) = PathPattern::parse(pattern) {
        let covered = pattern.covers(path, roots);
        assert!(!covered || !path.split('/').any(|part| part == ".."), "a path with `..` is never covered");
        assert!(!covered || path.starts_with('/'), "a relative path is never covered");
        assert!(
            !covered || pattern.covers(&format!("{}/below", path.trim_end_matches('/')), roots),
            "what is below is covered too"
        );
    }
}

pub fn field_path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, path) = text.split_once('\n').unwrap_or((text, "a.b"));
    if let Ok(pattern) = FieldPattern::parse(pattern) {
        let path: Vec<&str> = path.split('.').collect();
        let mut below = path.clone();
        below.push("below");
        assert!(!pattern.matches(&path) || pattern.matches(&below), "descendants match, too");
        assert_eq!(pattern.matches(&path), pattern.specificity_at(&path).is_some());
    }
}

pub fn arg_template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(template) = ArgTemplate::parse(text) {
        assert_eq!(template.text(), text);
    }
}

pub fn host(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, host) = text.split_once('\n').unwrap_or((text, "a.example.com"));
    if let Ok(pattern) = HostPattern::parse(pattern) {
        let _ = pattern.covers(host, 443);
        assert!(pattern.includes(&pattern));
        if let Ok(narrow) = HostPattern::parse(host)
            && pattern.includes(&narrow)
            && narrow.covers("a.example.com", 443)
        {
            assert!(pattern.covers("a.example.com", 443));
        }
    }
}

/// An edit changes only what it should, or is refused.
pub fn edit(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for format in [Format::Json, Format::Yaml] {
        let change = [("draft", Some(serde_json::Value::Bool(true)))];
        if let Ok(after) = toolgate_spec::edit(text, format, &change) {
            let again = toolgate_spec::edit(&after, format, &change);
            assert_eq!(
                again.as_deref().ok(),
                Some(after.as_str()),
                "an edit that is in place changes nothing"
            );
        }
    }
}

static SHIPPED: LazyLock<PolicySet> =
    LazyLock::new(|| PolicySet::shipped().expect("the shipped policy is valid"));

fn judge(data: &[u8], format: Format) {
    let FileCheck { tools, mut findings, .. } = check(data, format);
    for ToolCheck { spec, document, findings: of_tool, .. } in tools {
        if let Some(spec) = spec {
            assert!(!of_tool.iter().any(toolgate_spec::Finding::is_error), "a valid spec has no errors");
            let _ = digest(&spec, &document);
            if let Ok(policy) = resolve(&spec, &SHIPPED, None) {
                let _ = rate(&policy, &spec, &SHIPPED);
            }
        }
        findings.extend(of_tool);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        locate(text, format, &mut findings);
        for span in findings.iter().filter_map(|finding| finding.span) {
            assert!(span.start <= span.end && text.get(span.range()).is_some(), "spans are inside the text");
        }
    }
}

/// The first byte is the kind of the frame. A decoded frame must encode to the same bytes: every frame has one
/// encoding.
pub fn frame(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else { return };
    if let Ok(frame) = FromWorker::decode(*kind, body) {
        let bytes = frame.encode().expect("a decoded frame can be encoded");
        assert_eq!(bytes.get(HEADER..), Some(body));
    }
    let _ = ToWorker::decode(*kind, body);
}

/// The bytes are the result of a tool. Its values are counted before parsing; the parsed value never has more.
pub fn result(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let counted = values::count(text);
    if let Ok(value) = serde_json::from_str(text) {
        let held = names_and_values(&value);
        assert!(held <= counted, "{held} names and values, {counted} counted");
    }
}

fn names_and_values(value: &serde_json::Value) -> usize {
    1 + match value {
        serde_json::Value::Array(items) => items.iter().map(names_and_values).sum::<usize>(),
        serde_json::Value::Object(members) => {
            members.values().map(|member| 1 + names_and_values(member)).sum()
        }
        _ => 0,
    }
}

/// A URL that passes the strict rules is http or https, and its host is not a private address.
pub fn address(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(url) = parse_url(text) else { return };
    let rules = EgressRules {
        mode: EgressMode::Strict,
        hosts: Vec::new(),
        blocked_hosts: Vec::new(),
        blocked_ports: vec![25],
        guard_private: Guard::On,
        guard_metadata: Guard::On,
    };
    if rules.judge_host(&url).is_ok() {
        assert!(matches!(url.scheme(), "http" | "https"));
        assert!(url.username().is_empty() && url.password().is_none());
        let host = url.host_str().unwrap_or_default();
        // `127.example` is a name; its address is checked after resolution.
        if let Ok(address) = host.parse::<std::net::Ipv4Addr>() {
            assert!(!address.is_loopback() && !address.is_private() && !address.is_link_local(), "{host}");
        }
        assert_ne!(host, "[::1]");
    }
}

/// Any bytes: redaction is idempotent, keeps lines, and does not depend on piece boundaries.
pub fn secrets(data: &[u8]) {
    let detector = toolgate_secrets::Detector::shipped().expect("the shipped rules are valid");
    let _ = detector.contains(data, toolgate_secrets::Tier::Possible);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let once = detector.redact(text, toolgate_secrets::Tier::Probable).text;
    assert_eq!(once.matches('\n').count(), text.matches('\n').count());
    assert_eq!(detector.redact(&once, toolgate_secrets::Tier::Probable).text, once);
    let mut stream = detector.stream(toolgate_secrets::Tier::Probable);
    let (front, back) = data.split_at(data.len() / 3);
    let mut out = stream.push(front);
    out.extend(stream.push(back));
    out.extend(stream.finish().0);
    assert_eq!(out, once.as_bytes());
}

/// A configuration is read, or refused with reasons; every value of a valid one has an origin.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::parse(text, Path::new("/etc/toolgate"), &|_| None, &Overrides::default()) {
        Ok(config) => assert!(!config.entries().is_empty(), "every key has an entry"),
        Err(errors) => {
            assert!(!errors.is_empty(), "a refusal has a reason");
            assert!(errors.iter().all(|error| !error.to_string().is_empty()));
        }
    }
}

/// No header authenticates a caller without the issuer's key.
pub fn bearer(data: &[u8]) {
    let Ok(header) = http::HeaderValue::from_bytes(data) else { return };
    assert!(who(header).is_none(), "authenticated without a signature");
}

/// The bytes are the claims of a token signed by the issuer. An authenticated caller has a subject of that issuer.
pub fn claims(data: &[u8]) {
    let signed = format!("{}.{}", base64(br#"{"alg":"HS256","typ":"JWT"}"#), base64(data));
    let Ok(signature) = sign(signed.as_bytes(), &EncodingKey::from_secret(SECRET), Signature::HS256) else {
        return;
    };
    let Ok(header) = http::HeaderValue::from_str(&format!("Bearer {signed}.{signature}")) else { return };
    if let Some(identity) = who(header) {
        let subject = &identity.caller.subject;
        assert!(subject.starts_with("jwt:fuzz:"), "{subject}");
        assert!(subject.chars().all(|character| !character.is_control()), "{subject:?}");
    }
}

fn who(header: http::HeaderValue) -> Option<AuthIdentity> {
    let headers = [(http::header::AUTHORIZATION, header)].into_iter().collect();
    let mut asked =
        Box::pin(DOOR.authenticate(&headers, SystemTime::UNIX_EPOCH + Duration::from_hours(500_000)));
    // A local key is available without waiting.
    match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome.ok(),
        Poll::Pending => panic!("asked somebody else"),
    }
}

static DOOR: LazyLock<Authenticator> = LazyLock::new(|| {
    let issuer = IssuerSettings {
        name: "fuzz".to_owned(),
        issuer: "https://issuer.example".to_owned(),
        audiences: BTreeSet::from(["toolgate".to_owned()]),
        algorithms: BTreeSet::from([Algorithm::Hs256]),
        keys: KeySettings::Secret(Secret::new(SECRET)),
        subject_claim: "sub".to_owned(),
        permissions_claim: Some("/realm/roles".to_owned()),
        admin_permission: Some("admin".to_owned()),
        required_scopes: BTreeSet::new(),
        clock_skew: Duration::from_mins(1),
        refresh: Duration::from_mins(10),
        scopes: Vec::new(),
    };
    let settings = AuthSettings { issuers: vec![issuer], ..AuthSettings::default() };
    Authenticator::new(settings).expect("the settings are valid")
});

const SECRET: &[u8] = b"thirty-two bytes of a secret key";

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes are an event stream of an upstream server. Pieces of any size give the same events.
pub fn events(data: &[u8]) {
    let read = |size: usize| {
        let mut parser = EventParser::new(4096);
        let mut events = Vec::new();
        for piece in data.chunks(size) {
            let is_too_large = parser.push(piece).is_err();
            while let Some(event) = parser.next_event() {
                assert!(event.data.len() <= 4096 + 1, "an event exceeds the limit");
                events.push(event);
            }
            if is_too_large {
                return (events, true);
            }
        }
        (events, false)
    };
    assert_eq!(read(1), read(7));
}

/// The bytes are a `WWW-Authenticate` header. Its parts never hold more than the header.
pub fn challenge(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let found = AuthChallenge::parse(401, [&*text]);
    let parts = [&found.resource_metadata, &found.scope, &found.error];
    let length: usize = parts.into_iter().flatten().map(String::len).sum();
    assert!(length <= text.len(), "the challenge grew");
    assert!(found.is_bearer || length == 0, "another scheme was read as a bearer challenge");
}

/// The bytes are a journal file. Verification never accepts it and always ends.
pub fn journal(data: &[u8]) {
    let folder = FOLDER.path().join("journal");
    fs::create_dir_all(&folder).expect("the directory can be created");
    fs::write(folder.join("2026-11-16.jsonl"), data).expect("the file can be written");
    let report = verify(&folder, Some(KEY.public()), None);
    assert!(!report.findings.is_empty(), "an unsigned journal must have findings: {report:?}");
    if let Ok(entries) = toolgate_audit::read(&folder, toolgate_audit::TimeRange::default()) {
        // A reader that never reaches the end would loop.
        assert!(entries.take(data.len() + 2).count() <= data.len() + 1);
    }
}

/// The bytes are a receipt. Without our key it is never valid.
pub fn receipt(data: &[u8]) {
    let Ok(receipt) = serde_json::from_slice::<Receipt>(data) else { return };
    assert!(verify_receipt(&receipt, KEY.public()).is_err(), "an unsigned receipt was accepted");
}

/// The bytes are a secret store. Nothing that was not encrypted with the key is opened.
pub fn secret_store(data: &[u8]) {
    assert!(!toolgate_store::is_vault_of(data, [7; 32]), "a store was opened without its key");
}

static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("the directory can be created"));
static KEY: LazyLock<Key> =
    LazyLock::new(|| Key::open_or_create(&FOLDER.path().join("key")).expect("the key can be created"));
