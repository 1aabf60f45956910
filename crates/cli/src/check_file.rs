//! What is wrong with one file? No printing, no shared state: this is what `check` runs in parallel and a
//! benchmark can call.

use serde_json::Value;
use toolgate_policy::{PolicySet, UserOverrides};
use toolgate_spec::{
    Code, FileCheck, Finding, Format, MAX_FILE_BYTES, Pointer, Severity, Span, ToolCheck, model::ToolSpec,
};

use crate::{
    load::{Chosen, Input, ReadError, Unreadable},
    report::{self, Reported},
};

/// What every file is judged by.
#[derive(Debug)]
pub struct Rules {
    pub filter: Filter,
    pub stdin_format: Format,
    pub set: PolicySet,
    pub overrides: Option<UserOverrides>,
}

/// Which warnings are reported. Errors always are.
#[derive(Clone, Debug)]
pub enum Filter {
    AllExcept(Vec<Code>),
    Only(Vec<Code>),
}

impl Filter {
    pub fn keeps(&self, code: Code) -> bool {
        code.severity() == Severity::Error
            || match self {
                Self::AllExcept(allowed) => !allowed.contains(&code),
                Self::Only(wanted) => wanted.contains(&code),
            }
    }
}

#[derive(Debug)]
pub enum Outcome {
    Checked(Checked),
    /// Found by walking, and no tool.
    NotATool,
    Unreadable(Unreadable),
}

/// A file's findings and who its tools are; its text is gone.
#[derive(Debug, Default)]
pub struct Checked {
    pub findings: Vec<Reported>,
    pub tools: Vec<Identity>,
    pub tool_count: usize,
    pub errors: usize,
    pub warnings: usize,
    /// Of those counted, how many were too many to keep.
    pub not_shown: usize,
}

/// What must be unique among all tools of a run.
#[derive(Clone, Debug)]
pub struct Identity {
    pub name: String,
    /// Only an id that the author gave; a derived one repeats the name.
    pub given_id: Option<String>,
    pub is_draft: bool,
    pub at: Pointer,
}

pub fn check_file(input: &Input, rules: &Rules) -> Outcome {
    let bytes = match input.read() {
        Ok(bytes) => bytes,
        Err(ReadError::TooLarge) => return Outcome::Checked(too_large(input)),
        Err(ReadError::Failed(problem)) => {
            return Outcome::Unreadable(Unreadable { file: input.label(), problem });
        }
    };
    let format = input.format(rules.stdin_format);
    let file = toolgate_spec::check(&bytes, format);
    if matches!(input, Input::File { chosen: Chosen::ByWalking, .. }) && !file.holds_a_tool(&bytes) {
        return Outcome::NotATool;
    }
    Outcome::Checked(judge(&input.label(), &bytes, format, &file, rules))
}

/// Everything that is wrong with a file that was read, its tools' policies included.
pub fn judge(label: &str, bytes: &[u8], format: Format, file: &FileCheck, rules: &Rules) -> Checked {
    let mut checked = Checked { tool_count: file.tools.len(), ..Checked::default() };
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
        // Errors are what stops a document, so they are the last to be left out.
        findings.sort_by_key(|(_, finding)| !finding.is_error());
        checked.not_shown = findings.len() - MOST_FINDINGS;
        findings.truncate(MOST_FINDINGS);
    }
    checked.findings = placed(label, bytes, format, findings, secrets(file.tools.iter()));
    checked
}

/// What an excerpt must not repeat, whether or not the warning about it is reported.
pub fn secrets<'t>(tools: impl Iterator<Item = &'t ToolCheck>) -> Vec<Finding> {
    tools
        .flat_map(|tool| &tool.findings)
        .filter(|finding| finding.code == Code::LintSecretText)
        .cloned()
        .collect()
}

/// Gives findings their lines, columns and excerpts, in the order of the text.
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
    // A file that is not text still has a beginning that is; its one finding says where that ends.
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
    let secrets: Vec<Span> = secrets.iter().filter_map(|secret| secret.span).collect();
    report::report(label, text, findings, &secrets)
}

/// What only shows once the policy is resolved: that it cannot be, or that the document claims another.
fn policy_findings(spec: &ToolSpec, at: &Pointer, rules: &Rules) -> Vec<Finding> {
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

fn identity(tool: &ToolCheck) -> Option<Identity> {
    let spec = tool.spec.as_ref()?;
    let given = tool.document.get("toolId").and_then(Value::as_str).filter(|id| !id.trim().is_empty());
    Some(Identity {
        name: spec.name.clone(),
        given_id: given.map(str::to_owned),
        is_draft: spec.draft != Some(false),
        at: tool.at.clone(),
    })
}

fn too_large(input: &Input) -> Checked {
    let finding = Finding::new(
        Code::SpecParse,
        Pointer::root(),
        format!("the file has more than {MAX_FILE_BYTES} bytes"),
        "split the bundle, or move data out of the document",
    )
    .at_span(Span::new(0, 0));
    let findings = report::report(&input.label(), "", vec![(None, finding)], &[]);
    Checked { findings, errors: 1, ..Checked::default() }
}

/// More than anybody reads; without a limit a hostile bundle could fill the memory with complaints.
const MOST_FINDINGS: usize = 1_000;
