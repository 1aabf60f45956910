//! What each fuzz target does with its bytes. Shared with the test that replays the seeds, so that both mean the same.
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
use toolgate_egress::{Guard, EgressMode, EgressRules, parse_url};
use toolgate_policy::{PolicySet, rate, resolve};
use toolgate_sandbox::wire::{FromWorker, HEADER, ToWorker};
use toolgate_server::{
    Algorithm, AuthSettings, Authenticator, Identity, IssuerSettings, KeySettings, Secret,
};
use toolgate_spec::{
    ArgTemplate, FieldPattern, FileCheck, Format, HostPattern, PathPattern, PathRoots, Template, ToolCheck,
    check, digest, locate,
};

/// Not a name of the crate's: what a result is counted by is nobody else's business.
#[path = "../crates/handlers/src/js/values.rs"]
mod values;

pub fn document_json(data: &[u8]) {
    judge(data, Format::Json);
}

pub fn document_yaml(data: &[u8]) {
    judge(data, Format::Yaml);
}

/// Reaches the handlers quickly: the bytes are the handler, in a manifest that is otherwise sound.
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
        assert!(!covered || !path.split('/').any(|part| part == ".."), "a climbing path is never covered");
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
        assert!(!pattern.matches(&path) || pattern.matches(&below), "what is below is matched too");
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

/// An edit changes what it was asked to and nothing else, or refuses.
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
    LazyLock::new(|| PolicySet::shipped().expect("what is shipped is sound"));

fn judge(data: &[u8], format: Format) {
    let FileCheck { tools, mut findings, .. } = check(data, format);
    for ToolCheck { spec, document, findings: of_tool, .. } in tools {
        if let Some(spec) = spec {
            assert!(!of_tool.iter().any(toolgate_spec::Finding::is_error), "a sound spec has no errors");
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
            assert!(span.start <= span.end && text.get(span.range()).is_some(), "a place lies in the text");
        }
    }
}

/// The first byte is the frame's kind. What decodes encodes to the same bytes: no two frames mean one thing.
pub fn frame(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else { return };
    if let Ok(frame) = FromWorker::decode(*kind, body) {
        let bytes = frame.encode().expect("what was read can be written");
        assert_eq!(bytes.get(HEADER..), Some(body));
    }
    let _ = ToWorker::decode(*kind, body);
}

/// The bytes are what a tool returned. It is counted before it is read, and never holds more than was counted.
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

/// An address that passes the strict rules is http or https, and no number below which something private hides.
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
        // `127.example` is a name; what it leads to is judged when it is resolved.
        if let Ok(address) = host.parse::<std::net::Ipv4Addr>() {
            assert!(!address.is_loopback() && !address.is_private() && !address.is_link_local(), "{host}");
        }
        assert_ne!(host, "[::1]");
    }
}

/// Any bytes: redacted twice is redacted once, lines stay, and a cut anywhere changes nothing.
pub fn secrets(data: &[u8]) {
    let detector = toolgate_secrets::Detector::shipped().expect("the shipped rules are sound");
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

/// A configuration is read or refused with its reasons; one that was read knows where each value comes from.
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

/// Whatever stands in the header, nobody gets in without the issuer's key.
pub fn bearer(data: &[u8]) {
    let Ok(header) = http::HeaderValue::from_bytes(data) else { return };
    assert!(who(header).is_none(), "let in without a signature");
}

/// The bytes are the claims of a token that is signed by the issuer. Who is let in has a subject of that issuer's.
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

fn who(header: http::HeaderValue) -> Option<Identity> {
    let headers = [(http::header::AUTHORIZATION, header)].into_iter().collect();
    let mut asked =
        Box::pin(DOOR.authenticate(&headers, SystemTime::UNIX_EPOCH + Duration::from_hours(500_000)));
    // A key that is at hand needs no waiting.
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
    Authenticator::new(settings).expect("the settings are sound")
});

const SECRET: &[u8] = b"thirty-two bytes of a secret key";

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes are a file of the journal. It is never taken for one that is whole, and never lost in.
pub fn journal(data: &[u8]) {
    let folder = FOLDER.path().join("journal");
    fs::create_dir_all(&folder).expect("a folder can be made");
    fs::write(folder.join("2026-11-16.jsonl"), data).expect("a file can be written");
    let report = verify(&folder, Some(KEY.public()), None);
    assert!(!report.findings.is_empty(), "nothing here was signed, and nothing is found: {report:?}");
    if let Ok(entries) = toolgate_audit::read(&folder, toolgate_audit::Span::default()) {
        // A file without an end in sight would be a reader that does not move on.
        assert!(entries.take(data.len() + 2).count() <= data.len() + 1);
    }
}

/// The bytes are a receipt. Without our key none is good.
pub fn receipt(data: &[u8]) {
    let Ok(receipt) = serde_json::from_slice::<Receipt>(data) else { return };
    assert!(verify_receipt(&receipt, KEY.public()).is_err(), "a receipt that nobody signed is believed");
}

static FOLDER: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a folder can be made"));
static KEY: LazyLock<Key> =
    LazyLock::new(|| Key::open_or_create(&FOLDER.path().join("key")).expect("a key can be made"));
