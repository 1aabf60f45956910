//! The resources that a test run used, and the grants of the document that are wider than that.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolgate_policy::NetworkPolicy;
use toolgate_spec::{
    HostPattern,
    model::{Body, NetworkMode},
};

use super::{narrowest_dir, test_arguments};
use crate::{
    live::LiveTool,
    ports::{EffectEntry, EffectKind, RunReport},
};

/// The resources that one run used. Another input may need more.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    pub hosts: BTreeSet<String>,
    pub read: BTreeSet<String>,
    pub written: BTreeSet<String>,
    /// The narrowest directory with all of these paths, if it can be determined.
    pub folder: Option<String>,
    pub helpers: BTreeSet<String>,
    pub statements: u64,
    pub memory_bytes: u64,
}

impl Observed {
    pub fn of(report: &RunReport) -> Self {
        let mut observed = Self {
            statements: report.usage.statements,
            memory_bytes: report.usage.memory_bytes,
            helpers: report.usage.helpers.iter().map(|helper| (*helper).to_owned()).collect(),
            ..Self::default()
        };
        let used = || report.effects.iter().filter(|effect| is_used(effect));
        observed.folder = narrowest_dir::narrowest(used());
        for effect in used() {
            observed.helpers.insert(effect.what.split(' ').next().unwrap_or_default().to_owned());
            match effect.kind {
                EffectKind::Fetch => observed.hosts.extend(host_of(&effect.target)),
                EffectKind::Read => drop(observed.read.insert(effect.target.clone())),
                EffectKind::Write => {
                    // A copy only reads its source; a move removes it.
                    let is_copy = effect.what == "safety.fs.copy";
                    let taken = if is_copy { &mut observed.read } else { &mut observed.written };
                    taken.insert(effect.target.clone());
                    observed.written.extend(effect.to.clone());
                }
            }
        }
        observed
    }

    pub fn to_json(&self) -> Value {
        json!({
            "hosts": self.hosts,
            "read": self.read,
            "written": self.written,
            "folder": self.folder,
            "helpers": self.helpers,
            "statements": self.statements,
            "memoryBytes": self.memory_bytes,
        })
    }

    /// Reads what `to_json` wrote.
    pub fn from_json(value: &Value) -> Self {
        let set = |name: &str| {
            let items = value.get(name).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let number = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
        Self {
            hosts: set("hosts"),
            read: set("read"),
            written: set("written"),
            folder: value.get("folder").and_then(Value::as_str).map(str::to_owned),
            helpers: set("helpers"),
            statements: number("statements"),
            memory_bytes: number("memoryBytes"),
        }
    }
}

/// A setting of `sandboxOverrides` that grants more than the run used.
#[derive(Clone, Debug, PartialEq)]
pub struct WiderGrant {
    /// The member of `sandboxOverrides`.
    pub setting: &'static str,
    pub declared: String,
    pub used: String,
    /// The value that would have been enough. An empty list removes the setting. Null if the author has to narrow it:
    /// another part of the document says the same, or a caller chose what was used.
    pub enough: Value,
}

/// The grants of the document that are wider than what its run used.
pub fn wider_than_used(tool: &LiveTool, observed: &Observed) -> Vec<WiderGrant> {
    // A command's accesses are limited by its jail and not listed one by one.
    if matches!(tool.spec.body, Body::Handler(_)) {
        return Vec::new();
    }
    let mut wider: Vec<WiderGrant> = wider_network(tool, observed).into_iter().collect();
    wider.extend(unused_files(tool, observed));
    wider.extend(narrowest_dir::wider_base(tool, observed));
    wider.extend(unused_classes(tool));
    wider
}

fn wider_network(tool: &LiveTool, observed: &Observed) -> Option<WiderGrant> {
    let mode = tool.policy.network.mode.value;
    let hosts: Vec<&str> = observed.hosts.iter().map(String::as_str).collect();
    let declared = &tool.spec.overrides.hosts_allow;
    let (setting, declared, enough) = match mode {
        NetworkMode::Blocked => return None,
        _ if hosts.is_empty() => ("networkMode", mode.name().to_owned(), json!("blocked")),
        NetworkMode::Allowlist => {
            let used = used_entries(&tool.policy.network, observed);
            let is_used = |entry: &String| {
                HostPattern::parse(entry).is_ok_and(|entry| used.contains(&entry.to_string()))
            };
            if declared.iter().all(is_used) {
                return None;
            }
            ("hostsAllow", declared.join(", "), json!(used))
        }
        NetworkMode::Strict | NetworkMode::Open => {
            let enough = json!({ "networkMode": "allowlist", "hostsAllow": hosts });
            ("networkMode", mode.name().to_owned(), enough)
        }
    };
    let capability = &tool.spec.governance.capability.network;
    let says_it_twice = capability.access.is_some() || capability.allowed_hosts.is_some();
    let used = match hosts.as_slice() {
        [] => "no host".to_owned(),
        // A host that the caller chose says nothing about other callers.
        hosts if is_callers_choice(tool, observed.hosts.iter()) => {
            let used = format!("{}, chosen by an argument", hosts.join(", "));
            return Some(WiderGrant { setting, declared, used, enough: Value::Null });
        }
        hosts => hosts.join(", "),
    };
    Some(WiderGrant { setting, declared, used, enough: if says_it_twice { Value::Null } else { enough } })
}

/// The hosts of the run, each with the port of the entry that allows it: a narrower list must not open other ports.
fn used_entries(network: &NetworkPolicy, observed: &Observed) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for host in &observed.hosts {
        let before = used.len();
        let entries = network.hosts.values().filter_map(|entry| entry.narrowed_to(host));
        used.extend(entries.map(|entry| entry.to_string()));
        if used.len() == before {
            used.insert(host.clone());
        }
    }
    used
}

/// Whether an argument chose any of these paths or hosts, or a part of one. Then it shows the caller's choice, not the
/// tool's need.
pub(super) fn is_callers_choice<'a>(tool: &LiveTool, mut used: impl Iterator<Item = &'a String>) -> bool {
    let Ok(arguments) = test_arguments(&tool.spec) else { return true };
    let texts: Vec<String> = arguments
        .values()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .filter(|text| !text.is_empty())
        // Hosts are observed in lower case.
        .flat_map(|text| [text.to_lowercase(), text])
        .collect();
    used.any(|used| texts.iter().any(|text| used.contains(text) || text.contains(used)))
}

fn unused_files(tool: &LiveTool, observed: &Observed) -> impl Iterator<Item = WiderGrant> {
    let files = &tool.policy.files;
    let flags = [
        ("fileRead", files.read.value && observed.read.is_empty()),
        ("fileWrite", files.write.value && observed.written.is_empty()),
    ];
    // Paths without the right to use them would contradict each other.
    let uses_none = observed.read.is_empty() && observed.written.is_empty();
    let says_it_twice = uses_none && tool.spec.governance.capability.execution.allowed_paths.is_some();
    flags.into_iter().filter(|(_, is_unused)| *is_unused).map(move |(setting, _)| WiderGrant {
        setting,
        declared: "true".to_owned(),
        used: "no file".to_owned(),
        enough: if says_it_twice { Value::Null } else { json!(false) },
    })
}

/// Host classes are not supported, so no run uses one.
fn unused_classes(tool: &LiveTool) -> impl Iterator<Item = WiderGrant> {
    let overrides = &tool.spec.overrides;
    let lists = [
        ("addAllowClasses", &overrides.add_allow_classes),
        ("removeDenyClasses", &overrides.remove_deny_classes),
    ];
    lists.into_iter().filter(|(_, classes)| !classes.is_empty()).map(|(setting, classes)| WiderGrant {
        setting,
        declared: classes.join(", "),
        used: "no class".to_owned(),
        enough: json!([]),
    })
}

/// The overrides, narrowed to what the run used.
pub fn tightened(overrides: &Map<String, Value>, wider: &[WiderGrant]) -> Map<String, Value> {
    let mut tight = overrides.clone();
    for one in wider {
        match &one.enough {
            Value::Null => {}
            Value::Array(none) if none.is_empty() => drop(tight.shift_remove(one.setting)),
            Value::Object(several) => tight.extend(several.clone()),
            enough => drop(tight.insert(one.setting.to_owned(), enough.clone())),
        }
        // An allow list has an effect in that mode only.
        if tight.get("networkMode").and_then(Value::as_str) == Some("blocked") {
            tight.shift_remove("hostsAllow");
        }
    }
    tight
}

/// A refused access was requested, not used. It must never become a grant.
fn is_used(effect: &EffectEntry) -> bool {
    effect.outcome == "ok" || effect.outcome.bytes().all(|byte| byte.is_ascii_digit())
}

/// The host of a requested URL, without port and credentials.
fn host_of(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(literal) => literal.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ports::RunUsage;

    fn effect(function: &str, target: &str, to: Option<&str>, outcome: &str) -> EffectEntry {
        EffectEntry {
            kind: EffectKind::Write,
            what: format!("safety.fs.{function}"),
            target: target.to_owned(),
            to: to.map(str::to_owned),
            outcome: outcome.to_owned(),
            bytes: 0,
            elapsed: Duration::ZERO,
        }
    }

    #[test]
    fn helpers_of_effects_and_worker_are_merged() {
        let mut report = report(vec![effect("delete", "gone", None, "ok")]);
        report.usage.helpers = vec!["crypto", "safety.parser.html"];
        let expected = ["crypto", "safety.fs.delete", "safety.parser.html"];
        assert_eq!(Observed::of(&report).helpers, BTreeSet::from(expected.map(str::to_owned)));
    }

    fn observed(effects: Vec<EffectEntry>) -> Observed {
        Observed::of(&report(effects))
    }

    fn report(effects: Vec<EffectEntry>) -> RunReport {
        RunReport {
            outcome: Ok(None),
            console: Vec::new(),
            console_dropped: 0,
            effects,
            effects_dropped: 0,
            usage: RunUsage::default(),
            layers: Vec::new(),
            refused: Vec::new(),
            refused_dropped: 0,
            withheld: Vec::new(),
            worker: None,
        }
    }

    #[test]
    fn copy_reads_and_writes_and_move_writes_twice() {
        let seen = observed(vec![
            effect("copy", "from", Some("copied"), "ok"),
            effect("move", "old", Some("new"), "ok"),
            effect("delete", "gone", None, "ok"),
        ]);
        assert_eq!(seen.read, BTreeSet::from(["from".to_owned()]));
        assert_eq!(seen.written, BTreeSet::from(["copied", "gone", "new", "old"].map(str::to_owned)));
    }

    #[test]
    fn refused_and_interrupted_effects_are_not_used() {
        let seen = observed(vec![
            effect("copy", "a", Some("b"), "SECURITY path-blocked"),
            effect("writeText", "c", None, "interrupted"),
        ]);
        assert_eq!(seen, Observed::default());
    }
}
