//! Lists the policy as names and values, for display and for the digest.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolgate_spec::HostPattern;

use crate::{
    effective::EffectivePolicy,
    setting::{Setting, SettingList, SettingOrigin},
};

/// One setting for display. Names are stable; the origin of a list names all its layers.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingView {
    pub name: &'static str,
    pub value: Value,
    pub origin: String,
}

impl EffectivePolicy {
    /// Every setting, in a stable order.
    pub fn settings(&self) -> Vec<SettingView> {
        let mut view = Vec::with_capacity(44);
        self.view_identity(&mut view);
        self.view_network(&mut view);
        self.view_files(&mut view);
        self.view_approval(&mut view);
        self.view_data(&mut view);
        self.view_execution(&mut view);
        self.view_audit(&mut view);
        self.view_labels(&mut view);
        view
    }

    fn view_identity(&self, view: &mut Vec<SettingView>) {
        let profile = self.profile.as_deref();
        view.push(SettingView {
            name: "profile",
            value: json!(profile),
            origin: if profile.is_some() { SettingOrigin::Tool } else { SettingOrigin::Builtin }.to_string(),
        });
        view.push(one("classification", &self.classification, |class| json!(class.name())));
        view.push(flag("destructive", &self.destructive));
        // Toolgate has no host classes, so this is always false.
        view.push(flag("javaInterop", &Setting::new(false, SettingOrigin::Builtin)));
        view.push(list("classes.allow", &self.classes.allow, text));
        view.push(list("classes.deny", &self.classes.deny, text));
    }

    fn view_network(&self, view: &mut Vec<SettingView>) {
        let network = &self.network;
        let host = |host: &HostPattern| json!(host.to_string());
        view.push(one("network.mode", &network.mode, |mode| json!(mode.name())));
        view.push(list("network.hosts", &network.hosts, host));
        view.push(flag("network.askForUnknownHosts", &network.ask_for_unknown_hosts));
        view.push(list("network.blockedHosts", &network.blocked_hosts, host));
        view.push(list("network.blockedPorts", &network.blocked_ports, |port| json!(port)));
        view.push(flag("network.blockPrivateIPs", &network.block_private_ips));
        view.push(flag("network.blockMetadata", &network.block_metadata));
        view.push(flag("network.proxyOnApproval", &network.proxy_on_approval));
    }

    fn view_files(&self, view: &mut Vec<SettingView>) {
        let files = &self.files;
        view.push(flag("files.read", &files.read));
        view.push(flag("files.write", &files.write));
        view.push(one("files.basePath", &files.base_path, text));
        view.push(list("files.allowedPaths", &files.allowed_paths, |path| json!(path.text())));
        view.push(list("files.blockedPaths", &files.blocked_paths, |path| json!(path.text())));
    }

    fn view_approval(&self, view: &mut Vec<SettingView>) {
        let approval = &self.approval;
        view.push(one("approval.level", &approval.level, |level| json!(level.name())));
        view.push(one("approval.askFrom", &approval.ask_from, |from| json!(from.name())));
        view.push(list("approval.dangerPatterns", &approval.danger_patterns, text));
        view.push(list("approval.askForMethods", &approval.ask_for_methods, text));
        view.push(flag("approval.trustAfterApproval", &approval.trust_after_approval));
    }

    fn view_data(&self, view: &mut Vec<SettingView>) {
        let data = &self.data;
        view.push(one("data.sensitivity", &data.sensitivity, |sensitivity| json!(sensitivity.name())));
        view.push(flag("data.canReadSecrets", &data.can_read_secrets));
        view.push(flag("data.canLeakData", &data.can_leak_data));
        view.push(flag("data.sanitizeOutput", &data.sanitize_output));
    }

    fn view_execution(&self, view: &mut Vec<SettingView>) {
        let execution = &self.execution;
        view.push(one("execution.sandbox", &execution.sandbox, |sandbox| json!(sandbox.name())));
        view.push(one("execution.timeoutMs", &execution.timeout_ms, |ms| json!(ms)));
        view.push(one("execution.maxOutputBytes", &execution.max_output_bytes, |bytes| json!(bytes)));
        view.push(one("execution.maxStatements", &execution.max_statements, |most| json!(most)));
        view.push(one("execution.memoryBytes", &execution.memory_bytes, |bytes| json!(bytes)));
        view.push(one("execution.env", &execution.env, |env| json!(env.name())));
        view.push(list("execution.allowedEnvVars", &execution.allowed_env_vars, text));
    }

    fn view_audit(&self, view: &mut Vec<SettingView>) {
        let audit = &self.audit;
        view.push(flag("audit.logArgs", &audit.log_args));
        view.push(flag("audit.logOutput", &audit.log_output));
        view.push(list("audit.redactPatterns", &audit.redact_patterns, text));
        view.push(list("audit.alertOn", &audit.alert_on, text));
        view.push(flag("audit.useSharedSecretDetector", &audit.use_shared_secret_detector));
    }

    fn view_labels(&self, view: &mut Vec<SettingView>) {
        let labels = &self.labels;
        view.push(one("labels.outputTrust", &labels.output_trust, |trust| json!(trust.name())));
        view.push(one("labels.outputDataClass", &labels.output_data_class, |class| json!(class.name())));
        view.push(flag("labels.acceptsUntrusted", &labels.accepts_untrusted));
    }
}

/// SHA-256 over the canonical JSON (RFC 8785) of all setting values. Origins and list order are left out, because they do not
/// change what is enforced.
pub fn policy_digest(policy: &EffectivePolicy) -> String {
    let settings = policy.settings().into_iter().filter(|setting| setting.name != "profile");
    let mut members: Vec<(&str, String)> =
        settings.map(|setting| (setting.name, canonical(&setting.value))).collect();
    members.sort_unstable();
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let mut digest = String::from("sha256:");
    for byte in Sha256::digest(format!("{{{}}}", members.join(","))) {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

/// The canonical JSON of a setting. Lists are sets: each entry allows, forbids or watches for something, wherever in the list it
/// is.
///
/// Written here, because a general serializer takes most of the time in which thousands of tools are loaded.
fn canonical(value: &Value) -> String {
    match value {
        Value::Array(entries) => {
            let mut entries: Vec<String> = entries.iter().map(canonical).collect();
            entries.sort_unstable();
            entries.dedup();
            format!("[{}]", entries.join(","))
        }
        // The plain form of these is canonical already. Integers from 2^53 on have another one.
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
        Value::Number(number) if number.as_i64().is_some_and(|number| number.unsigned_abs() < 1 << 53) => {
            number.to_string()
        }
        // If there is no canonical form, the plain one still tells two policies apart.
        Value::Number(_) | Value::Object(_) => {
            serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| value.to_string())
        }
    }
}

fn one<T>(name: &'static str, setting: &Setting<T>, show: impl Fn(&T) -> Value) -> SettingView {
    SettingView { name, value: show(&setting.value), origin: setting.origin.to_string() }
}

fn text(text: &Arc<str>) -> Value {
    Value::from(text.as_ref())
}

fn flag(name: &'static str, setting: &Setting<bool>) -> SettingView {
    one(name, setting, |value| json!(value))
}

fn list<T>(name: &'static str, listing: &SettingList<T>, show: impl Fn(&T) -> Value) -> SettingView {
    let mut origins: Vec<String> = Vec::new();
    for entry in listing.entries.iter() {
        let origin = entry.origin.to_string();
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
    if origins.is_empty() {
        origins.push(listing.origin.to_string());
    }
    SettingView { name, value: listing.values().map(show).collect(), origin: origins.join("+") }
}

#[cfg(test)]
mod tests;
