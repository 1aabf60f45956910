//! Our files become one bundle, or the declarations that models and clients read.

use std::io::Write;

use serde_json::{Value, json};
use toolgate_spec::{
    FileKind, Format, build_bundle,
    project::{WireTarget, project},
    to_json_text, to_yaml_text, value_from_text,
};

use crate::{
    Ending, Failure,
    args::{DocumentFormat, ExportArgs, Wire},
    documents::{self, Document, Loaded},
    report::counted,
    terminal::{Terminal, is_deceptive, json_safe, visible},
    write::{self, Existing},
};

pub fn run(args: &ExportArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
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
    Ok(Ending::Clean)
}

/// INVARIANT: nothing is exported if anything is wrong; half a catalog is worse than none.
fn read_all(args: &ExportArgs, terminal: &Terminal) -> Result<Vec<Loaded>, Failure> {
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
        return Err(Failure::new("no tool document was found"));
    }
    Ok(files)
}

fn bundle(files: &[Loaded], format: DocumentFormat) -> Result<String, Failure> {
    let tools: Vec<&Document> = files.iter().flat_map(|file| &file.tools).collect();
    let texts: Vec<(&str, Format)> = tools.iter().map(|tool| (tool.text.as_str(), tool.format)).collect();
    // A bundle that is exported by itself keeps its own settings: JSON as written, YAML by value.
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
                .map_err(|error| Failure::new(format!("the bundle does not read back: {error}")))?;
            harmless_yaml(&value)
        }
    }
}

/// The same JSON without characters that a terminal or an editor acts upon or hides: texts have escapes for them, and
/// between texts only line breaks are left.
fn harmless_json(text: &str) -> String {
    json_safe(&text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// The same for YAML. If a text has such characters, the whole bundle is written as JSON, which is valid YAML.
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

/// The bundle's own frame as JSON; `None` for an array of tools, which has none.
fn frame_of(file: &Loaded) -> Result<Option<String>, Failure> {
    let value = value_from_text(&file.text, file.format)
        .map_err(|finding| Failure::new(visible(&finding.message)))?;
    Ok(match file.format {
        _ if value.is_array() => None,
        Format::Json => Some(file.text.to_string()),
        Format::Yaml => Some(to_json_text(&value)),
    })
}

/// Drafts travel, but are not exposed where the bundle arrives.
fn settings(tools: &[&Document]) -> Value {
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

fn declarations(files: &[Loaded], wire: Wire) -> Result<String, Failure> {
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
