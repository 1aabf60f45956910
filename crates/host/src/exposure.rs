//! Which tools may be seen at all? Preset, then what is included, then what is excluded; then what is exposed.

use toolgate_config::model::{Catalog, Exposure, Selection};
use toolgate_spec::model::ToolSpec;

/// The shipped tools that are chosen, in listing order: preset base → included names → tags → categories → excluded names
/// → tags → categories.
pub fn choose<'t>(
    catalog: &Catalog,
    base: &[&str],
    tools: &(impl Iterator<Item = &'t ToolSpec> + Clone),
) -> Vec<&'t ToolSpec> {
    let mut chosen: Vec<&ToolSpec> =
        base.iter().filter_map(|name| tools.clone().find(|tool| tool.name == *name)).collect();
    for by in [by_name, tags, categories] {
        for tool in tools.clone().filter(|tool| by(&catalog.include, tool)) {
            if !chosen.iter().any(|known| known.name == tool.name) {
                chosen.push(tool);
            }
        }
    }
    chosen.retain(|tool| ![by_name, tags, categories].iter().any(|by| by(&catalog.exclude, tool)));
    chosen
}

/// Is a live tool exposed? What is excluded never is.
pub fn is_exposed(exposure: &Exposure, spec: &ToolSpec) -> bool {
    // Wider than `names`: an exclusion counts by name and by id, and ids are compared without letter case.
    let excludes = |entry: &String| *entry == spec.name || spec.id.as_str().eq_ignore_ascii_case(entry);
    let is_excluded = exposure.excluded.iter().any(excludes);
    !is_excluded && (exposure.auto_add || exposure.exposed.iter().any(|entry| names(entry, spec)))
}

/// An author chooses both the name and the id of a tool. So an entry is either an id, which is a UUID, or a name: no tool passes
/// for another one by an id that is the other one's name, or by a name that is the other one's id.
fn names(entry: &str, spec: &ToolSpec) -> bool {
    if is_uuid(entry) { spec.id.as_str().eq_ignore_ascii_case(entry) } else { spec.name == entry }
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
}

fn by_name(selection: &Selection, tool: &ToolSpec) -> bool {
    selection.names.contains(&tool.name)
}

fn tags(selection: &Selection, tool: &ToolSpec) -> bool {
    tool.tags.iter().any(|tag| selection.tags.contains(tag))
}

fn categories(selection: &Selection, tool: &ToolSpec) -> bool {
    tool.category.as_ref().is_some_and(|category| selection.categories.contains(category))
}

#[cfg(test)]
mod tests;
