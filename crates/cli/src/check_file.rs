//! Checks one file. Prints nothing and shares no state, because `check` runs it in parallel and benchmarks call it.

use serde_json::Value;
use toolgate_policy::{PolicySet, UserOverrides};
use toolgate_spec::{
    Code, FileCheck, Finding, Format, MAX_FILE_BYTES, Pointer, Severity, SourceSpan, ToolCheck,
    model::ToolSpec,
};

use crate::{
    load::{DocumentReadError, DocumentSource, FileSelection, Unreadable},
    report::{self, Reported},
};

/// The policy and filters that apply to every file of a run.
#[derive(Debug)]
pub struct CheckRules {
    pub filter: WarningFilter,
    pub stdin_format: Format,
    pub set: PolicySet,
    pub overrides: Option<UserOverrides>,
}

/// Which warnings are reported. Errors always are.
#[derive(Clone, Debug)]
pub enum WarningFilter {
    AllExcept(Vec<Code>),
    Only(Vec<Code>),
}

impl WarningFilter {
    pub fn keeps(&self, code: Code) -> bool {
        code.severity() == Severity::Error
            || match self {
                Self::AllExcept(allowed) => !allowed.contains(&code),
                Self::Only(wanted) => wanted.contains(&code),
            }
    }
}

#[derive(Debug)]
pub enum FileOutcome {
    Checked(CheckedFile),
    /// Found in a directory and contains no tool.
    NotATool,
    Unreadable(Unreadable),
}

/// A file's findings and the identities of its tools, without its text.
#[derive(Debug, Default)]
pub struct CheckedFile {
    pub findings: Vec<Reported>,
    pub tools: Vec<ToolIdentity>,
    pub tool_count: usize,
    pub errors: usize,
    pub warnings: usize,
    /// Findings that are counted but not kept.
    pub not_shown: usize,
}

/// The fields of a tool that must be unique in a run.
#[derive(Clone, Debug)]
pub struct ToolIdentity {
    pub name: String,
    /// The id from the document. `None` if it was derived from the name.
    pub given_id: Option<String>,
    pub is_draft: bool,
    pub at: Pointer,
}

pub fn check_file(input: &DocumentSource, rules: &CheckRules) -> FileOutcome {
    let bytes = match input.read() {
        Ok(bytes) => bytes,
        Err(DocumentReadError::TooLarge) => return FileOutcome::Checked(too_large(input)),
        Err(DocumentReadError::Failed(problem)) => {
            return FileOutcome::Unreadable(Unreadable { file: input.label(), problem });
        }
    };
    let format = input.format(rules.stdin_format);
    let file = toolgate_spec::check(&bytes, format);
    if matches!(input, DocumentSource::File { chosen: FileSelection::ByWalking, .. })
        && !file.holds_a_tool(&bytes)
    {
        return FileOutcome::NotATool;
    }
    FileOutcome::Checked(judge(&input.label(), &bytes, format, &file, rules))
}

/// Collects all findings of a file, including those about its tools' policies.
pub fn judge(label: &str, bytes: &[u8], format: Format, file: &FileCheck, rules: &CheckRules) -> CheckedFile {
    let mut checked = CheckedFile { tool_count: file.tools.len(), ..CheckedFile::default() };
    let mut findings: Vec<(Option<String>, Finding)> =
        file.findings.iter().map(|finding| (None, finding.clone())).collect();
    for tool in &file.tools {
        let about_policy = tool.spec.as_ref().map(|spec| policy_findings(spec, &tool.at, rules));
        let mut about_policy = about_policy.unwrap_or_default();
        about_policy.extend(toolgate::reserved_name(tool).map(|mut finding| {
            finding.at = finding.at.within(&tool.at);
            finding
        }));
        if !about_policy.iter().any(Finding::is_error) {
            checked.tools.extend(identity(tool));
        }
        let found = tool.findings.iter().cloned().chain(about_policy);
        findings.extend(found.map(|finding| (Some(tool.name.clone()), finding)));
    }
    findings.retain(|(_, finding)| rules.filter.keeps(finding.code));
    checked.errors = findings.iter().filter(|(_, finding)| finding.is_error()).count();
    checked.warnings = findings.len() - checked.errors;
    if findings.len() > MOST_FINDINGS {
        // Drop warnings before errors, because errors block the document.
        findings.sort_by_key(|(_, finding)| !finding.is_error());
        checked.not_shown = findings.len() - MOST_FINDINGS;
        findings.truncate(MOST_FINDINGS);
    }
    checked.findings = placed(label, bytes, format, findings, secrets(file.tools.iter()));
    checked
}

/// The secrets that excerpts must hide, even if the warning about them is filtered out.
pub fn secrets<'t>(tools: impl Iterator<Item = &'t ToolCheck>) -> Vec<Finding> {
    tools
        .flat_map(|tool| &tool.findings)
        .filter(|finding| finding.code == Code::LintSecretText)
        .cloned()
        .collect()
}

/// Adds lines, columns and excerpts to findings and sorts them by position.
pub fn placed(
    label: &str,
    bytes: &[u8],
    format: Format,
    findings: Vec<(Option<String>, Finding)>,
    mut secrets: Vec<Finding>,
) -> Vec<Reported> {
    if findings.is_empty() {
        return Vec::new();
    }
    // A file that is not UTF-8 has one finding, at the end of its valid start.
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| {
        bytes.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default()
    });
    let (tools, mut found): (Vec<_>, Vec<_>) = findings.into_iter().unzip();
    toolgate_spec::locate(text, format, &mut found);
    let mut findings: Vec<_> = tools.into_iter().zip(found).collect();
    findings.sort_by(|(_, a), (_, b)| {
        let key = |finding: &Finding| finding.span.map_or((0, 0), |span| (span.start, span.end));
        key(a).cmp(&key(b)).then_with(|| a.at.cmp(&b.at)).then_with(|| a.code.cmp(&b.code))
    });
    toolgate_spec::locate(text, format, &mut secrets);
    let secrets: Vec<SourceSpan> = secrets.iter().filter_map(|secret| secret.span).collect();
    report::report(label, text, findings, &secrets)
}

/// Findings that need the resolved policy: it cannot be resolved, or the document claims another one.
fn policy_findings(spec: &ToolSpec, at: &Pointer, rules: &CheckRules) -> Vec<Finding> {
    let mut findings = match toolgate_policy::resolve(spec, &rules.set, rules.overrides.as_ref()) {
        Ok(policy) => {
            let risk = toolgate_policy::rate(&policy, spec, &rules.set);
            toolgate_policy::policy_warnings(spec, &policy, &risk)
        }
        Err(findings) => findings,
    };
    for finding in &mut findings {
        finding.at = finding.at.within(at);
    }
    findings
}

fn identity(tool: &ToolCheck) -> Option<ToolIdentity> {
    let spec = tool.spec.as_ref()?;
    let given = tool.document.get("toolId").and_then(Value::as_str).filter(|id| !id.trim().is_empty());
    Some(ToolIdentity {
        name: spec.name.clone(),
        given_id: given.map(str::to_owned),
        is_draft: spec.draft != Some(false),
        at: tool.at.clone(),
    })
}

fn too_large(input: &DocumentSource) -> CheckedFile {
    let finding = Finding::new(
        Code::SpecParse,
        Pointer::root(),
        format!("the file has more than {MAX_FILE_BYTES} bytes"),
        "split the bundle, or move data out of the document",
    )
    .at_span(SourceSpan::new(0, 0));
    let findings = report::report(&input.label(), "", vec![(None, finding)], &[]);
    CheckedFile { findings, errors: 1, ..CheckedFile::default() }
}

/// Bounds the memory that a hostile bundle can fill with findings.
const MOST_FINDINGS: usize = 1_000;
