use std::sync::LazyLock;

use proptest::prelude::*;
use toolgate_spec::{CompiledSchema, Format, value_from_text};

use super::*;
use crate::{
    Config,
    shape::TextShape,
    testing::{compare, parse, show},
};

#[test]
fn committed_schema_is_up_to_date() {
    compare("schemas/config.json", |_| serde_json::to_string_pretty(&schema()).unwrap() + "\n");
}

#[test]
fn schema_and_parser_accept_the_same_documents() {
    for text in GOOD {
        let document = format!("version: 1\n{text}");
        assert!(parse(&document).is_ok(), "{document}\n{}", show(&parse(&document).unwrap_err()));
        assert!(accepted(&document), "the schema rejects\n{document}");
    }
    assert!(accepted(&Config::default_text()));
}

#[test]
fn schema_and_parser_reject_the_same_documents() {
    for text in BAD {
        let document = format!("version: 1\n{text}");
        assert!(parse(&document).is_err(), "{document}");
        assert!(!accepted(&document), "the schema accepts\n{document}");
    }
    for document in ["{}", "version: 2", "version: \"1\"", "[1]", "version: null"] {
        assert!(parse(document).is_err() && !accepted(document), "{document}");
    }
}

/// Tries each key of the table with each of a set of values.
#[test]
fn schema_accepts_whatever_the_parser_accepts() {
    let mut parsed = 0;
    for key in leaves(ROOT, "") {
        for value in VALUES {
            let (section, name) = key.rsplit_once('.').unwrap_or(("", &key));
            let document = section
                .split('.')
                .filter(|part| !part.is_empty())
                .rev()
                .fold(format!("{name}: {value}"), |inside, part| format!("{part}: {{{inside}}}"));
            let document = format!("{{version: 1, {document}}}");
            if parse(&document).is_ok() {
                parsed += 1;
                assert!(accepted(&document), "the schema rejects {document}");
            }
        }
    }
    assert!(parsed > 100, "{parsed}");
}

#[test]
fn every_choice_has_a_variant_in_the_model() {
    fn check(keys: &[ConfigKey], wrap: &dyn Fn(String) -> String) {
        for key in keys {
            match &key.kind {
                ConfigValueKind::Choice(words) => {
                    for word in *words {
                        let document = wrap(format!("{}: {word}", key.name));
                        assert!(parse(&document).is_ok(), "{document}");
                    }
                }
                ConfigValueKind::Section(keys) => {
                    check(keys, &|inside| wrap(format!("{}: {{{inside}}}", key.name)));
                }
                _ => {}
            }
        }
    }
    check(ROOT, &|inside| format!("{{version: 1, {inside}}}"));
    for algorithm in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"] {
        assert!(parse(&issuer(&format!("algorithms: [{algorithm}], key: {{jwks_file: k}}"))).is_ok());
    }
    for algorithm in ["HS256", "HS384", "HS512"] {
        assert!(parse(&issuer(&format!("algorithms: [{algorithm}], key: {{secret_env: S}}"))).is_ok());
    }
}

proptest! {
    #[test]
    fn patterns_accept_what_shapes_accept(
        text in "(https?://)?[a-z0-9:/?.@*~$\\[\\]A-Z_-]{1,20}|\\PC{1,10}",
    ) {
        for shape in SHAPES {
            if shape.check(&text).is_ok() {
                let pattern = CompiledSchema::new(&json!({ "pattern": shape.pattern() })).unwrap();
                prop_assert!(pattern.accepts(&json!(text)), "{shape:?} {text:?}");
            }
        }
    }
}

fn accepted(document: &str) -> bool {
    static SCHEMA: LazyLock<CompiledSchema> = LazyLock::new(|| CompiledSchema::new(&schema()).unwrap());
    SCHEMA.accepts(&value_from_text(document, Format::Yaml).unwrap())
}

fn leaves(keys: &[ConfigKey], prefix: &str) -> Vec<String> {
    let leaf = |key: &ConfigKey| match &key.kind {
        ConfigValueKind::Section(keys) => leaves(keys, &format!("{prefix}{}.", key.name)),
        _ => vec![format!("{prefix}{}", key.name)],
    };
    keys.iter().flat_map(leaf).collect()
}

fn issuer(rest: &str) -> String {
    format!("{{version: 1, auth: {{jwt: [{{issuer: i, audience: a, {rest}}}]}}}}")
}

const SHAPES: [TextShape; 12] = [
    TextShape::Path,
    TextShape::Address,
    TextShape::PublicUrl,
    TextShape::Host,
    TextShape::Origin,
    TextShape::KeySetUrl,
    TextShape::Endpoint,
    TextShape::Permission,
    TextShape::Scope,
    TextShape::EnvName,
    TextShape::Name,
    TextShape::Words,
];

const VALUES: &[&str] = &[
    "null",
    "true",
    "1",
    "0",
    "-1",
    "100",
    "1000000000",
    "2048",
    "1.5",
    "x",
    "''",
    "' x'",
    "120s",
    "0s",
    "10m",
    "64KiB",
    "[]",
    "[x]",
    "['*']",
    "[1]",
    "{}",
    "{x: 1}",
    "127.0.0.1:1",
    "'[::1]:0'",
    "localhost:9",
    "https://a.example/b",
    "[https://a.example]",
    "L3",
    "by_risk",
    "NAME",
    "[RS256]",
    "every one",
    "ümlaut",
    "./x y",
];

const GOOD: &[&str] = &[
    "",
    "server:\nauth: null\nlog:",
    "workspace: /srv/data\nstate: ../state\ntools: []",
    "server: {listen: '[::1]:0', public_url: 'https://a.example/gate/', max_request: 65536}",
    "server: {listen: 'localhost:80', allowed_hosts: [a.example, 'a.example:8443', '[::1]:1']}",
    "server: {allowed_origins: ['http://localhost:6274', 'chrome-extension://abc']}",
    "auth: {anonymous: {permissions: [read]}}",
    "auth: {anonymous: {}}",
    "auth: {jwt: [{issuer: i, audience: a, key: {jwks_url: 'https://a.example/k?p=q'}}]}",
    "auth: {jwt: [{issuer: i, audience: a, algorithms: [HS256], key: {secret_env: S}, clock_skew: 0s}]}",
    "metrics: {otlp: {endpoint: 'http://collector:4318'}}",
    "worker: {count: 4, isolation: per-call}",
    "catalog: {preset: dev, include: {tags: [text]}, exclude: {names: [a_b]}}",
    "policy: {baseline: null, cedar: [a.cedar]}",
];

const BAD: &[&str] = &[
    "nonsense: 1",
    "server: {lisen: '127.0.0.1:1'}",
    "server: []",
    "server: {listen: 8282}",
    "server: {listen: example.com}",
    "server: {listen: null}",
    "server: {page_size: 0}",
    "server: {page_size: 1001}",
    "server: {page_size: '100'}",
    "server: {header_timeout: 10}",
    "server: {header_timeout: 10 s}",
    "server: {max_request: 1MB}",
    "server: {max_request: 1}",
    "server: {allowed_origins: ['*']}",
    "server: {allowed_origins: ['https://a.example/']}",
    "server: {allowed_origins: https://a.example}",
    "server: {public_url: tools.example.com}",
    "tools: tools",
    "tools: ['']",
    "tools: null",
    "workspace: ''",
    "workspace: ~/x",
    "auth: {tokens: yes}",
    "auth: {anonymous: true}",
    "auth: {local: {permissions: ['*']}}",
    "auth: {jwt: [{issuer: i, audience: a}]}",
    "auth: {jwt: [{issuer: i, key: {jwks_file: k}}]}",
    "auth: {jwt: [{issuer: ' ', audience: a, key: {jwks_file: k}}]}",
    "auth: {jwt: [{issuer: i, audience: a, key: {}}]}",
    "auth: {jwt: [{issuer: i, audience: a, key: {jwks_file: k, pem_file: p}}]}",
    "auth: {jwt: [{issuer: i, audience: a, key: {jwks_file: null}}]}",
    "auth: {jwt: [{issuer: i, audience: a, algorithms: [none], key: {jwks_file: k}}]}",
    "auth: {jwt: [{issuer: i, audience: a, algorithms: [], key: {jwks_file: k}}]}",
    "auth: {jwt: [{issuer: i, audience: a, algorithms: [HS256], key: {secret_env: my-secret}}]}",
    "auth: {jwt: {issuer: i}}",
    "auth: {jwt: [i]}",
    "approvals: {default: never}",
    "approvals: {ask_from: sometimes}",
    "approvals: {ask_from: L0}",
    "limits: {calls: 0}",
    "metrics: {otlp: {}}",
    "log: {level: loud}",
];
