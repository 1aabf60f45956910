//! Selects the tools that clients may see: the catalog chooses shipped tools, then `exposure` applies to all tools.

use toolgate_config::model::{Catalog, CatalogSelection, Exposure};
use toolgate_spec::model::ToolSpec;

/// The selected shipped tools, in listing order: preset base → included names → tags → categories → excluded names → tags →
/// categories.
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

/// Whether a live tool is exposed. Exclusion wins.
pub fn is_exposed(exposure: &Exposure, spec: &ToolSpec) -> bool {
    // Matches more than `is_named_by`: an exclusion applies by name and by id, and ids ignore case.
    let excludes = |entry: &String| *entry == spec.name || spec.id.as_str().eq_ignore_ascii_case(entry);
    let is_excluded = exposure.excluded.iter().any(excludes);
    let is_added = exposure.auto_add && spec.governance.exposed != Some(false);
    !is_excluded && (is_added || exposure.exposed.iter().any(|entry| spec.is_named_by(entry)))
}

fn by_name(selection: &CatalogSelection, tool: &ToolSpec) -> bool {
    selection.names.iter().any(|entry| tool.is_named_by(entry))
}

fn tags(selection: &CatalogSelection, tool: &ToolSpec) -> bool {
    tool.tags.iter().any(|tag| selection.tags.contains(tag))
}

fn categories(selection: &CatalogSelection, tool: &ToolSpec) -> bool {
    tool.category.as_ref().is_some_and(|category| selection.categories.contains(category))
}

#[cfg(test)]
mod tests;
