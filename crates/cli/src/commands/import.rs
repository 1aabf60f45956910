//! Imports documents as drafts, one file per tool, all or none.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolgate_spec::{Format, edit, stamp};

use crate::{
    CommandExit, Failure,
    args::{ImportArgs, OutputFormat},
    check_file::CheckRules,
    documents::{self, ToolDocument},
    load::{self, GatheredFiles},
    report::counted,
    terminal::{Terminal, visible},
    write::{self, Existing},
};

pub fn run(args: &ImportArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let rules = args.policy.rules()?;
    let (documents, faulty) = sound_documents(args, &rules, terminal)?;
    if faulty > 0 && !args.keep_going {
        return Err(Failure::Findings(format!(
            "nothing was imported: {} errors; `--keep-going` imports the rest",
            counted_have(faulty)
        )));
    }
    if documents.is_empty() && faulty == 0 {
        return Err(Failure::new("no tool document found"));
    }
    let planned = plan(&documents, args)?;
    write::create_folder(&args.into)?;
    write_all(&planned, args)?;
    if args.format == OutputFormat::Json {
        let imported = planned.iter().map(|target| json!({ "name": target.name, "file": target.path }));
        terminal.data(json!({ "imported": imported.collect::<Vec<_>>(), "faulty": faulty }));
        return Ok(if faulty > 0 { CommandExit::Findings } else { CommandExit::Clean });
    }
    for target in &planned {
        writeln!(terminal, "{} -> {}", visible(&target.name), visible(&target.path.to_string_lossy()))?;
    }
    let into = args.into.to_string_lossy();
    let tools = counted(planned.len(), "tool");
    writeln!(terminal, "{tools} imported into {} as drafts", visible(&into))?;
    if faulty > 0 {
        writeln!(terminal, "{} errors and not imported", counted_have(faulty))?;
        return Ok(CommandExit::Findings);
    }
    Ok(CommandExit::Clean)
}

struct ImportTarget {
    name: String,
    path: PathBuf,
    text: String,
}

/// The documents without errors, and the number of those with errors. Prints the errors.
fn sound_documents(
    args: &ImportArgs,
    rules: &CheckRules,
    terminal: &Terminal,
) -> Result<(Vec<ToolDocument>, usize), Failure> {
    let GatheredFiles { inputs, unreadable } = load::gather(&args.files);
    if let Some(problem) = unreadable.first() {
        return Err(Failure::new(visible(&problem.problem)));
    }
    let (mut sound, mut faulty) = (Vec::new(), 0);
    for input in &inputs {
        let loaded = documents::load(input, rules)?;
        if loaded.checked.errors > 0 {
            documents::complain(&loaded.checked, terminal)?;
        }
        if loaded.tools.is_empty() && loaded.checked.errors > 0 {
            faulty += 1;
        }
        for document in loaded.tools {
            if loaded.checked.tools.iter().any(|sound| sound.at == document.check.at) {
                sound.push(document);
            } else {
                faulty += 1;
            }
        }
    }
    Ok((sound, faulty))
}

/// Checks all target paths before the first file is written.
fn plan(documents: &[ToolDocument], args: &ImportArgs) -> Result<Vec<ImportTarget>, Failure> {
    let mut taken: HashMap<String, &str> = HashMap::new();
    let mut targets = Vec::new();
    for document in documents {
        let name = &document.check.name;
        let path = args.into.join(file_name(name, document.format));
        // On case-insensitive disks `Foo.json` and `foo.json` are one file.
        let folded = path.to_string_lossy().to_ascii_lowercase();
        if let Some(other) = taken.insert(folded, &document.file) {
            let problem =
                format!("`{name}` is in `{other}` and in `{}`; nothing was imported", document.file);
            return Err(Failure::at(&path, problem));
        }
        match fs::symlink_metadata(&path) {
            Ok(_) if !args.force => {
                let problem = "this file exists; nothing was imported; use --force to overwrite it";
                return Err(Failure::at(&path, problem));
            }
            Ok(there) if there.is_symlink() => {
                let problem = "this is a symlink; nothing was imported; remove it first";
                return Err(Failure::at(&path, problem));
            }
            _ => {}
        }
        targets.push(ImportTarget { name: name.clone(), text: as_draft(document)?, path });
    }
    Ok(targets)
}

/// The document's text as a draft. A pass recorded elsewhere does not count; everything else stays as written.
fn as_draft(document: &ToolDocument) -> Result<String, Failure> {
    let mut changes = stamp(&document.check.document, super::new::now_ms());
    changes.push(("draft", Some(Value::Bool(true))));
    // The new file has no bundle settings, so the tool itself must say that it is not exposed.
    let is_hidden = document.check.spec.as_ref().is_some_and(|spec| spec.governance.exposed == Some(false));
    if is_hidden {
        let is_manifest = document.check.document.contains_key("handler");
        let key = if is_manifest { "exposed" } else { "x-toolgate-exposed" };
        changes.push((key, Some(Value::Bool(false))));
    }
    edit(&document.text, document.format, &changes).map_err(|error| {
        Failure::at(Path::new(&document.file), format!("`{}`: {error}", document.check.name))
    })
}

/// INVARIANT: if one file cannot be written, the files created before it are removed.
fn write_all(targets: &[ImportTarget], args: &ImportArgs) -> Result<(), Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    let mut made: Vec<&Path> = Vec::new();
    for target in targets {
        let is_new = fs::symlink_metadata(&target.path).is_err();
        if let Err(failure) = write::write(&target.path, target.text.as_bytes(), existing) {
            let left: Vec<_> = made.iter().filter(|path| fs::remove_file(path).is_err()).collect();
            return Err(match left.first() {
                None => failure,
                Some(path) => Failure::new(format!(
                    "{failure}; `{}` could not be removed again",
                    visible(&path.to_string_lossy())
                )),
            });
        }
        if is_new {
            made.push(&target.path);
        }
    }
    Ok(())
}

/// A safe file name for an untrusted tool name. A digest keeps changed names apart.
fn file_name(name: &str, format: Format) -> String {
    let extension = match format {
        Format::Json => "json",
        Format::Yaml => "yaml",
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    // Other commands would take a file called `-rf.json` for an option.
    if !name.is_empty() && !name.starts_with('-') && name.len() <= LONGEST && name.bytes().all(is_plain) {
        return format!("{name}.{extension}");
    }
    let plain: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .take(LONGEST)
        .collect();
    let digits = Sha256::digest(name).iter().take(4).fold(String::new(), |mut digits, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    format!("{}-{digits}.{extension}", plain.trim_matches('-')).trim_start_matches('-').to_owned()
}

fn counted_have(count: usize) -> String {
    format!("{} {}", counted(count, "document"), if count == 1 { "has" } else { "have" })
}

const LONGEST: usize = 100;

#[cfg(test)]
mod tests {
    use toolgate_spec::Format;

    use super::file_name;

    #[test]
    fn tool_name_cannot_escape_the_directory() {
        assert_eq!(file_name("word-count", Format::Json), "word-count.json");
        for name in ["../../etc/passwd", "/etc/passwd", "..", ".bashrc", "a/b", "nul\0", "漢字", " ", "-rf"]
        {
            let file = file_name(name, Format::Yaml);
            assert!(file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)), "{file}");
            assert!(!file.starts_with('-'), "{file}");
            assert!(file.strip_suffix(".yaml").is_some_and(|stem| !stem.contains('.')), "{file}");
        }
        assert_ne!(file_name("a b", Format::Json), file_name("a/b", Format::Json));
    }
}
