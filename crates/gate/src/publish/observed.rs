//! What did a run really use, and where is the declaration wider than that?

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolgate_spec::model::{Body, NetworkMode};

use crate::{
    live::LiveTool,
    ports::{EffectKind, RunReport},
};

/// What one run touched. One run is a witness, not a proof: another input may need more.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observed {
    pub hosts: BTreeSet<String>,
    pub read: BTreeSet<String>,
    pub written: BTreeSet<String>,
    pub helpers: BTreeSet<String>,
    pub statements: u64,
    pub memory_bytes: u64,
}

impl Observed {
    pub fn of(report: &RunReport) -> Self {
        let mut observed = Self {
            statements: report.usage.statements,
            memory_bytes: report.usage.memory_bytes,
            ..Self::default()
        };
        // What was refused was asked for, not used: it must never become a grant.
        let is_used = |outcome: &str| outcome == "ok" || outcome.bytes().all(|byte| byte.is_ascii_digit());
        for effect in report.effects.iter().filter(|effect| is_used(&effect.outcome)) {
            observed.helpers.insert(effect.what.split(' ').next().unwrap_or_default().to_owned());
            match effect.kind {
                EffectKind::Fetch => observed.hosts.extend(host_of(&effect.target)),
                EffectKind::Read => drop(observed.read.insert(effect.target.clone())),
                EffectKind::Write => drop(observed.written.insert(effect.target.clone())),
            }
        }
        observed
    }

    pub fn to_json(&self) -> Value {
        json!({
            "hosts": self.hosts,
            "read": self.read,
            "written": self.written,
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
            helpers: set("helpers"),
            statements: number("statements"),
            memory_bytes: number("memoryBytes"),
        }
    }
}

/// A setting of `sandboxOverrides` that grants more than the run used.
#[derive(Clone, Debug, PartialEq)]
pub struct Wider {
    /// The member of `sandboxOverrides`.
    pub setting: &'static str,
    pub declared: String,
    pub used: String,
    /// What would have been enough.
    pub enough: Value,
}

/// Where does the document ask for more than its run used?
pub fn wider_than_used(tool: &LiveTool, observed: &Observed) -> Vec<Wider> {
    // What a command reads and reaches in its jail is bounded there and not seen one by one.
    if matches!(tool.spec.body, Body::Handler(_)) {
        return Vec::new();
    }
    let (network, files) = (&tool.policy.network, &tool.policy.files);
    let mut wider = Vec::new();
    let mode = network.mode.value;
    if mode != NetworkMode::Blocked && observed.hosts.is_empty() {
        wider.push(Wider {
            setting: "networkMode",
            declared: mode.name().to_owned(),
            used: "no host".to_owned(),
            enough: json!("blocked"),
        });
    } else if mode == NetworkMode::Allowlist {
        let declared: Vec<String> = tool.spec.overrides.hosts_allow.clone();
        let enough: Vec<&String> = observed.hosts.iter().collect();
        let unused = declared.iter().any(|host| !observed.hosts.contains(host));
        if unused {
            wider.push(Wider {
                setting: "hostsAllow",
                declared: declared.join(", "),
                used: observed.hosts.iter().cloned().collect::<Vec<_>>().join(", "),
                enough: json!(enough),
            });
        }
    } else if mode != NetworkMode::Blocked {
        let enough: Vec<&String> = observed.hosts.iter().collect();
        wider.push(Wider {
            setting: "networkMode",
            declared: mode.name().to_owned(),
            used: observed.hosts.iter().cloned().collect::<Vec<_>>().join(", "),
            enough: json!({ "networkMode": "allowlist", "hostsAllow": enough }),
        });
    }
    let flags = [
        ("fileRead", files.read.value, observed.read.is_empty()),
        ("fileWrite", files.write.value, observed.written.is_empty()),
    ];
    for (setting, is_granted, is_unused) in flags {
        if is_granted && is_unused {
            wider.push(Wider {
                setting,
                declared: "true".to_owned(),
                used: "no file".to_owned(),
                enough: json!(false),
            });
        }
    }
    wider
}

/// The overrides with everything narrowed that the run did not use.
pub fn tightened(overrides: &Map<String, Value>, wider: &[Wider]) -> Map<String, Value> {
    let mut tight = overrides.clone();
    for one in wider {
        match &one.enough {
            Value::Object(several) => tight.extend(several.clone()),
            enough => drop(tight.insert(one.setting.to_owned(), enough.clone())),
        }
        // An allow list means something in that mode only.
        if tight.get("networkMode").and_then(Value::as_str) == Some("blocked") {
            tight.remove("hostsAllow");
        }
    }
    tight
}

/// The host of an address as it was asked for, without port and credentials.
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
