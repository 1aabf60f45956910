//! The shipped capabilities that a document can extend.

use std::sync::Arc;

use toolgate_spec::{
    Format, HostPattern, PathPattern, capability_from_value, model::CapabilityPatch, value_from_text,
};

use crate::{
    PolicyError,
    setting::{SettingList, SettingOrigin},
};

/// One set of defaults. The built-in set is empty; the fallbacks in `resolve` apply then.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Defaults {
    pub origin: SettingOrigin,
    pub patch: CapabilityPatch,
    pub danger_patterns: SettingList<Arc<str>>,
    pub ask_for_methods: SettingList<Arc<str>>,
    pub allowed_hosts: Option<SettingList<HostPattern>>,
    pub blocked_hosts: SettingList<HostPattern>,
    pub blocked_ports: SettingList<u16>,
    pub allowed_paths: Option<SettingList<PathPattern>>,
    pub blocked_paths: SettingList<PathPattern>,
    pub allowed_env_vars: SettingList<Arc<str>>,
    pub redact_patterns: SettingList<Arc<str>>,
    pub alert_on: SettingList<Arc<str>>,
}

impl Defaults {
    pub fn builtin() -> Self {
        Self::of(CapabilityPatch::default(), SettingOrigin::Builtin, Vec::new(), None)
    }

    pub fn name(&self) -> Option<&str> {
        match &self.origin {
            SettingOrigin::Defaults(name) => Some(name),
            _ => None,
        }
    }

    fn read(name: &str, text: &str) -> Result<Self, Vec<String>> {
        let value = value_from_text(text, Format::Yaml).map_err(|finding| vec![finding.message])?;
        let patch = capability_from_value(&value).map_err(|findings| {
            findings.iter().map(|finding| format!("{}: {}", finding.at, finding.message)).collect::<Vec<_>>()
        })?;
        let blocked_hosts = hosts(patch.network.blocked_hosts.as_deref().unwrap_or_default())?;
        let allowed_hosts = patch.network.allowed_hosts.as_deref().map(hosts).transpose()?;
        Ok(Self::of(patch, SettingOrigin::Defaults(Arc::from(name)), blocked_hosts, allowed_hosts))
    }

    fn of(
        patch: CapabilityPatch,
        origin: SettingOrigin,
        blocked_hosts: Vec<HostPattern>,
        allowed_hosts: Option<Vec<HostPattern>>,
    ) -> Self {
        let texts = |list: &Option<Vec<String>>| {
            SettingList::of(list.iter().flatten().map(|text| Arc::from(text.as_str())), origin.clone())
        };
        Self {
            danger_patterns: texts(&patch.approval.danger_patterns),
            ask_for_methods: texts(&patch.approval.ask_for_methods),
            allowed_hosts: allowed_hosts.map(|list| SettingList::of(list, origin.clone())),
            blocked_hosts: SettingList::of(blocked_hosts, origin.clone()),
            blocked_ports: SettingList::of(
                patch.network.blocked_ports.iter().flatten().copied(),
                origin.clone(),
            ),
            allowed_paths: patch
                .execution
                .allowed_paths
                .clone()
                .map(|list| SettingList::of(list, origin.clone())),
            blocked_paths: SettingList::of(
                patch.execution.blocked_paths.iter().flatten().cloned(),
                origin.clone(),
            ),
            allowed_env_vars: texts(&patch.execution.allowed_env_vars),
            redact_patterns: texts(&patch.audit.redact_patterns),
            alert_on: texts(&patch.audit.alert_on),
            origin,
            patch,
        }
    }
}

pub(crate) fn shipped(errors: &mut Vec<PolicyError>) -> Vec<Arc<Defaults>> {
    let mut defaults = Vec::new();
    for (name, text) in SHIPPED {
        match Defaults::read(name, text) {
            Ok(read) => defaults.push(Arc::new(read)),
            Err(problems) => errors.extend(
                problems.into_iter().map(|problem| PolicyError::new(format!("defaults:{name}"), problem)),
            ),
        }
    }
    defaults
}

/// `capability_from_value` has validated them. If one still does not parse, report it instead of dropping it.
fn hosts(written: &[String]) -> Result<Vec<HostPattern>, Vec<String>> {
    written.iter().map(|host| HostPattern::parse(host)).collect::<Result<_, _>>().map_err(|why| vec![why])
}

const SHIPPED: [(&str, &str); 6] = [
    ("read", include_str!("../../../profiles/capability/read.yaml")),
    ("web_fetch", include_str!("../../../profiles/capability/web_fetch.yaml")),
    ("write", include_str!("../../../profiles/capability/write.yaml")),
    ("bash", include_str!("../../../profiles/capability/bash.yaml")),
    ("send_message", include_str!("../../../profiles/capability/send_message.yaml")),
    (CapabilityPatch::POLICY_APPROVAL, include_str!("../../../profiles/capability/policy-approval.yaml")),
];

#[cfg(test)]
mod tests;
