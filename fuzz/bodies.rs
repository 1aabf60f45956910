//! What each fuzz target does with its bytes. Shared with the test that replays the seeds, so that both mean the same.
#![allow(dead_code, reason = "each fuzz target uses one of these")]

use std::sync::LazyLock;

use toolgate_egress::{Guard, Mode, Rules, parse_url};
use toolgate_policy::{PolicySet, rate, resolve};
use toolgate_sandbox::wire::{FromWorker, HEADER, ToWorker};
use toolgate_spec::{
    ArgTemplate, FieldPattern, FileCheck, Format, HostPattern, PathPattern, PathRoots, Template, ToolCheck,
    check, digest, locate,
};

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
    let roots = PathRoots { workspace: "/ws", home: Some("/home/u") };
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
        let _ = pattern.covers(host);
        assert!(pattern.includes(&pattern));
        if let Ok(narrow) = HostPattern::parse(host)
            && pattern.includes(&narrow)
            && narrow.covers("a.example.com")
        {
            assert!(pattern.covers("a.example.com"));
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

/// An address that passes the strict rules is http or https, and no number below which something private hides.
pub fn address(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(url) = parse_url(text) else { return };
    let rules = Rules {
        mode: Mode::Strict,
        hosts: Vec::new(),
        blocked_hosts: Vec::new(),
        blocked_ports: vec![25],
        guard_private: Guard::On,
        guard_metadata: Guard::On,
        literal_addresses: Vec::new(),
    };
    if rules.judge_host(&url).is_ok() {
        assert!(matches!(url.scheme(), "http" | "https"));
        assert!(url.username().is_empty() && url.password().is_none());
        let host = url.host_str().unwrap_or_default();
        assert!(
            !host.starts_with("127.") && !host.starts_with("10.") && !host.starts_with("169.254."),
            "{host}"
        );
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
