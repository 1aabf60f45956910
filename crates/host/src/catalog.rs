//! Which tools are shipped, and what do the presets name?

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

/// All of them, in the order of their files.
pub fn shipped_tools() -> &'static [ShippedTool] {
    static SHIPPED: LazyLock<Vec<ShippedTool>> =
        LazyLock::new(|| TOOLS.iter().filter_map(|(_, text)| read(text)).collect());
    &SHIPPED
}

/// The presets and what they name, in listing order. `None`: there is no such preset.
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

/// The shipped tool that a tool of this name would be taken for: in whatever letter case, and whichever letters look the same.
pub fn reserved_by(name: &str) -> Option<&'static str> {
    static LOOKS: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
        let looks = |known: &'static str| name_looks(known).into_iter().map(move |look| (look, known));
        TOOLS.iter().flat_map(|&(known, _)| looks(known)).collect()
    });
    name_looks(name).iter().find_map(|look| LOOKS.get(look)).copied()
}

/// The digest that a tool of this name must have. `None` for a name that is not reserved, and for a shipped tool that is not in
/// order itself: then no document may have its name.
pub fn digest_of(name: &str) -> Option<ToolDigest> {
    shipped_tools().iter().find(|tool| tool.name == name).map(|tool| tool.digest)
}

/// Why a document may not have its name: the name belongs to a shipped tool, and this is another tool.
pub fn reserved_name(check: &ToolCheck) -> Option<Finding> {
    let shipped = reserved_by(&check.name)?;
    let own = check.spec.as_ref().map(|spec| digest(spec, &check.document));
    if own.is_some() && own == digest_of(&check.name) {
        return None;
    }
    let message = if check.name == shipped {
        format!("`{shipped}` is the name of a shipped tool and this is another one")
    } else {
        format!("`{}` can be taken for the shipped tool `{shipped}`", check.name)
    };
    let remedy = format!(
        "rename this tool; to use the shipped one, add `{shipped}` to `catalog.include.names` in toolgate.yaml"
    );
    Some(Finding::new(Code::ReservedName, Pointer::new("/name"), message, remedy))
}

/// Writes the little workspace that shipped tools are tested on, which nobody else's files are in.
pub fn write_fixtures(folder: &Path) -> io::Result<()> {
    for (name, bytes) in FIXTURES {
        // A repository inside of a repository is kept under another name.
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

/// Shipped tools that are not as the ledger has them.
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
    // What is not in the ledger as it stands here was changed by somebody who did not mean to ship it.
    let is_ours = ledger().get(name).is_some_and(|known| *known == digest.to_string());
    is_ours.then_some(ShippedTool { name, check, digest })
}

/// Safe Tool Specs are JSON, manifests of commands are YAML.
fn format_of(text: &str) -> Format {
    if text.starts_with('{') { Format::Json } else { Format::Yaml }
}

/// Every shipped tool with the digest that it was reviewed with.
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
