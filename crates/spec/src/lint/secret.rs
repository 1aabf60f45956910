//! Reports credentials in the strings and keys of a document, with the rules of the crate `secrets`.

use serde_json::{Map, Value};
use toolgate_secrets::{Detector, Encoding, SecretFinding, Tier};
use uuid::Uuid;

use super::{
    report::LintReport,
    show::{listed, shown},
    value_path::{ValuePath, strings_and_keys},
};
use crate::{Code, Pointer, placeholder::Template};

pub(super) fn check(document: &Map<String, Value>, report: &mut LintReport<'_>) {
    let detector = match Detector::shipped() {
        Ok(detector) => detector,
        Err(error) => {
            let message = format!("the secret rules cannot be loaded: {error}");
            report.add_blocking(Code::LintSecretText, Pointer::root(), message, "reinstall Toolgate");
            return;
        }
    };
    let root = ValuePath::Root;
    let is_uuid = |value: &Value| value.as_str().is_some_and(|id| Uuid::try_parse(id).is_ok());
    for (key, value) in document.iter().filter(|(key, value)| *key != "toolId" || !is_uuid(value)) {
        let mut visit = |text: &str, location: &ValuePath<'_>| {
            let is_key = location.is_key(text);
            let mut found = find(&detector, text);
            if found.names.is_empty() && !is_key && is_configuration(key) {
                found.names.extend(location.name().and_then(|name| literal_under(&detector, name, text)));
            }
            if found.names.is_empty() {
                return;
            }
            // The pointer to a key would repeat the secret.
            let at = if is_key { location.parent_pointer() } else { location.pointer() };
            let message = format!("this looks like a secret: {}", listed(&found.names));
            if found.has_known_format || is_shown_to_models(key, location) {
                report.add_blocking(Code::LintSecretText, at, message, REMEDY);
            } else {
                report.add(Code::LintSecretText, at, message, REMEDY);
            }
        };
        let location = root.key(key);
        visit(key, &location);
        strings_and_keys(value, &location, &mut visit);
    }
}

/// Whether MCP clients see the text. There, any suspected secret blocks publishing.
fn is_shown_to_models(key: &str, location: &ValuePath<'_>) -> bool {
    match key {
        "params" => matches!(location.name(), Some("name" | "description")),
        _ => super::poison::SHOWN_TEXTS.contains(&key) || super::poison::SHOWN_TREES.contains(&key),
    }
}

/// Whether the top-level field holds settings, where the key above a value can show that the value is a secret.
fn is_configuration(field: &str) -> bool {
    matches!(field, "staticVariables" | "handler")
}

/// The secrets in one text.
struct TextSecrets {
    /// For the message; never the secret itself.
    names: Vec<String>,
    /// Whether the format of one of them proves that it is a secret.
    has_known_format: bool,
}

fn find(detector: &Detector, text: &str) -> TextSecrets {
    let mut findings = detector.scan(text);
    findings.retain(|finding| finding.tier >= Tier::Probable && !is_aws_sample(text, finding));
    // Proven secrets first: the message lists only the first few.
    findings.sort_by_key(|finding| !has_known_format(finding));
    TextSecrets {
        has_known_format: findings.iter().any(has_known_format),
        names: findings.iter().map(name_of).collect(),
    }
}

/// Names a value that is a secret only because of its key, such as `apiKey`. A `${NAME}` next to the secret does not hide it.
fn literal_under(detector: &Detector, name: &str, value: &str) -> Option<String> {
    let literal = Template::parse(value).map_or_else(|_| value.to_owned(), |template| template.literal());
    let member = format!("{}: {}", Value::from(name), Value::from(literal));
    let is_secret =
        |finding: &SecretFinding| finding.tier >= Tier::Probable && finding.span.end > name.len() + 4;
    detector.scan(&member).iter().any(is_secret).then(|| format!("literal value of `{}`", shown(name)))
}

/// The sample keys in the documentation of AWS end with this word. The word next to a key excuses nothing.
fn is_aws_sample(text: &str, finding: &SecretFinding) -> bool {
    let secret = text.get(finding.span.clone()).unwrap_or_default();
    secret.ends_with("EXAMPLE") || secret.ends_with("EXAMPLEKEY")
}

/// Authorization headers count as proven: their value has no other use.
fn has_known_format(finding: &SecretFinding) -> bool {
    finding.tier == Tier::Definite || matches!(&*finding.rule, "bearer-token" | "basic-authorization")
}

/// For example "github token", "password" or "aws access key (base64)".
fn name_of(finding: &SecretFinding) -> String {
    let kind = finding.kind.replace('-', " ");
    let name = if &*finding.provider == "generic" { kind } else { format!("{} {kind}", finding.provider) };
    match finding.encoding {
        Encoding::Plain => name,
        encoding => format!("{name} ({})", encoding.name()),
    }
}

const REMEDY: &str = "revoke it, store the new one in an environment variable, and refer to it as `${NAME}` from a static variable";

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        find(&Detector::shipped().unwrap(), text).names
    }

    #[track_caller]
    fn check(document: &Value, expect: &[(&str, &str)]) {
        let mut findings = Vec::new();
        let mut report = LintReport::new(&mut findings);
        super::check(document.as_object().unwrap(), &mut report);
        let found: Vec<_> =
            findings.iter().map(|finding| (finding.at.as_str(), finding.message.as_str())).collect();
        assert_eq!(found, expect);
    }

    /// Examples contain a `~`, otherwise secret scanners would report this file.
    fn unbroken(example: &str) -> String {
        example.replace('~', "")
    }

    #[test]
    fn digests_placeholders_and_code_are_not_secrets() {
        for innocent in [
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "commit 9b9a6e92f1c3d4e5a6b7c8d9e0f1a2b3c4d5e6f7",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "550e8400-e29b-41d4-a716-446655440000",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
            "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
            "Authorization: Bearer ${GITHUB_TOKEN}",
            "password: string, at least 12 characters",
            "Pass the api_key = {key} of the account",
            "token: the token that the login tool returned",
            "https://api.example.com/v1/users?token={token}",
            "sk-learn is a library; task-oriented and risk-averse people use it",
            "secret: optional",
            "https://example.com:8080/@user/post",
        ] {
            assert_eq!(names(innocent), [""; 0], "{innocent}");
        }
        for innocent in [
            "const token = await login(user1, pass2)",
            "const password = input.password2 || other1",
            "headers: { 'X-Token': token, Authorization: `Bearer ${apiKey}` }",
            "if (!secret) return { error: 'secret', token: \"not_configured\" }",
            "return { token: 'https://oauth2.googleapis.com/token' }",
        ] {
            assert_eq!(names(innocent), [""; 0], "{innocent}");
        }
    }

    #[test]
    fn documented_sample_keys_are_accepted() {
        for sample in
            ["AKIA~IOSFODNN7EXAMPLE", "aws_secret_access_key = 'wJal~rXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'"]
        {
            assert_eq!(names(&unbroken(sample)), [""; 0], "{sample}");
        }
    }

    #[test]
    fn words_beside_a_key_do_not_excuse_it() {
        let key = unbroken("AKIA~QYLPMN5HXAMPLE7Z");
        for text in [
            format!("example {key}"),
            format!("xxx {key} xxx"),
            format!("data:image/png;base64, {key}"),
            format!("not a secret: '{key}'"),
        ] {
            let found = names(&text);
            assert!(found.iter().any(|name| name == "aws access key id"), "{text}: {found:?}");
        }
    }

    #[test]
    fn live_secret_blocks_publishing() {
        let github = unbroken("gh~p_q7Zk2mVx9TbLw4Rs8NyPd3HcJf6GaE05tdzd");
        let jwt = unbroken(
            "eyJ~hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        );
        let is_blocked = |document: &Value| {
            let mut findings = Vec::new();
            let mut report = LintReport::new(&mut findings);
            super::check(document.as_object().unwrap(), &mut report);
            findings.iter().any(|finding| finding.blocks_publishing)
        };
        for document in [
            serde_json::json!({ "description": format!("uses {github}") }),
            serde_json::json!({ "description": format!("try {jwt}") }),
            serde_json::json!({ "params": [{ "name": "q", "description": "password: 'hunter2horse9'" }] }),
            serde_json::json!({ "input": { "properties": { "q": { "default": github } } } }),
            serde_json::json!({ "code": format!("const key = '{github}'") }),
            serde_json::json!({ "staticVariables": [{ "key": github }] }),
            serde_json::json!({ "params": [{ "name": "q", "testValue": github }] }),
            serde_json::json!({ "toolId": github }),
            serde_json::json!({ github.as_str(): 1 }),
            serde_json::json!({ "staticVariables": [{ github.as_str(): "a" }] }),
            serde_json::json!({ "input": { "properties": { github.as_str(): {} } } }),
        ] {
            assert!(is_blocked(&document), "{document}");
        }
        // A sample token to decode, and a local password in code, are warnings.
        for document in [
            serde_json::json!({ "params": [{ "name": "q", "testValue": jwt }] }),
            serde_json::json!({ "code": "const password = 'hunter2horse9'" }),
            serde_json::json!({ "toolId": "0198c0de-0000-7000-8000-00000000abcd" }),
            serde_json::json!({ "staticVariables": [{ "X-Api-Key-v2": "${KEY}" }] }),
        ] {
            assert!(!is_blocked(&document), "{document}");
        }
    }

    #[test]
    fn pointer_does_not_repeat_a_secret_key() {
        let github = unbroken("gh~p_q7Zk2mVx9TbLw4Rs8NyPd3HcJf6GaE05tdzd");
        check(
            &serde_json::json!({ "staticVariables": [{ github.as_str(): "a" }] }),
            &[("/staticVariables/0", "this looks like a secret: github token")],
        );
    }

    #[test]
    fn suspected_secrets_do_not_hide_a_proven_one() {
        let github = unbroken("gh~p_q7Zk2mVx9TbLw4Rs8NyPd3HcJf6GaE05tdzd");
        for count in [0, 1, 7, 8, 50] {
            let code =
                format!("{}const key = '{github}'", "f({password: 'hunter0horse9zq'});\n".repeat(count));
            let found = find(&Detector::shipped().unwrap(), &code);
            assert!(found.has_known_format, "{count}");
            assert!(found.names.first().is_some_and(|name| name == "github token"), "{count}");
        }
    }

    #[test]
    fn every_field_is_searched_and_values_are_not_repeated() {
        let github = unbroken("gh~p_q7Zk2mVx9TbLw4Rs8NyPd3HcJf6GaE05tdzd");
        check(
            &serde_json::json!({
                "description": format!("uses {github}"),
                "params": [{ "name": "q", "testValue": github }],
                "staticVariables": [{ "apiKey": "k3jh4k5j6h7" }, { "base": "https://a.example/v2" }, { "token": "${T}" }],
                "code": format!("fetch(u, {{ headers: {{ a: '{github}' }} }})"),
                "handler": { "http": { "headers": { "X-Api-Key": "a1b2c3d4e5f6" }, "body": { "clientSecret": "{secret}" } } },
            }),
            &[
                ("/description", "this looks like a secret: github token"),
                ("/params/0/testValue", "this looks like a secret: github token"),
                ("/staticVariables/0/apiKey", "this looks like a secret: literal value of `apiKey`"),
                ("/code", "this looks like a secret: github token"),
                ("/handler/http/headers/X-Api-Key", "this looks like a secret: literal value of `X-Api-Key`"),
            ],
        );
    }

    #[test]
    fn placeholder_excuses_only_itself() {
        let detector = Detector::shipped().unwrap();
        for (value, is_secret) in
            [("${A}", false), ("k3jh4k5j6h7${A}", true), ("{secret}", false), ("Bearer ${T}", false)]
        {
            assert_eq!(literal_under(&detector, "apiKey", value).is_some(), is_secret, "{value}");
        }
    }
}
