//! Writes documents as one bundle, or as the declarations that models and clients read.

use std::io::Write;

use serde_json::{Value, json};
use toolgate_spec::{
    FileKind, Format, build_bundle,
    project::{WireTarget, project},
    to_json_text, to_yaml_text, value_from_text,
};

use crate::{
    CommandExit, Failure,
    args::{DocumentFormat, ExportArgs, Wire},
    documents::{self, LoadedFile, ToolDocument},
    report::counted,
    terminal::{Terminal, is_deceptive, json_safe, visible},
    write::{self, Existing},
};

pub fn run(args: &ExportArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let files = read_all(args, terminal)?;
    let text = match args.wire {
        Some(wire) => harmless_json(&declarations(&files, wire)?),
        None => bundle(&files, args.format)?,
    };
    match &args.output {
        None => terminal.write_all(text.as_bytes())?,
        Some(path) => {
            let existing = if args.force { Existing::Replace } else { Existing::Keep };
            write::write(path, text.as_bytes(), existing)?;
            let tools = counted(files.iter().map(|file| file.tools.len()).sum(), "tool");
            Terminal::note(&format!("{tools} written to {}", visible(&path.to_string_lossy())));
        }
    }
    Ok(CommandExit::Clean)
}

/// INVARIANT: nothing is exported if any document has errors. A partial catalog would look complete.
fn read_all(args: &ExportArgs, terminal: &Terminal) -> Result<Vec<LoadedFile>, Failure> {
    let rules = args.policy.rules()?;
    let files = documents::gather(&args.paths, &rules)?;
    let mut errors = 0;
    for loaded in files.iter().filter(|loaded| loaded.checked.errors > 0) {
        documents::complain(&loaded.checked, terminal)?;
        errors += loaded.checked.errors;
    }
    if errors > 0 {
        return Err(Failure::Findings(format!("nothing was exported: {}", counted(errors, "error"))));
    }
    if files.is_empty() {
        return Err(Failure::new("no tool document found"));
    }
    Ok(files)
}

fn bundle(files: &[LoadedFile], format: DocumentFormat) -> Result<String, Failure> {
    let tools: Vec<&ToolDocument> = files.iter().flat_map(|file| &file.tools).collect();
    let texts: Vec<(&str, Format)> = tools.iter().map(|tool| (tool.text.as_str(), tool.format)).collect();
    // A single bundle keeps its settings: JSON as written, YAML by value.
    let frame = match files {
        [only] if only.kind == FileKind::Bundle => frame_of(only)?,
        _ => None,
    };
    let frame = frame.unwrap_or_else(|| to_json_text(&settings(&tools)));
    let text =
        build_bundle(&texts, Some(&frame)).map_err(|error| Failure::new(visible(&error.to_string())))?;
    match format {
        DocumentFormat::Json => Ok(harmless_json(&text)),
        DocumentFormat::Yaml => {
            let value: Value = serde_json::from_str(&text)
                .map_err(|error| Failure::new(format!("the bundle cannot be parsed again: {error}")))?;
            harmless_yaml(&value)
        }
    }
}

/// JSON with the same value, without characters that terminals or editors interpret or hide. Strings use escapes;
/// between strings only line breaks remain.
fn harmless_json(text: &str) -> String {
    json_safe(&text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// YAML without such characters. If a string contains one, the whole bundle is written as JSON, which is valid YAML.
fn harmless_yaml(value: &Value) -> Result<String, Failure> {
    let yaml = to_yaml_text(value);
    if !yaml.chars().any(|character| character != '\n' && is_deceptive(character)) {
        return Ok(yaml);
    }
    let json = harmless_json(&to_json_text(value));
    match value_from_text(&json, Format::Yaml) {
        Ok(read) if read == *value => Ok(json),
        _ => Err(Failure::Findings(
            "a text has characters that YAML cannot write as escapes; export it as JSON".to_owned(),
        )),
    }
}

/// The bundle without its tools, as JSON. `None` for a plain array of tools.
fn frame_of(file: &LoadedFile) -> Result<Option<String>, Failure> {
    let value = value_from_text(&file.text, file.format)
        .map_err(|finding| Failure::new(visible(&finding.message)))?;
    Ok(match file.format {
        _ if value.is_array() => None,
        Format::Json => Some(file.text.to_string()),
        Format::Yaml => Some(to_json_text(&value)),
    })
}

/// The settings of a new bundle. It contains drafts but does not expose them.
fn settings(tools: &[&ToolDocument]) -> Value {
    let exposed: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool.check.spec.as_ref())
        .filter(|spec| spec.draft == Some(false))
        .map(|spec| spec.id.as_str())
        .collect();
    json!({
        "toolSpecs": [],
        "toolMcpServerSetting": { "autoAdd": false, "exposedToolIds": exposed, "excludedToolIds": [] },
    })
}

fn declarations(files: &[LoadedFile], wire: Wire) -> Result<String, Failure> {
    let target = match wire {
        Wire::Mcp => WireTarget::Mcp,
        Wire::Openai => WireTarget::OpenAi,
        Wire::Anthropic => WireTarget::Anthropic,
        Wire::Google => WireTarget::Google,
    };
    let mut declared = Vec::new();
    for tool in files.iter().flat_map(|file| &file.tools) {
        let Some(spec) = &tool.check.spec else { continue };
        let declaration = project(spec, target).map_err(|error| {
            Failure::Findings(format!(
                "`{}` cannot be declared to {}: {}",
                visible(&spec.name),
                target.name(),
                visible(&error.to_string())
            ))
        })?;
        declared.push(declaration);
    }
    Ok(to_json_text(&Value::Array(declared)))
}
