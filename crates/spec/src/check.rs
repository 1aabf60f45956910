//! Checks a file: read → schema → decode → invariants → lints. Collects all findings.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::{
    Code, Finding, Format, Pointer, Schema, decode, invariant, lint,
    model::ToolSpec,
    read,
    schema::Violations,
    source::{self, MAX_DOCUMENT_BYTES},
};

/// The tools in one file, and the findings.
#[derive(Clone, Debug)]
pub struct FileCheck {
    pub kind: FileKind,
    pub tools: Vec<ToolCheck>,
    /// Findings about the file itself, not about one tool.
    pub findings: Vec<Finding>,
}

impl FileCheck {
    /// Whether to report a file that was found by scanning a directory. A file that cannot be parsed may be a tool. A
    /// file that parses but has none of a tool's fields is unrelated.
    pub fn holds_a_tool(&self, bytes: &[u8]) -> bool {
        match self.kind {
            FileKind::Bundle | FileKind::ToolManifest => true,
            FileKind::SafeToolSpec => self.tools.iter().any(|tool| looks_like_a_tool(&tool.document)),
            FileKind::Unreadable => {
                // Findings about the text have a span. Without one, the text was parsed and its root is not an
                // object.
                let is_parsed = self.findings.iter().all(|finding| finding.span.is_none());
                !is_parsed || mentions(bytes, "code") || mentions(bytes, "handler")
            }
        }
    }
}

/// One matching field may be a coincidence. Two identify a tool, even if the third is missing.
fn looks_like_a_tool(document: &Map<String, Value>) -> bool {
    ["name", "code", "codeType"].iter().filter(|field| document.contains_key(**field)).count() >= 2
}

fn is_tool_like(value: &Value) -> bool {
    value.as_object().is_some_and(|document| looks_like_a_tool(document) || document.contains_key("handler"))
}

fn mentions(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileKind {
    SafeToolSpec,
    ToolManifest,
    Bundle,
    /// The file could not be parsed.
    Unreadable,
}

/// One tool of a file. `spec` is set only if the document has no errors.
#[derive(Clone, Debug)]
pub struct ToolCheck {
    pub name: String,
    pub spec: Option<ToolSpec>,
    pub document: Map<String, Value>,
    pub findings: Vec<Finding>,
    /// The position of the tool in the file; the root unless the file is a bundle.
    pub at: Pointer,
}

/// Checks a file's bytes. Findings have pointers into the file; `locate` adds lines and columns.
pub fn check(bytes: &[u8], format: Format) -> FileCheck {
    match source::decode(bytes) {
        Ok(text) => check_text(text, format),
        Err(finding) => unreadable(finding),
    }
}

/// Like `check`, for text that is already decoded.
pub fn check_text(text: &str, format: Format) -> FileCheck {
    // Rejects large text early unless it may hold several tools. The match below decides for certain.
    let may_be_bundle = text.contains("toolSpecs") || text.trim_start().starts_with(['[', '-']);
    if text.len() > MAX_DOCUMENT_BYTES && !may_be_bundle {
        return unreadable(too_large(text.len()));
    }
    let tree = match read::read(text, format) {
        Ok(tree) => tree,
        Err(finding) => return unreadable(finding),
    };
    let wide_numbers = tree.has_wide_numbers;
    match tree.value {
        Value::Object(document) if document.contains_key("toolSpecs") => check_bundle(document, wide_numbers),
        Value::Array(specs) if specs.iter().any(is_tool_like) => {
            check_tools(specs, &Pointer::root(), Vec::new(), wide_numbers)
        }
        Value::Object(_) if text.len() > MAX_DOCUMENT_BYTES => unreadable(too_large(text.len())),
        Value::Object(document) => {
            let kind = kind_of(&document);
            let tool = check_tool(document, Pointer::root(), wide_numbers, DocumentOrigin::File);
            FileCheck { kind, tools: vec![tool], findings: Vec::new() }
        }
        _ => unreadable(Finding::new(
            Code::SpecParse,
            Pointer::root(),
            "a tool document must be an object",
            "write `{\"name\": …}`; several tools go into an array or a bundle: {\"toolSpecs\": [...]}",
        )),
    }
}

/// Fills in the spans of findings in the text that was checked.
pub fn locate(text: &str, format: Format, findings: &mut [Finding]) {
    read::locate(text, format, findings);
}

fn check_bundle(mut bundle: Map<String, Value>, wide_numbers: bool) -> FileCheck {
    let specs = match bundle.get_mut("toolSpecs") {
        Some(Value::Array(specs)) => std::mem::take(specs),
        _ => Vec::new(),
    };
    let mut findings = invariant::guards_of_bundle(&bundle);
    let setting = ServerSetting::of(&bundle);
    findings.extend(Schema::ToolBundle.violations(&Value::Object(bundle)).findings);
    let mut file = check_tools(specs, &Pointer::new("/toolSpecs"), findings, wide_numbers);
    for spec in file.tools.iter_mut().filter_map(|tool| tool.spec.as_mut()) {
        // The setting of the tool wins over that of its bundle.
        if spec.governance.exposed.is_none() && setting.as_ref().is_some_and(|setting| !setting.exposes(spec))
        {
            spec.governance.exposed = Some(false);
        }
    }
    file
}

/// A bundle's `toolMcpServerSetting`: which of its tools are exposed.
struct ServerSetting {
    auto_add: bool,
    exposed: Vec<String>,
    excluded: Vec<String>,
}

impl ServerSetting {
    fn of(bundle: &Map<String, Value>) -> Option<Self> {
        let setting = bundle.get("toolMcpServerSetting")?.as_object()?;
        let ids = |key: &str| {
            let entries = setting.get(key).and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Some(Self {
            auto_add: setting.get("autoAdd").and_then(Value::as_bool).unwrap_or(true),
            exposed: ids("exposedToolIds"),
            excluded: ids("excludedToolIds"),
        })
    }

    fn exposes(&self, spec: &ToolSpec) -> bool {
        let has = |ids: &[String]| ids.iter().any(|id| spec.id.as_str().eq_ignore_ascii_case(id));
        !has(&self.excluded) && (self.auto_add || has(&self.exposed))
    }
}

/// Checks the tools of one file. `at` points to their list; `findings` are about the file itself.
fn check_tools(specs: Vec<Value>, at: &Pointer, mut findings: Vec<Finding>, wide_numbers: bool) -> FileCheck {
    let count = specs.len();
    let mut tools = Vec::new();
    let mut found = 0;
    for (index, spec) in specs.into_iter().enumerate() {
        let Value::Object(spec) = spec else {
            findings.push(Finding::new(
                Code::SpecParse,
                at.index(index),
                "a tool document must be an object",
                "remove the entry",
            ));
            found += 1;
            continue;
        };
        let size = size_of(&spec);
        if size > MAX_DOCUMENT_BYTES {
            findings.push(Finding { at: at.index(index), span: None, ..too_large(size) });
            found += 1;
            continue;
        }
        let tool = check_tool(spec, at.index(index), wide_numbers, DocumentOrigin::File);
        found += tool.findings.len();
        tools.push(tool);
        if found > MAX_FINDINGS_PER_FILE {
            findings.push(Finding::new(
                Code::SpecParse,
                at.clone(),
                format!(
                    "more than {MAX_FINDINGS_PER_FILE} findings; {} tools were not checked",
                    count - index - 1
                ),
                "fix the reported findings and check again",
            ));
            break;
        }
    }
    let mut file = FileCheck { kind: FileKind::Bundle, tools, findings };
    invariant::bundle(&mut file);
    file
}

fn kind_of(document: &Map<String, Value>) -> FileKind {
    if document.contains_key("handler") { FileKind::ToolManifest } else { FileKind::SafeToolSpec }
}

/// The origin of a document.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DocumentOrigin {
    File,
    Program,
}

/// Checks a tool that a program registers in code, by the rules for manifests. Its handler is `rust`. The published
/// schema has no such kind, so files cannot use it.
pub fn check_in_code(mut document: Map<String, Value>) -> ToolCheck {
    document.insert("handler".to_owned(), json!({ "rust": {} }));
    check_tool(document, Pointer::root(), false, DocumentOrigin::Program)
}

fn check_tool(
    document: Map<String, Value>,
    at: Pointer,
    wide_numbers: bool,
    source: DocumentOrigin,
) -> ToolCheck {
    let schema = match kind_of(&document) {
        FileKind::ToolManifest => Schema::ToolManifest,
        _ => Schema::SafeToolSpec,
    };
    let document = Value::Object(document);
    let Violations { mut findings, is_oversized } = schema.violations(&document);
    if source == DocumentOrigin::Program {
        findings.retain(|finding| !is_about_handler(finding));
    }
    let Value::Object(document) = document else {
        return ToolCheck { name: String::new(), spec: None, document: Map::new(), findings, at };
    };
    let spec = decode::tool(&document, &mut findings);
    if !is_oversized {
        invariant::check(&document, &spec, &mut findings);
        if wide_numbers {
            invariant::wide_numbers(&document, &mut findings);
        }
        lint::lint(&document, &spec, &mut findings);
    }
    without_repeats(&mut findings);
    limit(&mut findings);
    for finding in &mut findings {
        finding.at = finding.at.within(&at);
    }
    let sound = !findings.iter().any(Finding::is_error);
    ToolCheck { name: spec.name.clone(), spec: sound.then_some(spec), document, findings, at }
}

fn is_about_handler(finding: &Finding) -> bool {
    finding.at.tokens().first().is_some_and(|first| first == "handler")
}

fn too_large(size: usize) -> Finding {
    let message = format!("the document has {size} bytes; the limit for a tool is {MAX_DOCUMENT_BYTES}");
    Finding::new(Code::SpecParse, Pointer::root(), message, "move data out of the document")
        .at_span(crate::SourceSpan::new(0, 0))
}

/// The approximate size in bytes of an object as compact JSON. The readers bound the recursion depth.
fn size_of(members: &Map<String, Value>) -> usize {
    2 + members.iter().map(|(key, value)| key.len() + 4 + size_of_value(value)).sum::<usize>()
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| 1 + size_of_value(item)).sum::<usize>(),
        Value::Object(members) => size_of(members),
    }
}

fn unreadable(finding: Finding) -> FileCheck {
    FileCheck { kind: FileKind::Unreadable, tools: Vec::new(), findings: vec![finding] }
}

/// Removes duplicates: two checks may report the same problem at the same position.
fn without_repeats(findings: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert((finding.code, finding.at.clone(), finding.message.clone())));
}

fn limit(findings: &mut Vec<Finding>) {
    if findings.len() <= MAX_FINDINGS {
        return;
    }
    findings.sort_by_key(|finding| !finding.is_error());
    findings.truncate(MAX_FINDINGS);
    findings.push(Finding::new(
        Code::SpecParse,
        Pointer::root(),
        format!("more than {MAX_FINDINGS} findings; the rest is omitted"),
        "fix the reported findings and check again",
    ));
}

/// The maximum number of findings per tool. Further ones are summarized.
pub const MAX_FINDINGS: usize = 1_000;

const MAX_FINDINGS_PER_FILE: usize = 10_000;

#[cfg(test)]
mod tests;
