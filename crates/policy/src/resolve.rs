//! Resolves the effective policy of a tool: baseline ← profile chain ← capability defaults ← document ← overrides.

mod classes;
mod files;
mod handler_host;
mod layers;
mod network;

use std::sync::Arc;

use toolgate_spec::{
    Code, Finding, Pointer,
    model::{
        ApprovalLevel, ApprovalMode, Body, Classification, DataClass, EnvironmentMode, Handler, NetworkMode,
        SandboxKind, Sensitivity, ToolSpec, TrustLevel,
    },
};

use crate::{
    PolicySet, UserOverrides,
    asking::AskByRisk,
    base_policy::BasePolicy,
    effective::{
        ApprovalPolicy, AuditPolicy, DataPolicy, EffectivePolicy, ExecutionPolicy, FilePolicy, LabelPolicy,
        NetworkPolicy,
    },
    setting::{Setting, SettingOrigin},
};
use layers::Layers;

/// Resolves one tool, or returns all errors. Depends on its arguments only.
pub fn resolve(
    spec: &ToolSpec,
    set: &PolicySet,
    user: Option<&UserOverrides>,
) -> Result<EffectivePolicy, Vec<Finding>> {
    let mut findings = Vec::new();
    let (profile, ground) = ground_of(spec, set, &mut findings);
    let defaults = match spec.governance.capability.extends.as_deref() {
        None => set.builtin(),
        Some(name) => set.defaults(name).unwrap_or_else(|| {
            findings.push(unknown_defaults(spec, set, name));
            set.builtin()
        }),
    };
    let user = user.map_or(Ok(None), |overrides| overrides.for_tool(spec)).unwrap_or_else(|entries| {
        findings.push(two_overrides(spec, entries));
        None
    });
    let layers = Layers { defaults, tool: &spec.governance.capability, user };
    let classes = classes::merge(spec, ground, &mut findings);
    let network = network::resolve(spec, ground, &layers, &mut findings);
    let files = files::resolve(spec, ground, &layers, &mut findings);
    let classification = classification(spec, &files);
    let data = data(&layers, &network);
    refuse_open_secrets(spec, &data, &mut findings);
    refuse_unwatched_sink(spec, &data, &network, &mut findings);
    let labels = labels(spec, &layers, &network, &files, &data);
    let destructive = Setting {
        value: classification.value == Classification::Destructive,
        origin: classification.origin.clone(),
    };
    let policy = EffectivePolicy {
        profile,
        approval: approval(spec, ground, &layers, &classification),
        data,
        execution: execution(spec, ground, &layers),
        audit: audit(&layers),
        labels,
        classification,
        destructive,
        classes,
        network,
        files,
    };
    if findings.is_empty() { Ok(policy) } else { Err(findings) }
}

/// The path of the document's policy block, which depends on its kind.
fn block(spec: &ToolSpec, name: &str) -> Pointer {
    match spec.body {
        Body::JavaScript { .. } => Pointer::new(format!("/x-toolgate-{name}")),
        Body::Handler(_) => Pointer::new(format!("/{name}")),
    }
}

fn reject(at: Pointer, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding::new(Code::ResolverReject, at, message, remedy)
}

fn ground_of<'s>(
    spec: &ToolSpec,
    set: &'s PolicySet,
    findings: &mut Vec<Finding>,
) -> (Option<Arc<str>>, &'s BasePolicy) {
    let Some(name) = spec.governance.profile.as_deref() else { return (None, set.baseline()) };
    if let Some((name, ground)) = set.profile(name) {
        return (Some(Arc::clone(name)), ground);
    }
    let known: Vec<&str> = set.profile_names().collect();
    findings.push(reject(
        block(spec, "profile"),
        format!("unknown profile `{name}`"),
        format!("known profiles: {}", known.join(", ")),
    ));
    (None, set.baseline())
}

fn unknown_defaults(spec: &ToolSpec, set: &PolicySet, name: &str) -> Finding {
    let known: Vec<&str> = set.defaults_names().collect();
    reject(
        block(spec, "capability").key("extends"),
        format!("unknown capability defaults `{name}`"),
        format!("known: {}", known.join(", ")),
    )
}

/// Applies neither override, because they may contradict each other.
fn two_overrides(spec: &ToolSpec, [name, id]: [&str; 2]) -> Finding {
    reject(
        Pointer::root(),
        format!("`{}` has two overrides, under `{name}` and under `{id}`", spec.name),
        "merge them into one entry of the overrides file".to_owned(),
    )
}

/// The declared class, raised if the tool may do more: a label must not lower the guard.
fn classification(spec: &ToolSpec, files: &FilePolicy) -> Setting<Classification> {
    let is_handler = matches!(spec.body, Body::Handler(_));
    let declared = match spec.governance.classification {
        Some(declared) => Setting::new(declared, SettingOrigin::Tool),
        // Without a declaration, assume that the handler changes something.
        None if is_handler => Setting::new(Classification::Write, SettingOrigin::Builtin),
        None => Setting::new(Classification::Read, SettingOrigin::Builtin),
    };
    if spec.overrides.destructive && declared.value < Classification::Destructive {
        return Setting::new(Classification::Destructive, SettingOrigin::Tool);
    }
    if files.write.value && declared.value < Classification::Write {
        return Setting::new(Classification::Write, files.write.origin.clone());
    }
    declared
}

fn approval(
    spec: &ToolSpec,
    ground: &BasePolicy,
    layers: &Layers<'_>,
    class: &Setting<Classification>,
) -> ApprovalPolicy {
    let asks_by_class = matches!(spec.body, Body::Handler(_))
        || spec.governance.classification.is_some()
        || class.value == Classification::Destructive;
    let by_class = match class.value {
        _ if !asks_by_class => ApprovalLevel::Auto,
        Classification::Read => ApprovalLevel::Auto,
        Classification::Write => ApprovalLevel::Ask,
        Classification::Destructive => ApprovalLevel::Always,
    };
    let stated = layers.setting_if_stated(|patch| patch.approval.level);
    let level_follows_class = stated.is_none();
    let mut level = stated.unwrap_or_else(|| Setting::new(by_class, class.origin.clone()));
    // Neither a capability nor an override can remove the author's approval requirement.
    if spec.approval.mode == ApprovalMode::Required && level.value != ApprovalLevel::Always {
        level = Setting::new(ApprovalLevel::Always, SettingOrigin::Tool);
    }
    ApprovalPolicy {
        ask_from: ask_from(spec, ground, layers, &level),
        level_follows_class,
        level,
        danger_patterns: layers
            .extended(&layers.defaults.danger_patterns, |patch| patch.approval.danger_patterns.as_ref()),
        ask_for_methods: layers
            .replaced(&layers.defaults.ask_for_methods, |patch| patch.approval.ask_for_methods.as_ref()),
        trust_after_approval: layers.flag(|patch| patch.approval.trust_after_approval, BuiltinDefaults::OFF),
    }
}

/// Calls require approval by risk, unless `auto`, `DISABLED` or settings inherited with `extends` turn that off.
fn ask_from(
    spec: &ToolSpec,
    ground: &BasePolicy,
    layers: &Layers<'_>,
    level: &Setting<ApprovalLevel>,
) -> Setting<AskByRisk> {
    if level.value != ApprovalLevel::Auto {
        return ground.ask_from.clone();
    }
    if let Some(stated) = layers.setting_if_stated(|patch| patch.approval.level) {
        return Setting::new(AskByRisk::Never, stated.origin);
    }
    if spec.approval.mode == ApprovalMode::Disabled || layers.tool.extends.is_some() {
        return Setting::new(AskByRisk::Never, SettingOrigin::Tool);
    }
    ground.ask_from.clone()
}

fn data(layers: &Layers<'_>, network: &NetworkPolicy) -> DataPolicy {
    let reach = reach(network);
    let said = layers.setting(|patch| patch.data.can_leak_data, reach.clone());
    // Shipped settings refer to the network that they grant, not to one that the document adds.
    let is_outdated = !said.value && reach.value && matches!(said.origin, SettingOrigin::Defaults(_));
    DataPolicy {
        sensitivity: layers.setting(
            |patch| patch.data.sensitivity,
            Setting::new(Sensitivity::Medium, SettingOrigin::Builtin),
        ),
        can_read_secrets: layers.flag(|patch| patch.data.can_read_secrets, BuiltinDefaults::OFF),
        can_leak_data: if is_outdated { reach } else { said },
        sanitize_output: layers.flag(|patch| patch.data.sanitize_output, BuiltinDefaults::ON),
    }
}

/// True if a call can send data to a host, at once or after approval.
fn reach(network: &NetworkPolicy) -> Setting<bool> {
    let is_on_approval = network.mode.value == NetworkMode::Blocked && network.proxy_on_approval.value;
    if is_on_approval {
        return network.proxy_on_approval.clone();
    }
    Setting::new(network.mode.value != NetworkMode::Blocked, network.mode.origin.clone())
}

fn execution(spec: &ToolSpec, ground: &BasePolicy, layers: &Layers<'_>) -> ExecutionPolicy {
    let inherited = match layers.defaults.patch.execution.timeout_ms {
        Some(shipped) => Setting::new(shipped, layers.defaults.origin.clone()),
        None => ground.timeout_ms.clone(),
    };
    let allowed = layers.stated(|patch| patch.execution.timeout_ms);
    // The handler's own limit may be shorter than the allowed one, never longer. If the capability sets none, the handler's
    // limit counts as the document's.
    let timeout_ms = match (handler_timeout(spec), allowed) {
        (Some(handler), Some(allowed)) if allowed.value < handler => allowed,
        (Some(handler), _) => Setting::new(handler, SettingOrigin::Tool),
        (None, allowed) => allowed.unwrap_or(inherited),
    };
    ExecutionPolicy {
        // Code in the embedding program has no sandbox, and reports must not claim one.
        sandbox: layers.setting(
            |patch| patch.execution.sandbox,
            if runs_in_process(spec) {
                Setting::new(SandboxKind::None, SettingOrigin::Tool)
            } else {
                Setting::new(SandboxKind::Process, SettingOrigin::Builtin)
            },
        ),
        timeout_ms,
        max_output_bytes: layers.setting(
            |patch| patch.execution.max_output_bytes,
            Setting::new(DEFAULT_OUTPUT_BYTES, SettingOrigin::Builtin),
        ),
        max_statements: ground.max_statements.clone(),
        memory_bytes: match spec.body {
            Body::JavaScript { .. } => ground.memory_bytes.clone(),
            Body::Handler(_) => ground.command_memory_bytes.clone(),
        },
        env: layers.setting(
            |patch| patch.execution.env,
            Setting::new(EnvironmentMode::Clean, SettingOrigin::Builtin),
        ),
        allowed_env_vars: layers
            .replaced(&layers.defaults.allowed_env_vars, |patch| patch.execution.allowed_env_vars.as_ref()),
    }
}

fn handler_timeout(spec: &ToolSpec) -> Option<u64> {
    let Body::Handler(handler) = &spec.body else { return None };
    match handler {
        Handler::Cli(cli) => cli.timeout_ms,
        Handler::Http(http) => http.timeout_ms,
        Handler::Grpc(grpc) => grpc.timeout_ms,
        Handler::Mcp(mcp) => mcp.timeout_ms,
        Handler::Rust => None,
    }
}

fn audit(layers: &Layers<'_>) -> AuditPolicy {
    AuditPolicy {
        log_args: layers.flag(|patch| patch.audit.log_args, BuiltinDefaults::OFF),
        log_output: layers.flag(|patch| patch.audit.log_output, BuiltinDefaults::OFF),
        redact_patterns: layers
            .replaced(&layers.defaults.redact_patterns, |patch| patch.audit.redact_patterns.as_ref()),
        alert_on: layers.replaced(&layers.defaults.alert_on, |patch| patch.audit.alert_on.as_ref()),
        use_shared_secret_detector: detector(layers),
    }
}

/// The journal belongs to the operator: a document cannot turn off secret detection in it.
fn detector(layers: &Layers<'_>) -> Setting<bool> {
    let said = layers.flag(|patch| patch.audit.use_shared_secret_detector, BuiltinDefaults::ON);
    if said.value || said.origin != SettingOrigin::Tool {
        return said;
    }
    match layers.defaults.patch.audit.use_shared_secret_detector {
        Some(shipped) => Setting::new(shipped, layers.defaults.origin.clone()),
        None => BuiltinDefaults::ON,
    }
}

/// Unredacted output of a tool that reads secrets would leak them. Only overrides may allow it.
fn refuse_open_secrets(spec: &ToolSpec, data: &DataPolicy, findings: &mut Vec<Finding>) {
    let output = &data.sanitize_output;
    if !output.value && output.origin == SettingOrigin::Tool && data.can_read_secrets.value {
        findings.push(reject(
            block(spec, "capability").key("data").key("sanitizeOutput"),
            "the tool can read secrets and its output is not redacted",
            "keep `sanitizeOutput` on, or set `canReadSecrets: false`",
        ));
    }
}

/// Arguments of a tool with network access are searched for secrets. Only overrides may turn that off.
fn refuse_unwatched_sink(
    spec: &ToolSpec,
    data: &DataPolicy,
    network: &NetworkPolicy,
    findings: &mut Vec<Finding>,
) {
    let leaks = &data.can_leak_data;
    if !leaks.value && leaks.origin == SettingOrigin::Tool && reach(network).value {
        findings.push(reject(
            block(spec, "capability").key("data").key("canLeakData"),
            "the tool can reach hosts, but its arguments would not be searched for secrets",
            "remove `canLeakData` or the network access; only the operator's overrides can turn this off",
        ));
    }
}

fn labels(
    spec: &ToolSpec,
    layers: &Layers<'_>,
    network: &NetworkPolicy,
    files: &FilePolicy,
    data: &DataPolicy,
) -> LabelPolicy {
    // Without any reach, untrusted content cannot cause harm.
    let reaches_nothing = network.mode.value == NetworkMode::Blocked
        && !files.read.value
        && !files.write.value
        && !runs_commands(spec)
        && !runs_in_process(spec);
    LabelPolicy {
        output_trust: layers.setting(
            |patch| patch.labels.output_trust,
            Setting::new(TrustLevel::Untrusted, SettingOrigin::Builtin),
        ),
        output_data_class: layers
            .setting(|patch| patch.labels.output_data_class, data_class(&data.sensitivity)),
        accepts_untrusted: layers.setting(
            |patch| patch.labels.accepts_untrusted,
            Setting::new(reaches_nothing, SettingOrigin::Builtin),
        ),
    }
}

/// Unlabelled output is as sensitive as the data that the tool handles, and at least internal.
fn data_class(sensitivity: &Setting<Sensitivity>) -> Setting<DataClass> {
    let class = match sensitivity.value {
        Sensitivity::None | Sensitivity::Low | Sensitivity::Medium => {
            return Setting::new(DataClass::Internal, SettingOrigin::Builtin);
        }
        Sensitivity::High => DataClass::Sensitive,
        Sensitivity::Secret => DataClass::Secret,
    };
    Setting::new(class, sensitivity.origin.clone())
}

/// True if a call starts a program of the host, or uses one that the gateway keeps running.
pub(crate) fn runs_commands(spec: &ToolSpec) -> bool {
    match &spec.body {
        Body::JavaScript { .. } | Body::Handler(Handler::Http(_) | Handler::Grpc(_) | Handler::Rust) => false,
        Body::Handler(Handler::Cli(_) | Handler::Mcp(_)) => true,
    }
}

/// True if the tool is a function of the embedding program.
pub(crate) const fn runs_in_process(spec: &ToolSpec) -> bool {
    matches!(spec.body, Body::Handler(Handler::Rust))
}

/// The values if no layer sets them.
struct BuiltinDefaults;

impl BuiltinDefaults {
    const ON: Setting<bool> = Setting::new(true, SettingOrigin::Builtin);
    const OFF: Setting<bool> = Setting::new(false, SettingOrigin::Builtin);
}

const DEFAULT_OUTPUT_BYTES: u64 = 1_000_000;

#[cfg(test)]
mod tests;
