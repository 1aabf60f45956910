//! The tools of a file together with their own text, for commands that move or explain them.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use toolgate_spec::{FileKind, Finding, Format, ToolCheck, split_bundle, to_yaml_text};

use crate::{
    Failure,
    check_file::{self, Checked, Rules, judge, placed, secrets},
    load::{self, Chosen, Gathered, Input, ReadError},
    report::{Report, Text},
    similar,
    terminal::{Terminal, visible},
};

/// What a file holds, and what is wrong with it.
#[derive(Debug)]
pub struct Loaded {
    pub tools: Vec<Document>,
    pub checked: Checked,
    pub kind: FileKind,
    pub text: Arc<str>,
    pub format: Format,
}

/// One tool as it was written.
#[derive(Debug)]
pub struct Document {
    /// The file it came from, for messages.
    pub file: String,
    pub check: ToolCheck,
    pub text: String,
    pub format: Format,
    /// The whole file.
    source: Arc<str>,
}

impl Document {
    /// Its number in the bundle; zero in a file of its own.
    pub fn index(&self) -> usize {
        index_of(&self.check)
    }
}

/// Reads and judges a file. Only what cannot be read at all is a failure; the rest are findings.
pub fn load(input: &Input, rules: &Rules) -> Result<Loaded, Failure> {
    let bytes = input.read().map_err(|error| match error {
        ReadError::TooLarge => Failure::new(format!("`{}` is too large", visible(&input.label()))),
        ReadError::Failed(problem) => Failure::new(visible(&problem)),
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
        .map(|(check, text)| Document {
            file: input.label(),
            check,
            text,
            format,
            source: Arc::clone(&source),
        })
        .collect();
    Ok(Loaded { tools, checked, kind: file.kind, text: source, format })
}

/// What `TOOL` on a command line means: a file, or `FILE#NAME` for one tool of a bundle.
pub fn find(tool: &Path, name: Option<&str>, rules: &Rules) -> Result<(PathBuf, Loaded, Document), Failure> {
    let (path, name) = split(tool, name);
    let mut loaded = load(&Input::named(&path), rules)?;
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

/// The tools that are meant: one for `FILE#NAME`, all of the file otherwise.
pub fn all(path: &Path, rules: &Rules) -> Result<Vec<Document>, Failure> {
    let (file, name) = split(path, None);
    if name.is_some() {
        let (_, _, document) = find(path, None, rules)?;
        return Ok(vec![document]);
    }
    let loaded = load(&Input::named(&file), rules)?;
    if loaded.tools.is_empty() {
        return Err(not_found(&file, None, &loaded));
    }
    Ok(loaded.tools)
}

/// Every document in files and folders. What was found by walking and is no tool is passed over.
pub fn gather(paths: &[PathBuf], rules: &Rules) -> Result<Vec<Loaded>, Failure> {
    let Gathered { inputs, unreadable } = load::gather(paths);
    if let Some(problem) = unreadable.first() {
        return Err(Failure::new(visible(&problem.problem)));
    }
    inputs.iter().filter(|input| !is_something_else(input, rules)).map(|input| load(input, rules)).collect()
}

fn is_something_else(input: &Input, rules: &Rules) -> bool {
    matches!(input, Input::File { chosen: Chosen::ByWalking, .. })
        && matches!(check_file::check_file(input, rules), check_file::Outcome::NotATool)
}

/// As `complain`, for findings of one tool; their pointers lead into the file.
pub fn complain_of(document: &Document, findings: Vec<Finding>, terminal: &Terminal) -> Result<(), Failure> {
    let name = &document.check.name;
    let findings = findings.into_iter().map(|finding| (Some(name.clone()), finding)).collect();
    let secrets = secrets(std::iter::once(&document.check));
    let findings = placed(&document.file, document.source.as_bytes(), document.format, findings, secrets);
    complain(&Checked { findings, ..Checked::default() }, terminal)
}

/// Prints what is wrong on standard error, where it does not mix with a command's product.
pub fn complain(checked: &Checked, terminal: &Terminal) -> Result<(), Failure> {
    let mut text = Vec::new();
    let mut report = Text { palette: terminal.stderr_palette, with_summary: false, columns: None };
    for reported in &checked.findings {
        report.finding(&mut text, reported)?;
    }
    // There is nobody left to tell when standard error is closed.
    let _ = std::io::stderr().write_all(&text);
    Ok(())
}

/// Each tool's text: the file itself, the bytes between a JSON bundle's commas, or YAML written anew.
fn texts_of(tools: &[ToolCheck], kind: FileKind, text: &str, format: Format) -> Result<Vec<String>, String> {
    match (kind, format) {
        (FileKind::Bundle, Format::Json) => {
            let entries = split_bundle(text).map_err(|error| error.to_string())?;
            // By number: a member that is no object has been reported and is no tool.
            let raw = |tool: &ToolCheck| entries.get(index_of(tool)).map(|entry| format!("{}\n", entry.raw));
            tools
                .iter()
                .map(|tool| raw(tool).ok_or_else(|| "the bundle cannot be taken apart".into()))
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
        // A file may have a `#` in its name, and then it is the file that is meant.
        (None, Some((path, name))) if !tool.exists() => (PathBuf::from(path), Some(name.to_owned())),
        _ => (tool.to_owned(), None),
    }
}

fn not_found(path: &Path, name: Option<&str>, loaded: &Loaded) -> Failure {
    let names: Vec<&str> = loaded.tools.iter().map(|tool| tool.check.name.as_str()).collect();
    let problem = match name {
        _ if names.is_empty() => match loaded.checked.findings.first() {
            Some(reported) => reported.finding.message.clone(),
            None => "there is no tool in it".to_owned(),
        },
        Some(name) => {
            let hint = similar::closest(name, names.iter().copied());
            let hint = hint.map(|close| format!("; did you mean `{close}`?")).unwrap_or_default();
            format!("there is no tool `{name}` in it{hint}")
        }
        None => {
            let file = path.to_string_lossy();
            let first = names.first().copied().unwrap_or_default();
            format!("there are {} tools in it; name one, as in `{file}#{first}`", names.len())
        }
    };
    Failure::at(path, problem)
}
