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
    for by in [names, tags, categories] {
        for tool in tools.clone().filter(|tool| by(&catalog.include, tool)) {
            if !chosen.iter().any(|known| known.name == tool.name) {
                chosen.push(tool);
            }
        }
    }
    chosen.retain(|tool| ![names, tags, categories].iter().any(|by| by(&catalog.exclude, tool)));
    chosen
}

/// Is a live tool exposed? What is excluded never is.
pub fn is_exposed(exposure: &Exposure, spec: &ToolSpec) -> bool {
    let is_named =
        |list: &[String]| list.iter().any(|entry| *entry == spec.name || entry == spec.id.as_str());
    !is_named(&exposure.excluded) && (exposure.auto_add || is_named(&exposure.exposed))
}

fn names(selection: &Selection, tool: &ToolSpec) -> bool {
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
