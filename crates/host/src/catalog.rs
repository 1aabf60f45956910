//! The shipped tools and the presets that select them.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::Path,
    sync::LazyLock,
};

use serde::Deserialize;
use toolgate_spec::{Code, Finding, Format, Pointer, ToolCheck, ToolDigest, check_text, digest, name_looks};

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

/// A shipped tool.
#[derive(Debug)]
pub struct ShippedTool {
    pub name: &'static str,
    pub check: ToolCheck,
    pub digest: ToolDigest,
}

/// All shipped tools, ordered by file.
pub fn shipped_tools() -> &'static [ShippedTool] {
    static SHIPPED: LazyLock<Vec<ShippedTool>> =
        LazyLock::new(|| TOOLS.iter().filter_map(|(_, text)| read(text)).collect());
    &SHIPPED
}

/// The tools of a preset, in listing order. `None`: there is no such preset.
pub fn preset(name: &str) -> Option<Vec<&'static str>> {
    match name {
        "none" => Some(Vec::new()),
        "everything" => Some(shipped_tools().iter().map(|tool| tool.name).collect()),
        _ => presets().get(name).map(|preset| preset.tools.iter().map(String::as_str).collect()),
    }
}

pub fn preset_names() -> impl Iterator<Item = &'static str> {
    presets().keys().map(String::as_str)
}

/// The shipped tool whose name looks the same, ignoring case and letters that look alike.
pub fn reserved_by(name: &str) -> Option<&'static str> {
    static LOOKS: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
        let looks = |known: &'static str| name_looks(known).into_iter().map(move |look| (look, known));
        TOOLS.iter().flat_map(|&(known, _)| looks(known)).collect()
    });
    name_looks(name).iter().find_map(|look| LOOKS.get(look)).copied()
}

/// The digest that a tool of this name must have. `None` for a name that is not reserved, and for an altered shipped tool; no
/// document may use the name of the latter.
pub fn digest_of(name: &str) -> Option<ToolDigest> {
    shipped_tools().iter().find(|tool| tool.name == name).map(|tool| tool.digest)
}

/// The finding for a document that is not the shipped tool whose name it has.
pub fn reserved_name(check: &ToolCheck) -> Option<Finding> {
    let shipped = reserved_by(&check.name)?;
    let own = check.spec.as_ref().map(|spec| digest(spec, &check.document));
    if own.is_some() && own == digest_of(&check.name) {
        return None;
    }
    let message = if check.name == shipped {
        format!("`{shipped}` is the name of a shipped tool, and this is a different tool")
    } else {
        format!("`{}` can be mistaken for the shipped tool `{shipped}`", check.name)
    };
    let remedy = format!(
        "rename this tool; to use the shipped one, add `{shipped}` to `catalog.include.names` in toolgate.yaml"
    );
    Some(Finding::new(Code::ReservedName, Pointer::new("/name"), message, remedy))
}

/// Writes the workspace that shipped tools are tested on. It contains only fixtures.
pub fn write_fixtures(folder: &Path) -> io::Result<()> {
    for (name, bytes) in FIXTURES {
        // Git cannot store a `.git` directory, so it has another name in the repository.
        let name =
            name.strip_prefix("dot-git/").map_or_else(|| (*name).to_owned(), |rest| format!(".git/{rest}"));
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Shipped tools whose digest differs from the ledger.
pub fn altered() -> Vec<&'static str> {
    let is_shipped = |name: &str| shipped_tools().iter().any(|tool| tool.name == name);
    TOOLS.iter().map(|(name, _)| *name).filter(|name| !is_shipped(name)).collect()
}

fn read(text: &'static str) -> Option<ShippedTool> {
    let mut check = check_text(text, format_of(text)).tools.into_iter().next()?;
    let spec = check.spec.as_mut()?;
    spec.is_builtin = true;
    let name = TOOLS.iter().find(|(name, _)| *name == spec.name).map(|(name, _)| *name)?;
    let digest = digest(spec, &check.document);
    // A digest that differs from the ledger means that the file was changed without a review.
    let is_ours = ledger().get(name).is_some_and(|known| *known == digest.to_string());
    is_ours.then_some(ShippedTool { name, check, digest })
}

/// Safe Tool Specs are JSON; manifests of commands are YAML.
fn format_of(text: &str) -> Format {
    if text.starts_with('{') { Format::Json } else { Format::Yaml }
}

/// The reviewed digest of every shipped tool.
fn ledger() -> &'static BTreeMap<String, String> {
    static READ: LazyLock<BTreeMap<String, String>> =
        LazyLock::new(|| serde_json::from_str(INTEGRITY).unwrap_or_default());
    &READ
}

#[derive(Debug, Deserialize)]
struct Preset {
    tools: Vec<String>,
}

fn presets() -> &'static BTreeMap<String, Preset> {
    static READ: LazyLock<BTreeMap<String, Preset>> =
        LazyLock::new(|| serde_saphyr::from_str(PRESETS).unwrap_or_default());
    &READ
}

#[cfg(test)]
mod tests;
