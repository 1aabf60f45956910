//! `toolSafety`: the generated record of enforced settings, and mismatches with the document's own record.

use serde_json::{Map, Value, json};
use toolgate_spec::{
    Code, Finding, HostPattern, Pointer,
    model::{
        ApprovalLevel, ApprovalMode, Body, SafetyCapabilities, SafetyCategory, SafetyRuntime, ToolSafety,
        ToolSpec,
    },
};

use crate::{
    effective::EffectivePolicy,
    rate::{Risk, RiskLevel},
};

/// The block for a resolved tool. `helpers` are the helper versions that the tool's code uses.
pub fn tool_safety<H: AsRef<str>>(
    spec: &ToolSpec,
    policy: &EffectivePolicy,
    helpers: impl IntoIterator<Item = H>,
) -> ToolSafety {
    let (id, ecma_version, has_console) = match &spec.body {
        Body::JavaScript { .. } => ("toolgate/quickjs".to_owned(), Some(ECMA_VERSION.to_owned()), true),
        Body::Handler(handler) => (format!("toolgate/{}", handler.name()), None, false),
    };
    ToolSafety {
        version: Some(SAFETY_VERSION.to_owned()),
        runtime: Some(SafetyRuntime {
            id: Some(id),
            min_version: Some(MIN_VERSION.to_owned()),
            ecma_version,
            java_interop: Some(false),
            helpers: helpers.into_iter().map(|helper| helper.as_ref().to_owned()).collect(),
            console: Some(has_console),
        }),
        category: Some(SafetyCategory {
            source: Some(if spec.is_builtin { "builtin" } else { "user" }.to_owned()),
            id: Some(spec.category.clone().unwrap_or_else(|| UNCATEGORIZED.to_owned())),
        }),
        capabilities: Some(SafetyCapabilities {
            network_mode: Some(policy.network.mode.value),
            network_hosts: policy.network.hosts.values().map(ToString::to_string).collect(),
            file_read: Some(policy.files.read.value),
            file_write: Some(policy.files.write.value),
            // Omitted unless true: older readers of the block do not know the field.
            destructive: policy.destructive.value.then_some(true),
        }),
    }
}

/// The JSON form, with fields in the order of the specification.
pub fn safety_to_json(safety: &ToolSafety) -> Value {
    let mut block = Map::new();
    put(&mut block, "version", safety.version.as_ref().map(|version| json!(version)));
    put(&mut block, "runtime", safety.runtime.as_ref().map(runtime_to_json));
    let category = safety.category.as_ref().map(|category| {
        let mut block = Map::new();
        put(&mut block, "source", category.source.as_ref().map(|source| json!(source)));
        put(&mut block, "id", category.id.as_ref().map(|id| json!(id)));
        Value::Object(block)
    });
    put(&mut block, "category", category);
    put(&mut block, "capabilities", safety.capabilities.as_ref().map(capabilities_to_json));
    Value::Object(block)
}

/// Warnings that depend on the resolved policy.
pub fn policy_warnings(spec: &ToolSpec, policy: &EffectivePolicy, risk: &Risk) -> Vec<Finding> {
    let mut findings = safety_mismatch(spec, policy);
    findings.extend(disabled_approval(spec, policy, risk));
    findings
}

/// Warns about `humanInTheLoop: DISABLED` on a risky tool, or if it has no effect.
fn disabled_approval(spec: &ToolSpec, policy: &EffectivePolicy, risk: &Risk) -> Option<Finding> {
    if spec.approval.mode != ApprovalMode::Disabled {
        return None;
    }
    let approval = &policy.approval;
    let warn = |message: String, remedy: &str| {
        Some(Finding::new(Code::LintApprovalDisabled, Pointer::new("/humanInTheLoop/mode"), message, remedy))
    };
    if approval.level.value != ApprovalLevel::Auto {
        let (setting, value) = if approval.level_follows_class {
            ("classification", policy.classification.value.name())
        } else {
            ("approval.level", approval.level.value.name())
        };
        let message = format!("`DISABLED` has no effect: `{setting}: {value}` requires approval");
        return warn(message, "set `approval.level: auto` in the capability, or remove `humanInTheLoop`");
    }
    if risk.level >= RiskLevel::L3 {
        let message = format!("the tool is rated {}, and its calls run without approval", risk.level.name());
        return warn(message, "remove `humanInTheLoop`, or set its mode to `REQUIRED`");
    }
    None
}

/// Differences between the document's record and the resolved policy. The record is never trusted.
pub fn safety_mismatch(spec: &ToolSpec, policy: &EffectivePolicy) -> Vec<Finding> {
    let Some(claimed) = &spec.claimed_safety else { return Vec::new() };
    let mut findings = Vec::new();
    let mut differ = |at: &str, claims: String, resolved: String| {
        findings.push(Finding::new(
            Code::LintSafetyMismatch,
            Pointer::new(format!("/toolSafety/{at}")),
            format!("claims {claims}, but resolves to {resolved}"),
            "remove `toolSafety`, or update it with `toolgate resolve --write-safety`",
        ));
    };
    if claimed.runtime.as_ref().and_then(|runtime| runtime.java_interop) == Some(true) {
        differ("runtime/javaInterop", "`true`".into(), "`false`; there are no host classes".into());
    }
    let Some(capabilities) = &claimed.capabilities else { return findings };
    let mode = policy.network.mode.value;
    if let Some(claims) = capabilities.network_mode
        && claims != mode
    {
        differ("capabilities/network/mode", quoted(claims.name()), quoted(mode.name()));
    }
    let says_hosts = capabilities.network_mode.is_some() || !capabilities.network_hosts.is_empty();
    if says_hosts && !names_the_same(&capabilities.network_hosts, policy) {
        let resolved: Vec<String> = policy.network.hosts.values().map(ToString::to_string).collect();
        differ("capabilities/network/hosts", shown(&capabilities.network_hosts), shown(&resolved));
    }
    let flags = [
        ("capabilities/fileRead", capabilities.file_read, policy.files.read.value),
        ("capabilities/fileWrite", capabilities.file_write, policy.files.write.value),
        ("capabilities/destructive", capabilities.destructive, policy.destructive.value),
    ];
    for (at, claims, resolved) in flags {
        if let Some(claims) = claims
            && claims != resolved
        {
            differ(at, format!("`{claims}`"), format!("`{resolved}`"));
        }
    }
    findings
}

fn names_the_same(claimed: &[String], policy: &EffectivePolicy) -> bool {
    let claimed: Option<Vec<HostPattern>> =
        claimed.iter().map(|host| HostPattern::parse(host).ok()).collect();
    // A host that cannot be parsed cannot match a resolved one.
    let Some(mut claimed) = claimed else { return false };
    let mut resolved: Vec<HostPattern> = policy.network.hosts.values().cloned().collect();
    for hosts in [&mut claimed, &mut resolved] {
        hosts.sort_unstable();
        hosts.dedup();
    }
    claimed == resolved
}

fn shown(hosts: &[String]) -> String {
    if hosts.is_empty() { "no hosts".into() } else { quoted(&hosts.join("`, `")) }
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}

fn runtime_to_json(runtime: &SafetyRuntime) -> Value {
    let mut block = Map::new();
    put(&mut block, "id", runtime.id.as_ref().map(|id| json!(id)));
    put(&mut block, "minVersion", runtime.min_version.as_ref().map(|version| json!(version)));
    put(&mut block, "ecmaVersion", runtime.ecma_version.as_ref().map(|version| json!(version)));
    put(&mut block, "javaInterop", runtime.java_interop.map(Value::Bool));
    put(&mut block, "helpers", Some(json!(runtime.helpers)));
    put(&mut block, "console", runtime.console.map(Value::Bool));
    Value::Object(block)
}

fn capabilities_to_json(capabilities: &SafetyCapabilities) -> Value {
    let mut network = Map::new();
    put(&mut network, "mode", capabilities.network_mode.map(|mode| json!(mode.name())));
    put(&mut network, "hosts", Some(json!(capabilities.network_hosts)));
    let mut block = Map::new();
    put(&mut block, "network", Some(Value::Object(network)));
    put(&mut block, "fileRead", capabilities.file_read.map(Value::Bool));
    put(&mut block, "fileWrite", capabilities.file_write.map(Value::Bool));
    put(&mut block, "destructive", capabilities.destructive.map(Value::Bool));
    Value::Object(block)
}

fn put(block: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        block.insert(key.to_owned(), value);
    }
}

/// The version of the block, not of this program.
const SAFETY_VERSION: &str = "1.0";
const MIN_VERSION: &str = "0.1.0";
const ECMA_VERSION: &str = "2024";
const UNCATEGORIZED: &str = "CUSTOM";

#[cfg(test)]
mod tests;
