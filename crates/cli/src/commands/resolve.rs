//! Shows a tool's effective policy, the origin of each setting, and the risk level.

mod asking;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use toolgate_config::{Config, Overrides, config_path};
use toolgate_policy::{
    AskThreshold, Digests, EffectivePolicy, Lifecycle, Relaxation, Risk, RiskLevel, SettingView, Wording,
    effective_level, policy_digest, rate, relaxations, safety_to_json, state, tool_safety,
};
use toolgate_spec::{
    FileKind, Finding, Format, edit, edit_in_bundle, helpers_of,
    model::{Body, CapabilityPatch, EnvironmentMode, NetworkMode, ToolSpec},
};

use crate::{
    CommandExit, Failure,
    args::{OutputFormat, PolicyArgs, ResolveArgs},
    check_file::CheckRules,
    documents::{self, LoadedFile, ToolDocument},
    report::counted,
    similar,
    table::Table,
    terminal::{Terminal, visible},
    write::{self, Existing},
};

pub fn run(args: &ResolveArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let gateway = GatewaySettings::of(args)?;
    let rules = args.policy.or(&gateway.policy).rules()?;
    let (path, loaded, document) = documents::find(&args.tool, args.name.as_deref(), &rules)?;
    let resolved = Resolved::new(&document, &rules, terminal)?;
    if let Some(close) = misspelt_override(&rules, &loaded, resolved.spec) {
        let (close, name) = (visible(close), visible(&document.check.name));
        Terminal::note(&format!("the overrides name `{close}` but not `{name}`; is it misspelt?"));
    }
    let capability =
        rules.overrides.as_ref().and_then(|overrides| overrides.for_tool(resolved.spec).ok().flatten());
    for note in capability.into_iter().flat_map(|capability| without_effect(capability, &resolved.policy)) {
        Terminal::note(&note);
    }
    match args.format {
        OutputFormat::Text => resolved.print(&gateway, terminal)?,
        OutputFormat::Json => {
            let mut report = resolved.json();
            merge(&mut report, asking::to_json(&resolved, &gateway));
            terminal.data(report);
        }
    }
    if args.write_safety {
        write_safety(&path, &loaded, &document, &resolved)?;
        Terminal::note(&format!("toolSafety written to {}", visible(&path.to_string_lossy())));
    }
    Ok(CommandExit::Clean)
}

/// The gateway that the tool is resolved for.
pub(super) struct GatewaySettings {
    pub ask_from: AskThreshold,
    /// The configuration file, if there is one.
    pub file: Option<PathBuf>,
    pub has_cedar: bool,
    policy: PolicyArgs,
}

impl GatewaySettings {
    /// The settings of the named configuration or of `./toolgate.yaml`; otherwise the defaults.
    fn of(args: &ResolveArgs) -> Result<Self, Failure> {
        let file = config_path(args.config.config.as_deref(), &process_environment);
        let has_file = args.config.config.is_some() || file.exists();
        let config = if has_file {
            args.config.load(&Overrides::default())?
        } else {
            let defaults = Config::parse("version: 1\n", Path::new("/"), &|_| None, &Overrides::default());
            defaults.map_err(|_| Failure::new("the default configuration is invalid; report this"))?
        };
        Ok(Self {
            ask_from: toolgate::ask_threshold(config.approvals.ask_from),
            file: has_file.then_some(file),
            has_cedar: !config.policy.cedar.is_empty(),
            policy: PolicyArgs {
                profiles: config.policy.profiles,
                baseline: config.policy.baseline,
                overrides: config.policy.overrides,
            },
        })
    }
}

/// Adds the members of one JSON object to another.
fn merge(report: &mut Value, more: Value) {
    if let (Value::Object(report), Value::Object(more)) = (report, more) {
        report.extend(more);
    }
}

/// A name in the overrides that was probably meant for this tool. A misspelt override protects nothing.
fn misspelt_override<'r>(rules: &'r CheckRules, loaded: &LoadedFile, spec: &ToolSpec) -> Option<&'r str> {
    let overrides = rules.overrides.as_ref().filter(|overrides| overrides.for_tool(spec) == Ok(None))?;
    let is_other = |named: &&str| loaded.tools.iter().any(|tool| tool.check.name == *named);
    similar::closest(&spec.name, overrides.tool_names().filter(|named| !is_other(named)))
}

/// Notes about overrides without effect. In a document they would be errors.
fn without_effect(capability: &CapabilityPatch, policy: &EffectivePolicy) -> Vec<String> {
    let is_limited = matches!(policy.network.mode.value, NetworkMode::Allowlist | NetworkMode::Strict);
    let lists_hosts = capability.network.allowed_hosts.as_ref().is_some_and(|hosts| !hosts.is_empty());
    let asks = capability.network.require_approval_for_unknown_hosts == Some(true);
    let is_explicit = policy.execution.env.value == EnvironmentMode::Explicit;
    let lists_variables =
        capability.execution.allowed_env_vars.as_ref().is_some_and(|names| !names.is_empty());
    [
        (lists_hosts && !is_limited, "network.allowedHosts", "access: limited"),
        (asks && !is_limited, "network.requireApprovalForUnknownHosts", "access: limited"),
        (lists_variables && !is_explicit, "execution.allowedEnvVars", "env: explicit"),
    ]
    .into_iter()
    .filter(|(is_idle, ..)| *is_idle)
    .map(|(_, key, with)| format!("`{key}` in the overrides has no effect without `{with}`"))
    .collect()
}

/// A tool with its resolved policy, risk and state.
pub struct Resolved<'a> {
    file: &'a str,
    pub spec: &'a ToolSpec,
    pub policy: EffectivePolicy,
    pub risk: Risk,
    pub met: RiskLevel,
    digest: String,
    policy_digest: String,
    lifecycle: Lifecycle,
    environment: Vec<(&'a str, bool)>,
    mismatches: Vec<Finding>,
    pub relaxed: Vec<Relaxation>,
}

impl<'a> Resolved<'a> {
    /// Prints the findings and fails if the document has errors.
    pub fn new(document: &'a ToolDocument, rules: &CheckRules, terminal: &Terminal) -> Result<Self, Failure> {
        let check = &document.check;
        let name = visible(&check.name);
        let refused = |errors: usize| {
            Failure::Findings(format!("`{name}` has no policy: {}", counted(errors, "error")))
        };
        let Some(spec) = &check.spec else {
            documents::complain_of(document, check.findings.clone(), terminal)?;
            return Err(refused(check.findings.iter().filter(|finding| finding.is_error()).count()));
        };
        let policy = match toolgate_policy::resolve(spec, &rules.set, rules.overrides.as_ref()) {
            Ok(policy) => policy,
            Err(mut findings) => {
                let count = findings.len();
                for finding in &mut findings {
                    finding.at = finding.at.within(&check.at);
                }
                documents::complain_of(document, findings, terminal)?;
                return Err(refused(count));
            }
        };
        let risk = rate(&policy, spec, &rules.set);
        let digest = toolgate_spec::digest(spec, &check.document).to_string();
        let policy_digest = policy_digest(&policy);
        let current = Digests { document: &digest, policy: &policy_digest };
        // Passes recorded elsewhere do not count here.
        let lifecycle = state(spec, current, None, &process_environment);
        Ok(Self {
            file: &document.file,
            spec,
            met: effective_level(&risk, &policy.approval, wording(&check.findings)),
            environment: environment(spec),
            mismatches: toolgate_policy::safety_mismatch(spec, &policy),
            relaxed: relaxations(spec, &rules.set, rules.overrides.as_ref(), &policy),
            risk,
            policy,
            digest,
            policy_digest,
            lifecycle,
        })
    }

    fn print(&self, gateway: &GatewaySettings, terminal: &mut Terminal) -> Result<(), Failure> {
        let palette = terminal.palette;
        let bold = palette.bold;
        let (name, file) = (visible(&self.spec.name), visible(self.file));
        writeln!(terminal, "{bold}{name}{bold:#}  {}{file}{:#}\n", palette.dim, palette.dim)?;
        let mut facts = Table::new([10, 0, 0]);
        facts.row(["risk", &self.risk_line(), ""]);
        for reason in &self.risk.because {
            facts.row([
                "",
                &format!("{} {} ({}, {})", reason.level.name(), reason.text, reason.setting, reason.origin),
                "",
            ]);
        }
        asking::add_rows(self, gateway, &mut facts);
        facts.row(["state", &format!("{}: {}", self.lifecycle.state.name(), self.lifecycle.because), ""]);
        for (at, (variable, is_set)) in self.environment.iter().enumerate() {
            let label = if at == 0 { "needs" } else { "" };
            facts.row([label, &format!("{variable} ({})", if *is_set { "set" } else { "missing" }), ""]);
        }
        facts.row(["digest", &self.digest, ""]);
        facts.row(["policy", &self.policy_digest, ""]);
        for (at, mismatch) in self.mismatches.iter().enumerate() {
            let label = if at == 0 { "toolSafety" } else { "" };
            facts.row([label, &format!("{} {}", mismatch.at, mismatch.message), ""]);
        }
        facts.print(terminal)?;
        writeln!(terminal)?;
        let mut table = Table::new([30, 44, 0]).with_header(["setting", "value", "origin"]);
        for setting in self.settings() {
            table.row([setting.name, &shown(&setting.value), &setting.origin]);
        }
        table.print(terminal)?;
        Ok(())
    }

    /// Omits settings about Java classes, which no tool can use, unless the document sets them.
    fn settings(&self) -> impl Iterator<Item = SettingView> {
        let is_java = |name: &str| name == "javaInterop" || name.starts_with("classes.");
        let settings = self.policy.settings().into_iter();
        settings.filter(move |setting| !is_java(setting.name) || setting.origin.contains("tool"))
    }

    fn risk_line(&self) -> String {
        match (self.risk.level, self.met) {
            (RiskLevel::L0, _) => "L0: cannot do harm".into(),
            (level, met) if level == met => level.name().into(),
            (level, met) => {
                format!("{}, counts as {} because a person approves every call", level.name(), met.name())
            }
        }
    }

    fn json(&self) -> Value {
        let because = self.risk.because.iter().map(|reason| {
            json!({
                "code": reason.code,
                "level": reason.level.name(),
                "text": reason.text,
                "setting": reason.setting,
                "origin": reason.origin.to_string(),
            })
        });
        let settings = self
            .settings()
            .map(|setting| json!({ "name": setting.name, "value": setting.value, "origin": setting.origin }));
        let mismatches = self
            .mismatches
            .iter()
            .map(|finding| json!({ "pointer": finding.at.as_str(), "message": finding.message }));
        let missing = self.environment.iter().filter(|(_, is_set)| !is_set).map(|(name, _)| *name);
        let environment = self.environment.iter().map(|(name, set)| json!({ "name": name, "set": set }));
        json!({
            "file": self.file,
            "name": self.spec.name,
            "toolId": self.spec.id.as_str(),
            "digest": self.digest,
            "policyDigest": self.policy_digest,
            "risk": {
                "level": self.risk.level.name(),
                "effectiveLevel": self.met.name(),
                "because": because.collect::<Vec<_>>(),
            },
            "lifecycle": {
                "state": self.lifecycle.state.name(),
                "because": self.lifecycle.because,
                "missingEnvironment": missing.collect::<Vec<_>>(),
            },
            "environment": environment.collect::<Vec<_>>(),
            "settings": settings.collect::<Vec<_>>(),
            "safetyMismatches": mismatches.collect::<Vec<_>>(),
        })
    }
}

/// The required variables, and whether they are set. Their values are never read out.
fn environment(spec: &ToolSpec) -> Vec<(&str, bool)> {
    let is_set = |name: &str| process_environment(name).is_some_and(|value| !value.trim().is_empty());
    spec.required_environment().into_iter().map(|name| (name, is_set(name))).collect()
}

fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn wording(findings: &[Finding]) -> Wording {
    let is_poisoned = findings.iter().any(|finding| finding.code.name().starts_with("LINT_POISON_"));
    if is_poisoned { Wording::Poisoned } else { Wording::Clean }
}

/// Joins the entries of a list with commas, where the table can wrap.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        Value::Array(items) if items.is_empty() => "-".into(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn write_safety(
    path: &Path,
    loaded: &LoadedFile,
    document: &ToolDocument,
    resolved: &Resolved<'_>,
) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::new("standard input cannot be written to"));
    }
    let claimed = resolved.spec.claimed_safety.as_ref().and_then(|safety| safety.runtime.as_ref());
    let declared = claimed.map_or(&[][..], |runtime| runtime.helpers.as_slice());
    let helpers = match &resolved.spec.body {
        Body::JavaScript { code } => helpers_of(code, declared),
        Body::Handler(_) => declared.to_vec(),
    };
    let safety = safety_to_json(&tool_safety(resolved.spec, &resolved.policy, helpers));
    let changes = [("toolSafety", Some(safety))];
    let edited = match (loaded.kind, loaded.format) {
        (FileKind::Bundle, Format::Json) => edit_in_bundle(&loaded.text, document.index(), &changes),
        (FileKind::Bundle, Format::Yaml) => {
            return Err(Failure::at(path, "a YAML bundle cannot be edited in place; import it first"));
        }
        _ => edit(&loaded.text, loaded.format, &changes),
    };
    let edited = edited.map_err(|error| Failure::at(path, error))?;
    write::write(path, edited.as_bytes(), Existing::Edit)
}
