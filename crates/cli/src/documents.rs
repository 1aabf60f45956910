//! Loads the tools of a file together with their source text.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use toolgate_spec::{FileKind, Finding, Format, ToolCheck, split_bundle, to_yaml_text};

use crate::{
    Failure,
    check_file::{self, CheckRules, CheckedFile, judge, placed, secrets},
    load::{self, DocumentReadError, DocumentSource, FileSelection, GatheredFiles},
    report::{ReportFormatter, TextReport},
    similar,
    terminal::{Terminal, visible},
};

/// A file's tools and findings.
#[derive(Debug)]
pub struct LoadedFile {
    pub tools: Vec<ToolDocument>,
    pub checked: CheckedFile,
    pub kind: FileKind,
    pub text: Arc<str>,
    pub format: Format,
}

/// One tool with its source text.
#[derive(Debug)]
pub struct ToolDocument {
    /// The file's name, for messages.
    pub file: String,
    pub check: ToolCheck,
    pub text: String,
    pub format: Format,
    /// The whole file.
    source: Arc<str>,
}

impl ToolDocument {
    /// The tool's index in its bundle; 0 in a file with one tool.
    pub fn index(&self) -> usize {
        index_of(&self.check)
    }
}

/// Reads and checks a file. Fails only if the file cannot be read; all other problems are findings.
pub fn load(input: &DocumentSource, rules: &CheckRules) -> Result<LoadedFile, Failure> {
    let bytes = input.read().map_err(|error| match error {
        DocumentReadError::TooLarge => Failure::new(format!("`{}` is too large", visible(&input.label()))),
        DocumentReadError::Failed(problem) => Failure::new(visible(&problem)),
    })?;
    let format = input.format(rules.stdin_format);
    let file = toolgate_spec::check(&bytes, format);
    let checked = judge(&input.label(), &bytes, format, &file, rules);
    let source: Arc<str> = String::from_utf8_lossy(&bytes).into();
    let texts = texts_of(&file.tools, file.kind, &source, format)
        .map_err(|problem| Failure::new(format!("`{}`: {}", visible(&input.label()), visible(&problem))))?;
    let tools = file
        .tools
        .into_iter()
        .zip(texts)
        .map(|(check, text)| ToolDocument {
            file: input.label(),
            check,
            text,
            format,
            source: Arc::clone(&source),
        })
        .collect();
    Ok(LoadedFile { tools, checked, kind: file.kind, text: source, format })
}

/// Finds the tool of a `TOOL` argument: a file, or `FILE#NAME` for one tool of a bundle.
pub fn find(
    tool: &Path,
    name: Option<&str>,
    rules: &CheckRules,
) -> Result<(PathBuf, LoadedFile, ToolDocument), Failure> {
    let (path, name) = split(tool, name);
    let mut loaded = load(&DocumentSource::named(&path), rules)?;
    let at = match &name {
        Some(name) => loaded.tools.iter().position(|tool| tool.check.name == *name),
        None if loaded.tools.len() == 1 => Some(0),
        None => None,
    };
    match at {
        Some(at) => {
            let document = loaded.tools.swap_remove(at);
            Ok((path, loaded, document))
        }
        None => Err(not_found(&path, name.as_deref(), &loaded)),
    }
}

/// Loads one tool for `FILE#NAME`, otherwise all tools of the file.
pub fn all(path: &Path, rules: &CheckRules) -> Result<Vec<ToolDocument>, Failure> {
    let (file, name) = split(path, None);
    if name.is_some() {
        let (_, _, document) = find(path, None, rules)?;
        return Ok(vec![document]);
    }
    let loaded = load(&DocumentSource::named(&file), rules)?;
    if loaded.tools.is_empty() {
        return Err(not_found(&file, None, &loaded));
    }
    Ok(loaded.tools)
}

/// Loads all documents in files and directories. Skips files without a tool unless they were named.
pub fn gather(paths: &[PathBuf], rules: &CheckRules) -> Result<Vec<LoadedFile>, Failure> {
    let GatheredFiles { inputs, unreadable } = load::gather(paths);
    if let Some(problem) = unreadable.first() {
        return Err(Failure::new(visible(&problem.problem)));
    }
    inputs.iter().filter(|input| !is_something_else(input, rules)).map(|input| load(input, rules)).collect()
}

fn is_something_else(input: &DocumentSource, rules: &CheckRules) -> bool {
    matches!(input, DocumentSource::File { chosen: FileSelection::ByWalking, .. })
        && matches!(check_file::check_file(input, rules), check_file::FileOutcome::NotATool)
}

/// Prints findings of one tool, like `complain`. Their pointers are relative to the file.
pub fn complain_of(
    document: &ToolDocument,
    findings: Vec<Finding>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let name = &document.check.name;
    let findings = findings.into_iter().map(|finding| (Some(name.clone()), finding)).collect();
    let secrets = secrets(std::iter::once(&document.check));
    let findings = placed(&document.file, document.source.as_bytes(), document.format, findings, secrets);
    complain(&CheckedFile { findings, ..CheckedFile::default() }, terminal)
}

/// Prints findings on standard error, apart from the command's output.
pub fn complain(checked: &CheckedFile, terminal: &Terminal) -> Result<(), Failure> {
    let mut text = Vec::new();
    let mut report = TextReport { palette: terminal.stderr_palette, with_summary: false, columns: None };
    for reported in &checked.findings {
        report.finding(&mut text, reported)?;
    }
    // If standard error is closed, the error cannot be reported.
    let _ = std::io::stderr().write_all(&text);
    Ok(())
}

/// Each tool's text: the whole file, the member of a JSON bundle as written, or YAML rendered from its value.
fn texts_of(tools: &[ToolCheck], kind: FileKind, text: &str, format: Format) -> Result<Vec<String>, String> {
    match (kind, format) {
        (FileKind::Bundle, Format::Json) => {
            let entries = split_bundle(text).map_err(|error| error.to_string())?;
            // Look entries up by index: members that are not objects have findings and are not in `tools`.
            let raw = |tool: &ToolCheck| entries.get(index_of(tool)).map(|entry| format!("{}\n", entry.raw));
            tools
                .iter()
                .map(|tool| raw(tool).ok_or_else(|| "the bundle cannot be split into its tools".into()))
                .collect()
        }
        (FileKind::Bundle, Format::Yaml) => {
            Ok(tools.iter().map(|tool| to_yaml_text(&Value::Object(tool.document.clone()))).collect())
        }
        _ => Ok(tools.iter().map(|_| text.to_owned()).collect()),
    }
}

fn index_of(tool: &ToolCheck) -> usize {
    tool.at.tokens().last().and_then(|token| token.parse().ok()).unwrap_or_default()
}

fn split(tool: &Path, name: Option<&str>) -> (PathBuf, Option<String>) {
    let text = tool.to_string_lossy();
    match (name, text.rsplit_once('#')) {
        (Some(name), _) => (tool.to_owned(), Some(name.to_owned())),
        // If a file with `#` in its name exists, it wins.
        (None, Some((path, name))) if !tool.exists() => (PathBuf::from(path), Some(name.to_owned())),
        _ => (tool.to_owned(), None),
    }
}

fn not_found(path: &Path, name: Option<&str>, loaded: &LoadedFile) -> Failure {
    let names: Vec<&str> = loaded.tools.iter().map(|tool| tool.check.name.as_str()).collect();
    let problem = match name {
        _ if names.is_empty() => match loaded.checked.findings.first() {
            Some(reported) => reported.finding.message.clone(),
            None => "it contains no tool".to_owned(),
        },
        Some(name) => {
            let hint = similar::closest(name, names.iter().copied());
            let hint = hint.map(|close| format!("; did you mean `{close}`?")).unwrap_or_default();
            format!("it contains no tool `{name}`{hint}")
        }
        None => {
            let file = path.to_string_lossy();
            let first = names.first().copied().unwrap_or_default();
            format!("it contains {} tools; name one, as in `{file}#{first}`", names.len())
        }
    };
    Failure::at(path, problem)
}
