//! Finds tools of different files with the same id or name. Runs after all files are read.

use std::collections::HashMap;

use toolgate_spec::{Code, Finding};

use crate::{
    check_file::{CheckRules, ToolIdentity, placed, secrets},
    load::DocumentSource,
    report::Reported,
};

#[derive(Debug, Default)]
pub struct Duplicates {
    files: Vec<DocumentSource>,
    tools: Vec<(usize, ToolIdentity)>,
}

impl Duplicates {
    pub fn remember(&mut self, input: &DocumentSource, tools: Vec<ToolIdentity>) {
        if tools.is_empty() {
            return;
        }
        let file = self.files.len();
        self.files.push(input.clone());
        self.tools.extend(tools.into_iter().map(|tool| (file, tool)));
    }

    /// One finding for each later tool that repeats an earlier one's id, or its name while both are published.
    pub fn findings(self, rules: &CheckRules) -> Vec<Reported> {
        let mut ids: HashMap<&str, (usize, &ToolIdentity)> = HashMap::new();
        let mut names: HashMap<&str, (usize, &ToolIdentity)> = HashMap::new();
        let mut found = Vec::new();
        for (file, tool) in &self.tools {
            let here = (*file, tool);
            let same_id = tool.given_id.as_deref().and_then(|id| earlier(&mut ids, id, here));
            let same_name = if tool.is_draft { None } else { earlier(&mut names, tool.name.as_str(), here) };
            if let Some((other, twin)) = same_id {
                found.push((*file, tool, "toolId", self.message(tool, "tool id", other, twin)));
            } else if let Some((other, twin)) = same_name {
                found.push((*file, tool, "name", self.message(tool, "name", other, twin)));
            }
        }
        let mut reported = Vec::new();
        for (file, tool, field, message) in found {
            reported.extend(self.files.get(file).map(|input| place(input, rules, tool, field, message)));
        }
        reported.into_iter().flatten().collect()
    }

    fn message(&self, tool: &ToolIdentity, what: &str, other: usize, twin: &ToolIdentity) -> String {
        let file = self.files.get(other).map(DocumentSource::label).unwrap_or_default();
        format!("`{}` has the same {what} as `{}` in `{file}`", tool.name, twin.name)
    }
}

/// The first tool under this key, unless it is this one.
fn earlier<'tool>(
    seen: &mut HashMap<&'tool str, (usize, &'tool ToolIdentity)>,
    key: &'tool str,
    here: (usize, &'tool ToolIdentity),
) -> Option<(usize, &'tool ToolIdentity)> {
    let first = *seen.entry(key).or_insert(here);
    (!std::ptr::eq(first.1, here.1)).then_some(first)
}

/// Reads the file again to find the line, because its text was dropped. Duplicates are rare.
fn place(
    input: &DocumentSource,
    rules: &CheckRules,
    tool: &ToolIdentity,
    field: &str,
    message: String,
) -> Vec<Reported> {
    let finding = Finding::new(
        Code::SpecInvariant,
        tool.at.key(field),
        message,
        "give each tool a unique id and name, or remove one of the two",
    );
    let bytes = match input {
        DocumentSource::Stdin => Vec::new(),
        DocumentSource::File { .. } => input.read().unwrap_or_default(),
    };
    let format = input.format(rules.stdin_format);
    let secrets = secrets(toolgate_spec::check(&bytes, format).tools.iter());
    placed(&input.label(), &bytes, format, vec![(Some(tool.name.clone()), finding)], secrets)
}
