//! SARIF 2.1.0, for code scanning services. Findings are streamed; unreadable files are listed at the end.

use std::{
    fmt::Write as _,
    io::{self, Write},
    path::{Component, Path},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolgate_spec::{Code, Severity};

use super::{ReportFormatter, Reported, Summary};
use crate::{load::Unreadable, terminal};

#[derive(Debug, Default)]
pub struct SarifReport {
    written: usize,
    notifications: Vec<Value>,
}

impl ReportFormatter for SarifReport {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let driver = json!({
            "name": "toolgate",
            "informationUri": "https://toolgate.dev",
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": Code::ALL.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
        });
        write!(
            out,
            "{{\"$schema\":\"{SCHEMA}\",\"version\":\"2.1.0\",\"runs\":[{{\"tool\":{{\"driver\":{driver}}},\
             \"columnKind\":\"unicodeCodePoints\",\"results\":["
        )
    }

    fn finding(&mut self, out: &mut dyn Write, reported: &Reported) -> io::Result<()> {
        let comma = if self.written == 0 { "" } else { "," };
        write!(out, "{comma}\n{}", terminal::json(&result(reported)))?;
        self.written += 1;
        Ok(())
    }

    fn unreadable(&mut self, _: &mut dyn Write, unreadable: &Unreadable) -> io::Result<()> {
        self.notifications.push(json!({
            "level": "error",
            "message": { "text": format!("could not be read: {}", unreadable.problem) },
            "locations": [{ "physicalLocation": { "artifactLocation": artifact(&unreadable.file) } }],
        }));
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        let invocation = json!([{
            "executionSuccessful": summary.unreadable == 0,
            "toolExecutionNotifications": std::mem::take(&mut self.notifications),
        }]);
        writeln!(out, "\n],\"invocations\":{}}}]}}", terminal::json(&invocation))
    }
}

fn rule(code: Code) -> Value {
    json!({
        "id": code.name(),
        "shortDescription": { "text": code.title() },
        "fullDescription": { "text": code.explanation() },
        "help": { "text": format!("{}\n\ntoolgate explain {}", code.explanation(), code.name()) },
        "defaultConfiguration": { "level": level(code) },
        "properties": { "tags": ["security"] },
    })
}

fn result(reported: &Reported) -> Value {
    let finding = &reported.finding;
    let index = Code::ALL.iter().position(|code| *code == finding.code).unwrap_or_default();
    let mut location = json!({ "physicalLocation": { "artifactLocation": artifact(&reported.file) } });
    if let (Some(found), Some(physical)) = (&reported.location, location.get_mut("physicalLocation")) {
        set(
            physical,
            "region",
            json!({
                "startLine": found.start.line,
                "startColumn": found.start.column,
                "endLine": found.end.line,
                "endColumn": found.end.column,
            }),
        );
    }
    let mut logical = vec![json!({ "fullyQualifiedName": finding.at.as_str(), "kind": "member" })];
    if let Some(tool) = &reported.tool {
        logical.push(json!({ "name": tool, "kind": "object" }));
    }
    set(&mut location, "logicalLocations", Value::Array(logical));
    let text = if finding.remedy.is_empty() {
        finding.message.clone()
    } else {
        format!("{}\n{}", finding.message, finding.remedy)
    };
    json!({
        "ruleId": finding.code.name(),
        "ruleIndex": index,
        "level": level(finding.code),
        "message": { "text": text },
        "locations": [location],
        "partialFingerprints": { "toolgate/v1": fingerprint(reported) },
    })
}

/// Identifies a finding by code, file, tool, pointer and message, so it survives moved lines.
fn fingerprint(reported: &Reported) -> String {
    let mut hash = Sha256::new();
    let tool = reported.tool.as_deref().unwrap_or_default();
    let finding = &reported.finding;
    for part in [finding.code.name(), &reported.file, tool, finding.at.as_str(), &finding.message] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Relative below the working directory, as services expect; otherwise absolute.
fn artifact(file: &str) -> Value {
    let path = Path::new(file);
    let below =
        std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
    match below {
        Some(relative) => json!({ "uri": uri(&relative), "uriBaseId": "%SRCROOT%" }),
        None if path.is_absolute() => json!({ "uri": format!("file://{}", uri(path)) }),
        None => json!({ "uri": uri(path), "uriBaseId": "%SRCROOT%" }),
    }
}

fn uri(path: &Path) -> String {
    let mut uri = String::from(if path.is_absolute() { "/" } else { "" });
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_string_lossy()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    for (at, part) in parts.enumerate() {
        if at > 0 {
            uri.push('/');
        }
        for byte in part.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                uri.push(char::from(byte));
            } else {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(object) = object {
        object.insert(key.into(), value);
    }
}

fn level(code: Code) -> &'static str {
    match code.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::uri;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri(Path::new("./tools/a b#.json")), "tools/a%20b%23.json");
        assert_eq!(uri(Path::new("/x/ü.json")), "/x/%C3%BC.json");
        assert_eq!(uri(Path::new("../x.json")), "../x.json");
    }
}
