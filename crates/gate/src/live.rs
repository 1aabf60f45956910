//! A tool that can be called. Schemas and patterns are compiled once, when the tool is loaded.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use regex::{Regex, RegexSet};
use serde_json::{Map, Value, json};
use toolgate_policy::{
    CedarTool, DistinctMembers, EffectivePolicy, Mask, PermissionRules, Risk, RiskLevel, Wording,
    effective_level, policy_digest, safety_to_json, tool_safety,
};
use toolgate_secrets::Detector;
use toolgate_spec::{
    CompiledSchema, DeniedHelpers, ToolDigest, helpers_of,
    model::{Body, Classification, Handler, NetworkMode, ToolSpec},
    name_looks,
    project::{self, WireTarget, wire_name},
};

use crate::{
    call::{JournalDetail, PreparedJson, RecordFormat, secrets},
    danger::DangerScope,
    patterns::CompiledPatterns,
    ports::Runnable,
};

/// A tool with its effective policy. Immutable: an edit creates another one.
#[derive(Clone, Debug)]
pub struct LiveTool {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) policy: EffectivePolicy,
    pub(crate) wire_name: String,
    /// Normalised forms of the name that detect look-alike names. See `name_looks`.
    looks: BTreeSet<String>,
    pub(crate) digest: String,
    pub(crate) policy_digest: String,
    pub(crate) level: RiskLevel,
    inherent: RiskLevel,
    pub(crate) recorded: Recorded,
    pub(crate) permissions: PermissionRules,
    pub(crate) input: CompiledSchema,
    pub(crate) input_schema: Value,
    pub(crate) output: Option<CompiledSchema>,
    pub(crate) danger: Arc<RegexSet>,
    pub(crate) danger_scope: DangerScope,
    pub(crate) runnable: Arc<dyn Runnable>,
    /// The tool's `redactPatterns`, applied to everything that is journalled.
    pub(crate) redact: Arc<[Regex]>,
    /// The `alertOn` texts.
    alarming: Vec<String>,
    listing: Value,
}

static DANGER: CompiledPatterns<RegexSet> = CompiledPatterns::new();
static REDACT: CompiledPatterns<[Regex]> = CompiledPatterns::new();

/// The parts that are the same in every record of this tool.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub tool: PreparedJson,
    pub safety: PreparedJson,
    pub labels: PreparedJson,
}

impl LiveTool {
    /// Fails if a schema, a pattern or the tool's listing is invalid.
    pub fn new(
        spec: Arc<ToolSpec>,
        digest: ToolDigest,
        policy: EffectivePolicy,
        (risk, wording): (Risk, Wording),
        runnable: Arc<dyn Runnable>,
    ) -> Result<Self, String> {
        let input_schema = project::input_schema(&spec).map_err(|error| error.to_string())?;
        let input =
            CompiledSchema::new(&input_schema).map_err(|error| format!("the input schema: {error}"))?;
        let output = match &spec.governance.output {
            Some(schema) => {
                Some(CompiledSchema::new(schema).map_err(|error| format!("the output schema: {error}"))?)
            }
            None => None,
        };
        let patterns: Vec<&str> = policy.approval.danger_patterns.values().map(AsRef::as_ref).collect();
        let danger = DANGER.get(&patterns, |patterns| RegexSet::new(patterns).map(Arc::new));
        let danger = danger.map_err(|error| format!("a danger pattern: {error}"))?;
        let redact: Vec<&str> = policy.audit.redact_patterns.values().map(AsRef::as_ref).collect();
        let redact =
            REDACT.get(&redact, |patterns| patterns.iter().map(|pattern| Regex::new(pattern)).collect());
        let redact = redact.map_err(|error| format!("a redact pattern: {error}"))?;
        let alarming = policy.audit.alert_on.values().map(ToString::to_string).collect();
        let safety = safety_of(&spec, &policy);
        let level = effective_level(&risk, &policy.approval, wording);
        let listing = listing(&spec, &policy)?;
        let wire_name = wire_name(&spec.name, WireTarget::Mcp).into_owned();
        let digest = digest.to_string();
        let recorded = Recorded {
            tool: tool_in_records(&spec, (&wire_name, &digest), &policy, (risk.level, level)),
            safety: PreparedJson::prepared(safety.clone()),
            labels: PreparedJson::prepared(json!({
                "outputTrust": policy.labels.output_trust.value.name(),
                "outputDataClass": policy.labels.output_data_class.value.name(),
            })),
        };
        Ok(Self {
            looks: name_looks(&wire_name),
            wire_name,
            digest,
            policy_digest: enforced_digest(&policy, &safety),
            danger_scope: DangerScope::of(&spec),
            permissions: PermissionRules::new(&spec.governance.permissions, policy.classification.value),
            spec,
            policy,
            level,
            inherent: risk.level,
            recorded,
            input,
            input_schema,
            output,
            danger,
            runnable,
            redact,
            alarming,
            listing,
        })
    }

    pub fn name(&self) -> &str {
        &self.wire_name
    }

    /// Normalised forms of the name that detect look-alike names.
    pub const fn looks(&self) -> &BTreeSet<String> {
        &self.looks
    }

    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// The effective policy.
    pub const fn policy(&self) -> &EffectivePolicy {
        &self.policy
    }

    /// The `toolSafety` block: the enforced posture, as the journal records it.
    pub fn safety(&self) -> &Value {
        &self.recorded.safety
    }

    /// Whether it is the same document under the same policy.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.digest == other.digest && self.policy_digest == other.policy_digest
    }

    /// Whether this policy would be enforced exactly like the tool's own.
    pub(crate) fn enforces(&self, policy: &EffectivePolicy) -> bool {
        let safety = safety_of(&self.spec, policy);
        enforced_digest(policy, &safety) == self.policy_digest
    }

    /// The same tool with another runner, for a test run away from the workspace.
    pub(crate) fn with_runner(&self, runnable: Arc<dyn Runnable>) -> Self {
        Self { runnable, ..self.clone() }
    }

    /// The properties that the operator's policies can use.
    pub fn for_policies(&self) -> CedarTool<'_> {
        CedarTool {
            name: &self.wire_name,
            spec: &self.spec,
            input_schema: &self.input_schema,
            level: self.level,
            policy: &self.policy,
        }
    }

    /// The permissions without which a caller does not see the tool.
    pub fn permissions_needed(&self) -> Vec<String> {
        self.permissions.missing_always(&BTreeSet::new())
    }

    /// Whether the tool has network access.
    pub fn reaches_out(&self) -> bool {
        self.policy.network.mode.value != NetworkMode::Blocked
    }

    /// Helpers that the tool's code cannot use.
    pub const fn denied_helpers(&self) -> DeniedHelpers {
        DeniedHelpers {
            network: matches!(self.policy.network.mode.value, NetworkMode::Blocked),
            read: !self.policy.files.read.value,
            write: !self.policy.files.write.value,
        }
    }

    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub const fn level(&self) -> RiskLevel {
        self.level
    }

    /// The risk level without the reduction for approvals.
    pub const fn inherent_level(&self) -> RiskLevel {
        self.inherent
    }

    /// The arguments for the journal, if the tool's audit policy or the operator wants them: without secrets, personal
    /// fields and matches of the redact patterns.
    pub(crate) fn journal_arguments(
        &self,
        arguments: &Map<String, Value>,
        how: &RecordFormat,
    ) -> Option<Map<String, Value>> {
        if !self.policy.audit.log_args.value && how.journal_detail == JournalDetail::Digests {
            return None;
        }
        match self.for_journal(Value::Object(arguments.clone()), None, &how.secrets) {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// A value without secrets, personal fields and matches of the redact patterns. Output of the tool is also stripped
    /// of the call's `personal` data.
    pub(crate) fn for_journal(&self, value: Value, personal: Option<&Mask>, secrets: &Detector) -> Value {
        let value = self.without_private(self.runnable.mask().value(value), &mut Vec::new());
        let value = match personal {
            Some(personal) => personal.value(value),
            None => value,
        };
        let looks = self.policy.audit.use_shared_secret_detector.value;
        if looks { secrets::for_journal(secrets, value) } else { value }
    }

    fn without_private(&self, value: Value, path: &mut Vec<String>) -> Value {
        let is_private =
            self.spec.governance.pii_fields.iter().any(|field| field.specificity_at(path).is_some());
        match value {
            _ if is_private => Value::String("***".to_owned()),
            Value::String(text) => Value::String(redact_patterns(&self.redact, text)),
            Value::Number(number)
                if self.redact.iter().any(|pattern| pattern.is_match(&number.to_string())) =>
            {
                Value::String(REDACTED.to_owned())
            }
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.without_private(item, path)).collect())
            }
            Value::Object(members) => {
                // Keys that become equal by redaction are kept apart.
                let mut kept = DistinctMembers::with_capacity(members.len());
                for (key, value) in members {
                    path.push(key);
                    let value = self.without_private(value, path);
                    let key = path.pop().unwrap_or_default();
                    let is_authors = path.is_empty() && self.declares(&key);
                    let key = if is_authors { key } else { redact_patterns(&self.redact, key) };
                    kept.insert(key, value);
                }
                Value::Object(kept.into_members())
            }
            other => other,
        }
    }

    /// Whether the author declared this name as a parameter or a field of the result.
    fn declares(&self, name: &str) -> bool {
        let schemas = [Some(&self.input_schema), self.spec.governance.output.as_ref()];
        let mut properties = schemas.into_iter().flatten().filter_map(|schema| schema.get("properties"));
        properties.any(|properties| properties.get(name).is_some())
    }

    pub(crate) const fn has_alarms(&self) -> bool {
        !self.alarming.is_empty()
    }

    /// The `alertOn` texts that occur in these texts.
    pub(crate) fn alarms_in<'v>(&self, texts: impl IntoIterator<Item = &'v str>) -> Vec<String> {
        if self.alarming.is_empty() {
            return Vec::new();
        }
        let texts: Vec<&str> = texts.into_iter().collect();
        let is_there = |alarming: &&String| texts.iter().any(|text| text.contains(alarming.as_str()));
        self.alarming.iter().filter(is_there).cloned().collect()
    }

    /// The `tools/list` entry, with annotations.
    pub const fn listing(&self) -> &Value {
        &self.listing
    }
}

/// Replaces every match of the patterns by the redaction marker.
pub(crate) fn redact_patterns(patterns: &[Regex], text: String) -> String {
    let blot = |text: String, pattern: &Regex| match pattern.replace_all(&text, REDACTED) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown,
    };
    patterns.iter().fold(text, blot)
}

const REDACTED: &str = "[REDACTED]";

/// The part of a record that describes the tool.
fn tool_in_records(
    spec: &ToolSpec,
    (name, digest): (&str, &str),
    policy: &EffectivePolicy,
    (risk, level): (RiskLevel, RiskLevel),
) -> PreparedJson {
    let mut tool = json!({
        "name": name,
        "id": spec.id.as_str(),
        "digest": digest,
        "classification": policy.classification.value.name(),
        "risk": risk.name(),
        "level": level.name(),
    });
    if let (Some(category), Some(members)) = (&spec.category, tool.as_object_mut()) {
        members.insert("category".into(), category.as_str().into());
    }
    PreparedJson::prepared(tool)
}

/// The `toolSafety` block: what is enforced, as the journal records it.
fn safety_of(spec: &ToolSpec, policy: &EffectivePolicy) -> Value {
    let declared: &[String] = spec
        .claimed_safety
        .as_ref()
        .and_then(|safety| safety.runtime.as_ref())
        .map_or(&[], |runtime| runtime.helpers.as_slice());
    let helpers = match &spec.body {
        Body::JavaScript { code } => helpers_of(code, declared),
        Body::Handler(_) => Vec::new(),
    };
    safety_to_json(&tool_safety(spec, policy, helpers))
}

/// A pass is bound to the document and to this digest: the effective policy, and the runtime with the versions of its
/// helpers.
fn enforced_digest(policy: &EffectivePolicy, safety: &Value) -> String {
    use sha2::{Digest as _, Sha256};
    let text = format!("toolgate enforced 2\n{}\n{safety}", policy_digest(policy));
    let digest = Sha256::digest(text);
    format!("sha256:{}", crate::digest::hex(&digest))
}

/// The `tools/list` entry. Annotations state only facts that Toolgate enforces, never an author's claims.
fn listing(spec: &ToolSpec, policy: &EffectivePolicy) -> Result<Value, String> {
    let mut entry = match project::mcp(spec).map_err(|error| error.to_string())? {
        Value::Object(entry) => entry,
        other => return Ok(other),
    };
    entry.insert("annotations".into(), Value::Object(annotations(spec, policy)));
    Ok(Value::Object(entry))
}

/// Omits unknown facts; clients then assume the worst case.
fn annotations(spec: &ToolSpec, policy: &EffectivePolicy) -> Map<String, Value> {
    let network = &policy.network;
    let is_local = network.mode.value == NetworkMode::Blocked && !network.proxy_on_approval.value;
    let only_gets = match &spec.body {
        Body::Handler(Handler::Http(http)) => matches!(http.method.as_str(), "GET" | "HEAD"),
        Body::Handler(_) | Body::JavaScript { .. } => false,
    };
    let changes = policy.files.write.value || policy.classification.value != Classification::Read;
    let mut annotations = Map::new();
    // The sandbox keeps a local tool from changes. A request to another host may change something there.
    if changes || is_local || only_gets {
        annotations.insert("readOnlyHint".into(), (!changes).into());
    }
    // A tool that writes files can overwrite them.
    if policy.destructive.value || policy.files.write.value {
        annotations.insert("destructiveHint".into(), true.into());
    }
    annotations.insert("openWorldHint".into(), (!is_local).into());
    annotations
}
