//! Decodes the capability block and the older `policy.approval` that it replaces.

use serde_json::{Map, Value};

use super::{flag, list, object, text, texts};
use crate::{
    Code, Finding, Pointer,
    model::{
        ApprovalLevel, ApprovalPatch, AuditPatch, CapabilityPatch, DataClass, DataPatch, EnvironmentMode,
        ExecutionPatch, LabelsPatch, NetworkAccess, NetworkPatch, SandboxKind, Sensitivity, TrustLevel,
    },
    path_pattern::PathPattern,
};

/// Decodes a capability block that has passed the schema. Also used for shipped defaults and operator overrides.
pub fn capability(
    declared: &Map<String, Value>,
    at: &Pointer,
    findings: &mut Vec<Finding>,
) -> CapabilityPatch {
    CapabilityPatch {
        extends: text(declared, "extends").map(str::to_owned),
        approval: object(declared, "approval").map(approval).unwrap_or_default(),
        data: object(declared, "data").map(data).unwrap_or_default(),
        network: object(declared, "network").map(network).unwrap_or_default(),
        execution: object(declared, "execution")
            .map(|execution| self::execution(execution, &at.key("execution"), findings))
            .unwrap_or_default(),
        audit: object(declared, "audit").map(audit).unwrap_or_default(),
        labels: object(declared, "labels").map(labels).unwrap_or_default(),
    }
}

fn approval(declared: &Map<String, Value>) -> ApprovalPatch {
    ApprovalPatch {
        level: text(declared, "level").and_then(ApprovalLevel::from_name),
        danger_patterns: is_given(declared, "dangerPatterns").then(|| patterns(declared)),
        ask_for_methods: given_texts(declared, "askForMethods"),
        trust_after_approval: flag(declared, "trustAfterApproval"),
    }
}

/// A pattern is a string, or an object with examples.
fn patterns(declared: &Map<String, Value>) -> Vec<String> {
    let pattern =
        |entry: &Value| entry.as_str().or_else(|| entry.get("pattern")?.as_str()).map(str::to_owned);
    list(declared, "dangerPatterns").iter().filter_map(pattern).collect()
}

fn data(declared: &Map<String, Value>) -> DataPatch {
    DataPatch {
        sensitivity: text(declared, "sensitivity").and_then(Sensitivity::from_name),
        can_read_secrets: flag(declared, "canReadSecrets"),
        can_leak_data: flag(declared, "canLeakData"),
        sanitize_output: flag(declared, "sanitizeOutput"),
    }
}

fn network(declared: &Map<String, Value>) -> NetworkPatch {
    let ports = || {
        list(declared, "blockedPorts")
            .iter()
            .filter_map(Value::as_u64)
            .filter_map(|port| u16::try_from(port).ok())
            .collect()
    };
    NetworkPatch {
        access: text(declared, "access").and_then(NetworkAccess::from_name),
        access_upgradeable: text(declared, "accessUpgradeable").map(str::to_owned),
        allowed_hosts: given_texts(declared, "allowedHosts"),
        require_approval_for_unknown_hosts: flag(declared, "requireApprovalForUnknownHosts"),
        blocked_hosts: given_texts(declared, "blockedHosts"),
        blocked_ports: is_given(declared, "blockedPorts").then(ports),
        block_private_ips: flag(declared, "blockPrivateIPs"),
        block_metadata: flag(declared, "blockMetadata"),
    }
}

fn execution(declared: &Map<String, Value>, at: &Pointer, findings: &mut Vec<Finding>) -> ExecutionPatch {
    ExecutionPatch {
        sandbox: text(declared, "sandbox").and_then(SandboxKind::from_name),
        timeout_ms: declared.get("timeout").and_then(Value::as_u64),
        max_output_bytes: declared.get("maxOutputSize").and_then(Value::as_u64),
        allowed_paths: paths(declared, "allowedPaths", at, findings),
        blocked_paths: paths(declared, "blockedPaths", at, findings),
        env: text(declared, "env").and_then(EnvironmentMode::from_name),
        allowed_env_vars: given_texts(declared, "allowedEnvVars"),
    }
}

fn paths(
    declared: &Map<String, Value>,
    key: &str,
    at: &Pointer,
    findings: &mut Vec<Finding>,
) -> Option<Vec<PathPattern>> {
    if !is_given(declared, key) {
        return None;
    }
    let mut patterns = Vec::new();
    for (index, written) in list(declared, key).iter().enumerate() {
        match written.as_str().map(PathPattern::parse) {
            Some(Ok(pattern)) => patterns.push(pattern),
            Some(Err(why)) => findings.push(Finding::new(
                Code::SpecInvariant,
                at.key(key).index(index),
                format!("not a path pattern: {why}"),
                "write an absolute path, or one below `$WORKSPACE` or `$HOME`",
            )),
            None => {}
        }
    }
    Some(patterns)
}

fn audit(declared: &Map<String, Value>) -> AuditPatch {
    AuditPatch {
        log_args: flag(declared, "logArgs"),
        redact_patterns: given_texts(declared, "redactPatterns"),
        log_output: flag(declared, "logOutput"),
        alert_on: given_texts(declared, "alertOn"),
        use_shared_secret_detector: flag(declared, "useSharedSecretDetector"),
    }
}

fn labels(declared: &Map<String, Value>) -> LabelsPatch {
    LabelsPatch {
        output_trust: text(declared, "outputTrust").and_then(TrustLevel::from_name),
        output_data_class: text(declared, "outputDataClass").and_then(DataClass::from_name),
        accepts_untrusted: flag(declared, "acceptsUntrusted"),
    }
}

fn given_texts(declared: &Map<String, Value>, key: &str) -> Option<Vec<String>> {
    is_given(declared, key).then(|| texts(declared, key))
}

/// An empty list is a setting; null and absence are not.
fn is_given(declared: &Map<String, Value>, key: &str) -> bool {
    declared.get(key).is_some_and(Value::is_array)
}
