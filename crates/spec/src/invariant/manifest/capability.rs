//! Checks the capability block: patterns compile, hosts and names are valid, settings have an effect.

use regex::Regex;
use serde_json::{Map, Value};

use super::{environment, regular_expression, report::ManifestReport};
use crate::{
    Finding, HostPattern, Pointer,
    model::{Body, EnvironmentMode, Handler, NetworkAccess, ToolSpec},
};

pub(super) fn check(spec: &ToolSpec, report: &mut ManifestReport<'_>) {
    let at = report.block("capability");
    if report.at(&at).is_none() {
        return;
    }
    values(&at, report);
    network(spec, &at.key("network"), report);
    execution(spec, &at.key("execution"), report);
    data(spec, &at.key("data"), report);
}

/// Checks the values of a block outside a document: shipped defaults and operator overrides. Does not check whether a setting has
/// an effect, because that depends on the tool.
pub(crate) fn check_standalone(block: &Map<String, Value>, findings: &mut Vec<Finding>) {
    values(&Pointer::root(), &mut ManifestReport::new(block, findings));
}

fn values(at: &Pointer, report: &mut ManifestReport<'_>) {
    let dangers = at.key("approval").key("dangerPatterns");
    for list in [&dangers, &at.key("audit").key("redactPatterns")] {
        for (at, text) in report.texts(list) {
            pattern(text, &at, report);
        }
    }
    for (index, entry) in report.at(&dangers).and_then(Value::as_array).into_iter().flatten().enumerate() {
        let at = dangers.index(index);
        if let Some(text) = entry.get("pattern").and_then(Value::as_str) {
            pattern(text, &at.key("pattern"), report);
            examples(text, entry, &at, report);
        }
    }
    let network_at = at.key("network");
    for list in [network_at.key("allowedHosts"), network_at.key("blockedHosts")] {
        for (at, host) in report.texts(&list) {
            if let Err(why) = HostPattern::parse(host) {
                report.add(
                    &at,
                    why,
                    "write `api.example.com`, `api.example.com:8443`, `*.example.com`, `docs.*`, an IP address, or `*`",
                );
            }
        }
    }
    for (at, name) in report.texts(&at.key("execution").key("allowedEnvVars")) {
        if !environment::is_name(name) {
            report.add(
                &at,
                format!("`{}` is not an environment variable", name.escape_debug()),
                "use letters, digits and `_`, not beginning with a digit; there are no wildcards",
            );
        }
    }
}

fn pattern(text: &str, at: &Pointer, report: &mut ManifestReport<'_>) {
    if let Some(why) = regular_expression::refuse(text) {
        report.add(
            at,
            format!("unsupported regular expression: {why}"),
            "patterns are linear: no look-around and no backreferences; `(?i)` ignores letter case",
        );
    }
}

/// Runs the examples when the document is loaded, so a wrong pattern is found before it is needed.
fn examples(text: &str, entry: &Value, at: &Pointer, report: &mut ManifestReport<'_>) {
    let Ok(pattern) = Regex::new(text) else { return };
    for (key, expected) in [("hits", true), ("misses", false)] {
        let examples = entry.get(key).and_then(Value::as_array);
        for (index, example) in examples.into_iter().flatten().enumerate() {
            let Some(example) = example.as_str() else { continue };
            if pattern.is_match(example) != expected {
                let does = if expected { "does not match" } else { "matches" };
                report.add(
                    &at.key(key).index(index),
                    format!("`{text}` {does} `{}`", example.escape_debug()),
                    "correct the pattern or the example",
                );
            }
        }
    }
}

/// Rejects a handler timeout above the limit, because the shorter of the two always applies.
pub(super) fn timeouts_agree(handler_ms: u64, at: &Pointer, report: &mut ManifestReport<'_>) {
    let limit = report.at(&Pointer::new("/capability/execution/timeout")).and_then(Value::as_u64);
    if let Some(limit) = limit.filter(|limit| *limit < handler_ms) {
        report.add(
            at,
            format!(
                "the handler may take {handler_ms} ms, but `capability.execution.timeout` stops it at {limit}"
            ),
            "lower the handler's timeout, or raise the other",
        );
    }
}

/// Settings that need `access: limited`. A shipped capability may set that.
fn network(spec: &ToolSpec, at: &Pointer, report: &mut ManifestReport<'_>) {
    let patch = &spec.governance.capability;
    let is_limited = match patch.network.access {
        Some(access) => access == NetworkAccess::Limited,
        None => patch.may_inherit(),
    };
    let asks = patch.network.require_approval_for_unknown_hosts == Some(true);
    let lists = patch.network.allowed_hosts.as_ref().is_some_and(|hosts| !hosts.is_empty());
    for (key, is_given) in [("allowedHosts", lists), ("requireApprovalForUnknownHosts", asks)] {
        if is_given && !is_limited {
            report.add_at_key(
                &at.key(key),
                format!("`{key}` has no effect without `access: limited`"),
                "write `access: limited`, or remove it",
            );
        }
    }
    let has_network = patch.network.access.is_some_and(|access| access != NetworkAccess::None);
    let is_command = matches!(spec.body, Body::Handler(Handler::Cli(_)));
    if patch.network.access_upgradeable.is_some() && (has_network || !is_command) {
        report.add_at_key(
            &at.key("accessUpgradeable"),
            "`accessUpgradeable` has an effect only for commands without network access",
            "remove it, or write `access: none` for a command",
        );
    }
}

fn execution(spec: &ToolSpec, at: &Pointer, report: &mut ManifestReport<'_>) {
    let execution = &spec.governance.capability.execution;
    let (mode_at, list_at) = (at.key("env"), at.key("allowedEnvVars"));
    let lists = execution.allowed_env_vars.as_ref().is_some_and(|names| !names.is_empty());
    if let Body::JavaScript { .. } = spec.body {
        let asks = execution.env.is_some_and(|mode| mode != EnvironmentMode::Clean);
        for (place, key, is_given) in [(&mode_at, "env", asks), (&list_at, "allowedEnvVars", lists)] {
            if is_given {
                let message =
                    format!("`{key}` has an effect only for commands; JavaScript has no environment");
                report.add_at_key(
                    place,
                    message,
                    "remove it; a static variable `${NAME}` reads one variable",
                );
            }
        }
        return;
    }
    let is_explicit = match execution.env {
        Some(mode) => mode == EnvironmentMode::Explicit,
        None => spec.governance.capability.may_inherit(),
    };
    if lists && !is_explicit {
        report.add_at_key(
            &list_at,
            "`allowedEnvVars` has no effect without `env: explicit`",
            "write `env: explicit`, or remove it",
        );
    }
}

/// A tool that generates secrets may return them unredacted; one that reads secrets may not.
fn data(spec: &ToolSpec, at: &Pointer, report: &mut ManifestReport<'_>) {
    let data = &spec.governance.capability.data;
    if data.sanitize_output == Some(false) && data.can_read_secrets == Some(true) {
        report.add(
            &at.key("sanitizeOutput"),
            "the tool can read secrets and its output is not redacted",
            "leave `sanitizeOutput` on, or set `canReadSecrets: false`",
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::{Finding, Format, check_text};

    #[track_caller]
    fn check(document: &str, expect: &[&str]) {
        let findings = check_text(document, Format::Yaml).tools.into_iter().flat_map(|tool| tool.findings);
        let errors = findings.filter(Finding::is_error);
        let places: Vec<String> = errors.map(|finding| finding.at.to_string()).collect();
        assert_eq!(places, expect, "{document}");
    }

    #[test]
    fn settings_without_effect_are_rejected() {
        let javascript = |capability: &str| {
            format!(
                "{{name: t, codeType: Javascript, code: 'return 1;', x-toolgate-capability: {capability}}}"
            )
        };
        let at = |key: &str| format!("/x-toolgate-capability/{key}");
        check(&javascript("{execution: {env: inherit}}"), &[&at("execution/env")]);
        check(
            &javascript("{execution: {env: explicit, allowedEnvVars: [LANG]}}"),
            &[&at("execution/env"), &at("execution/allowedEnvVars")],
        );
        let upgradeable = at("network/accessUpgradeable");
        check(&javascript("{network: {access: none, accessUpgradeable: proxy}}"), &[&upgradeable]);
        check(&javascript("{execution: {env: clean, allowedEnvVars: []}, network: {access: none}}"), &[]);
        // Shipped settings for commands are not the author's mistake.
        check(&javascript("{extends: bash}"), &[]);
        let command = |network: &str| {
            format!(
                "{{name: t, classification: read, handler: {{cli: {{command: date}}}}, capability: {{network: {{{network}}}}}}}"
            )
        };
        for access in ["limited", "full"] {
            let network = format!("access: {access}, accessUpgradeable: proxy");
            check(&command(&network), &["/capability/network/accessUpgradeable"]);
        }
        check(&command("access: none, accessUpgradeable: proxy"), &[]);
        check(&command("accessUpgradeable: proxy"), &[]);
    }
}
