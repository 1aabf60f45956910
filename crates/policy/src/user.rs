//! The operator's overrides for single tools: `{tools: {NAME: {capability: {…}}}}`, as YAML or JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolgate_spec::{
    Format, capability_from_value,
    model::{CapabilityPatch, ToolId, ToolSpec},
    value_from_text,
};

use crate::PolicyError;

/// Overrides by tool name or id, validated like a document's capability block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserOverrides {
    tools: BTreeMap<String, CapabilityPatch>,
}

impl UserOverrides {
    /// Parses a file and returns all errors. A file with an error overrides nothing.
    pub fn parse(text: &str, format: Format) -> Result<Self, Vec<PolicyError>> {
        let value = value_from_text(text, format)
            .map_err(|finding| vec![PolicyError::new("overrides", finding.message)])?;
        let mut errors = Vec::new();
        let mut tools = BTreeMap::new();
        for (name, entry) in tool_entries(&value, &mut errors) {
            let at = format!("/tools/{name}");
            if let Some(capability) = only_member(entry, "capability", &at, &mut errors)
                && let Some(patch) = patch(capability, &format!("{at}/capability"), &mut errors)
            {
                let entry = if ToolId::is_uuid(name) { name.to_ascii_lowercase() } else { name.clone() };
                tools.insert(entry, patch);
            }
        }
        if errors.is_empty() { Ok(Self { tools }) } else { Err(errors) }
    }

    /// The override of a tool, by name or id. `Err` with both entries if there are two.
    pub fn for_tool(&self, spec: &ToolSpec) -> Result<Option<&CapabilityPatch>, [&str; 2]> {
        let of = |entry: &str| self.tools.get_key_value(entry).filter(|(entry, _)| spec.is_named_by(entry));
        match (of(&spec.name), of(&spec.id.as_str().to_ascii_lowercase())) {
            (Some((name, _)), Some((id, _))) if name != id => Err([name, id]),
            (by_name, by_id) => Ok(by_name.or(by_id).map(|(_, patch)| patch)),
        }
    }

    /// The names of all entries. An entry without a tool is probably a typo and worth a warning.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }
}

fn tool_entries<'v>(value: &'v Value, errors: &mut Vec<PolicyError>) -> Vec<(&'v String, &'v Value)> {
    match only_member(value, "tools", "", errors) {
        Some(Value::Object(tools)) => tools.iter().collect(),
        Some(_) => {
            errors.push(refuse("/tools", "expected an object of tool names"));
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The only member that an object must and may have.
fn only_member<'v>(
    value: &'v Value,
    key: &str,
    at: &str,
    errors: &mut Vec<PolicyError>,
) -> Option<&'v Value> {
    let Value::Object(members) = value else {
        errors.push(refuse(at, &format!("expected an object with `{key}`")));
        return None;
    };
    for unknown in members.keys().filter(|known| *known != key) {
        errors.push(refuse(at, &format!("unknown key `{unknown}`; only `{key}` is allowed here")));
    }
    let member = Map::get(members, key);
    if member.is_none() {
        errors.push(refuse(at, &format!("`{key}` is missing")));
    }
    member
}

fn patch(capability: &Value, at: &str, errors: &mut Vec<PolicyError>) -> Option<CapabilityPatch> {
    let patch = match capability_from_value(capability) {
        Ok(patch) => patch,
        Err(findings) => {
            errors.extend(findings.iter().map(|finding| {
                refuse(
                    &format!("{at}{}", finding.at.as_str()),
                    &format!("{}; {}", finding.message, finding.remedy),
                )
            }));
            return None;
        }
    };
    if patch.extends.is_some() {
        errors.push(refuse(at, "`extends` is allowed in documents only; write the settings instead"));
    }
    Some(patch)
}

fn refuse(at: &str, message: &str) -> PolicyError {
    let at = if at.is_empty() { "(document)" } else { at };
    PolicyError::new("overrides", format!("{at}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let format = if text.starts_with('{') { Format::Json } else { Format::Yaml };
        let shown = match UserOverrides::parse(text, format) {
            Ok(overrides) => overrides.tool_names().collect::<Vec<_>>().join(" "),
            Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
        };
        assert_eq!(shown, expect);
    }

    #[test]
    fn tool_is_found_by_name_and_by_id() {
        let id = "0F9C2BA4-e88f-4f6a-9c3d-2b1a7c7f0d11";
        let spec =
            crate::testing::spec(&crate::testing::js(&format!("{{toolId: {}}}", id.to_ascii_lowercase())));
        let named = |entries: &[&str]| {
            let tools: Vec<String> =
                entries.iter().map(|entry| format!("'{entry}': {{capability: {{}}}}")).collect();
            let overrides =
                UserOverrides::parse(&format!("tools: {{{}}}", tools.join(", ")), Format::Yaml).unwrap();
            overrides.for_tool(&spec).map(|patch| patch.is_some()).map_err(|entries| entries.join(" "))
        };
        assert_eq!(named(&[&spec.name]), Ok(true));
        assert_eq!(named(&[id]), Ok(true));
        assert_eq!(named(&["other"]), Ok(false));
        assert_eq!(named(&[&spec.name, id]), Err(format!("{} {}", spec.name, id.to_ascii_lowercase())));
    }

    #[test]
    fn both_formats_are_read() {
        check("tools: {a: {capability: {approval: {level: ask}}}}", "a");
        check(r#"{"tools": {"a": {"capability": {}}, "b": {"capability": {"data": null}}}}"#, "a b");
        check("tools: {}", "");
    }

    #[test]
    fn every_mistake_is_an_error() {
        check(
            "tool: {}",
            "overrides: (document): unknown key `tool`; only `tools` is allowed here | overrides: (document): `tools` is missing",
        );
        check(
            "tools: {a: {capabilty: {}}}",
            "overrides: /tools/a: unknown key `capabilty`; only `capability` is allowed here | overrides: /tools/a: `capability` is missing",
        );
        check(
            "tools: {a: {capability: {network: {acces: none}}}}",
            "overrides: /tools/a/capability/network/acces: unknown key `acces`; did you mean `access`?",
        );
        check(
            "tools: {a: {capability: {approval: {dangerPatterns: ['(']}}}}",
            "overrides: /tools/a/capability/approval/dangerPatterns/0: unsupported regular expression: \
             unclosed group; patterns are linear: no look-around and no backreferences; `(?i)` ignores letter case",
        );
        check(
            "tools: {a: {capability: {network: {allowedHosts: ['ex\u{430}mple.com']}}}}",
            "overrides: /tools/a/capability/network/allowedHosts/0: a host must be ASCII; use its `xn--` form; \
             write `api.example.com`, `api.example.com:8443`, `*.example.com`, `docs.*`, an IP address, or `*`",
        );
        check(
            "tools: {a: {capability: {extends: read}}}",
            "overrides: /tools/a/capability: `extends` is allowed in documents only; write the settings instead",
        );
        check("tools: {a: null}", "overrides: /tools/a: expected an object with `capability`");
        check("tools: [a]", "overrides: /tools: expected an object of tool names");
    }

    #[test]
    fn duplicate_key_is_rejected_in_both_formats() {
        for (text, format) in [
            ("tools: {a: {capability: {}}, a: {capability: {}}}", Format::Yaml),
            (r#"{"tools": {}, "tools": {}}"#, Format::Json),
        ] {
            assert!(UserOverrides::parse(text, format).is_err(), "{text}");
        }
    }
}
