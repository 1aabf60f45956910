//! Writes a new document: complete, commented and without findings.

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use toolgate_spec::{Schema, model::ToolId, to_json_text};

use crate::{
    CommandExit, Failure,
    args::{DocumentFormat, NewArgs, ToolKind},
    terminal::{Terminal, visible},
    write::{self, Existing},
};

pub fn run(args: &NewArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    refuse_bad_name(&args.name)?;
    let DocumentTemplate { template, schema, extension } = start(args.kind, args.format)?;
    let path = args.dir.join(format!("{}.{extension}", args.name));
    let known = known_schema(schema, &args.dir);
    let reference = known.clone().unwrap_or_else(|| format!("{OWN_FOLDER}/{}", file_name(schema)));
    let document = document(template, &args.name, &reference);
    write::create_folder(&args.dir)?;
    write::write(&path, document.as_bytes(), Existing::Keep)?;
    let shown = path.to_string_lossy();
    let shown = visible(&shown);
    writeln!(terminal, "wrote {shown}")?;
    if known.is_none() {
        let beside = write_schema(schema, &args.dir)?;
        writeln!(terminal, "wrote {}, for editors", visible(&beside.to_string_lossy()))?;
    }
    writeln!(terminal, "\nnext: edit it, then run `toolgate check {shown}` and `toolgate test {shown}`")?;
    Ok(CommandExit::Clean)
}

/// Milliseconds since 1970; 0 if the clock is earlier.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|age| u64::try_from(age.as_millis()).ok())
        .unwrap_or_default()
}

/// Whether a name is a plain slug. Names become file names, command lines and identifiers.
pub fn is_slug(name: &str) -> bool {
    let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase());
    let ends_well = name.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit());
    let plain = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
    starts_well && ends_well && plain && name.len() <= LONGEST_NAME
}

fn refuse_bad_name(name: &str) -> Result<(), Failure> {
    if is_slug(name) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "invalid tool name `{}`; use at most {LONGEST_NAME} lower-case letters, digits, `-` and `_`, starting with a \
         letter, such as `word-count`",
        visible(name)
    )))
}

/// The template of a kind of tool.
struct DocumentTemplate {
    template: &'static str,
    schema: Schema,
    extension: &'static str,
}

/// Refuses kinds that do not run, because their documents can be neither tested nor published.
fn start(kind: ToolKind, format: DocumentFormat) -> Result<DocumentTemplate, Failure> {
    let (template, schema, extension) = match (kind, format) {
        (ToolKind::Js, DocumentFormat::Yaml) => {
            (include_str!("../../templates/js.yaml"), Schema::SafeToolSpec, "yaml")
        }
        (ToolKind::Js, DocumentFormat::Json) => {
            (include_str!("../../templates/js.json"), Schema::SafeToolSpec, "json")
        }
        (ToolKind::Cli, DocumentFormat::Yaml) => {
            (include_str!("../../templates/cli.yaml"), Schema::ToolManifest, "yaml")
        }
        (ToolKind::Cli, DocumentFormat::Json) => {
            return Err(Failure::new("command tools are YAML only; leave out `--format json`"));
        }
        (ToolKind::Http, _) => return Err(not_yet("HTTP calls")),
        (ToolKind::Grpc, _) => return Err(not_yet("gRPC calls")),
        (ToolKind::Mcp, _) => return Err(not_yet("tools of other MCP servers")),
    };
    Ok(DocumentTemplate { template, schema, extension })
}

fn not_yet(tools: &str) -> Failure {
    Failure::new(format!(
        "this version does not run {tools}; nothing was written; use --kind js or --kind cli"
    ))
}

fn document(template: &str, name: &str, schema: &str) -> String {
    template
        .replace("@SCHEMA@", schema)
        .replace("@ID@", ToolId::of_name(name).as_str())
        .replace("@NAME@", name)
        .replace("@NOW@", &now_ms().to_string())
}

/// The path of the schema in a `schemas` directory further up, where editors find it without a network.
fn known_schema(schema: Schema, dir: &Path) -> Option<String> {
    let file = file_name(schema);
    let absolute = std::path::absolute(dir).ok()?;
    let mut up = PathBuf::new();
    for folder in absolute.ancestors() {
        if folder.join("schemas").join(&file).is_file() {
            let relative = up.join("schemas").join(file);
            return Some(relative.to_string_lossy().into_owned());
        }
        up.push("..");
    }
    None
}

/// Writes the schema next to the documents, into a directory that `check` skips.
fn write_schema(schema: Schema, dir: &Path) -> Result<PathBuf, Failure> {
    let folder = dir.join(OWN_FOLDER);
    write::create_folder(&folder)?;
    let path = folder.join(file_name(schema));
    write::write(&path, to_json_text(schema.document()).as_bytes(), Existing::Replace)?;
    Ok(path)
}

fn file_name(schema: Schema) -> String {
    format!("{}.schema.json", schema.name())
}

const LONGEST_NAME: usize = 64;
const OWN_FOLDER: &str = ".toolgate";
