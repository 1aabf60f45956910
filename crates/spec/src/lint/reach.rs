//! Checks whether the tool requests more access than it can need.

mod hosts;
mod paths;

use serde_json::{Map, Value};

use super::report::LintReport;
use crate::{
    Code, Pointer,
    model::{ApprovalLevel, Classification, EnvironmentMode, NetworkMode, SandboxKind, ToolSpec, TrustLevel},
};

pub(super) fn check(document: &Map<String, Value>, spec: &ToolSpec, report: &mut LintReport<'_>) {
    let capability = if document.contains_key("handler") { "capability" } else { "x-toolgate-capability" };
    hosts::check(spec, report);
    paths::check(document, spec, capability, report);
    if spec.overrides.network_mode == Some(NetworkMode::Open) {
        report.add(
            Code::LintUnconfined,
            Pointer::new("/sandboxOverrides/networkMode"),
            "`open` reaches private networks and skips the address guard",
            "use `allowlist` and name the hosts, or `strict` for public hosts",
        );
    }
    if let Some(block) = document.get(capability) {
        let capability = Pointer::root().key(capability);
        missing_examples(block, &capability, report);
        hosts::check_capability(spec, &capability.key("network"), report);
        unconfined(spec, &capability, report);
    }
}

/// Danger patterns without examples: a wrong pattern is noticed only when it should have matched. The schema requires
/// examples for patterns written as objects; older documents use plain strings.
fn missing_examples(block: &Value, capability: &Pointer, report: &mut LintReport<'_>) {
    let patterns = block.get("approval").and_then(|approval| approval.get("dangerPatterns"));
    for (index, entry) in patterns.and_then(Value::as_array).into_iter().flatten().enumerate() {
        if !entry.is_string() {
            continue;
        }
        report.add(
            Code::LintPatternUntried,
            capability.key("approval").key("dangerPatterns").index(index),
            "the danger pattern has no examples",
            "write `{pattern: …, hits: […], misses: […]}`; they are tried when the document is loaded",
        );
    }
}

fn unconfined(spec: &ToolSpec, capability: &Pointer, report: &mut LintReport<'_>) {
    let patch = &spec.governance.capability;
    let mut layer = |at: Pointer, say: &str, remedy: &str| report.add(Code::LintUnconfined, at, say, remedy);
    if patch.approval.level == Some(ApprovalLevel::Auto)
        && spec.governance.classification.is_some_and(|class| class > Classification::Read)
    {
        layer(
            capability.key("approval").key("level"),
            "the tool changes data without approval",
            "use `ask` or `always`; the operator may still lower it",
        );
    }
    if patch.labels.output_trust.is_some_and(|trust| trust > TrustLevel::User) {
        layer(
            capability.key("labels").key("outputTrust"),
            "the tool's output is trusted like system text",
            "use `untrusted`, or `user` for the user's own files",
        );
    }
    if patch.execution.sandbox == Some(SandboxKind::None) {
        layer(
            capability.key("execution").key("sandbox"),
            "`none` does not remove isolation: the tool runs as with `process`, but is rated as if it had no sandbox",
            "use `process` or `container`",
        );
    }
    if patch.execution.env == Some(EnvironmentMode::Inherit) {
        layer(
            capability.key("execution").key("env"),
            "the tool sees the gateway's environment, except variables known to be secret or to load code",
            "use `explicit` and name the variables in `allowedEnvVars`",
        );
    }
    if patch.network.block_private_ips == Some(false) {
        layer(
            capability.key("network").key("blockPrivateIPs"),
            "the tool may reach private networks",
            "leave the guard on; name an internal host in `allowedHosts` if needed",
        );
    }
    if patch.network.block_metadata == Some(false) {
        layer(
            capability.key("network").key("blockMetadata"),
            "the tool may reach the cloud's metadata endpoint, which hands out credentials",
            "leave the guard on",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(document: &Value, expect: &[(Code, &str)]) {
        let document = document.as_object().unwrap();
        let spec = crate::decode::tool(document, &mut Vec::new());
        let mut findings = Vec::new();
        super::check(document, &spec, &mut LintReport::new(&mut findings));
        let found: Vec<_> = findings.iter().map(|finding| (finding.code, finding.at.as_str())).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn danger_patterns_need_examples() {
        let of = |patterns: &Value| {
            serde_json::json!({
                "name": "t", "code": "", "x-toolgate-capability": { "approval": { "dangerPatterns": patterns } },
            })
        };
        let whole = serde_json::json!({ "pattern": "a", "hits": ["a"], "misses": ["b"] });
        check(&of(&serde_json::json!([whole])), &[]);
        let patterns = serde_json::json!(["a", whole, "b"]);
        let at = |place: &'static str| (Code::LintPatternUntried, place);
        check(
            &of(&patterns),
            &[
                at("/x-toolgate-capability/approval/dangerPatterns/0"),
                at("/x-toolgate-capability/approval/dangerPatterns/2"),
            ],
        );
    }

    fn overrides(overrides: &Value) -> Value {
        serde_json::json!({ "name": "t", "code": "", "sandboxOverrides": overrides })
    }

    #[test]
    fn hosts() {
        let of = |mode: &str, hosts: &[&str]| {
            overrides(&serde_json::json!({ "networkMode": mode, "hostsAllow": hosts }))
        };
        check(&of("allowlist", &["api.upbit.com", "*.github.com"]), &[]);
        check(
            &of("allowlist", &["*", "*.com", "*.co.uk", "docs.*", "*.github.io"]),
            &[(Code::LintWildcardHost, "/sandboxOverrides/hostsAllow")],
        );
        check(&of("allowlist", &[]), &[(Code::LintHostsUnused, "/sandboxOverrides/networkMode")]);
        check(&of("strict", &["a.example"]), &[(Code::LintHostsUnused, "/sandboxOverrides/hostsAllow")]);
        check(
            &of("open", &[]),
            &[
                (Code::LintWildcardHost, "/sandboxOverrides/networkMode"),
                (Code::LintUnconfined, "/sandboxOverrides/networkMode"),
            ],
        );
        check(
            &overrides(&serde_json::json!({ "hostsAllow": ["a.example"] })),
            &[(Code::LintHostsUnused, "/sandboxOverrides/hostsAllow")],
        );
    }

    #[test]
    fn capability_network() {
        let of = |network: Value| serde_json::json!({ "name": "t", "handler": {}, "capability": { "network": network } });
        check(&of(serde_json::json!({ "access": "limited", "allowedHosts": ["api.example.com"] })), &[]);
        check(
            &of(serde_json::json!({ "access": "limited", "allowedHosts": ["*.net"] })),
            &[(Code::LintWildcardHost, "/capability/network/allowedHosts")],
        );
        check(
            &of(serde_json::json!({ "access": "limited" })),
            &[(Code::LintHostsUnused, "/capability/network/access")],
        );
        check(
            &of(serde_json::json!({ "access": "none", "allowedHosts": ["a.example"] })),
            &[(Code::LintHostsUnused, "/capability/network/allowedHosts")],
        );
        check(
            &of(serde_json::json!({ "blockPrivateIPs": false, "blockMetadata": false })),
            &[
                (Code::LintUnconfined, "/capability/network/blockPrivateIPs"),
                (Code::LintUnconfined, "/capability/network/blockMetadata"),
            ],
        );
    }

    #[test]
    fn layers() {
        check(
            &serde_json::json!({ "name": "t", "code": "", "x-toolgate-capability": {
                "execution": { "sandbox": "none", "env": "inherit", "allowedPaths": ["$WORKSPACE", "/etc/**"] },
            } }),
            &[
                (Code::LintBroadPath, "/x-toolgate-capability/execution/allowedPaths"),
                (Code::LintUnconfined, "/x-toolgate-capability/execution/sandbox"),
                (Code::LintUnconfined, "/x-toolgate-capability/execution/env"),
            ],
        );
    }
}
