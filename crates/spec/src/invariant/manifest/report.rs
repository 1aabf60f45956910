//! Collects findings about a manifest, with access to the document.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{Code, Finding, Pointer};

/// The document and the findings so far.
pub(super) struct ManifestReport<'d> {
    document: &'d Map<String, Value>,
    findings: &'d mut Vec<Finding>,
}

impl<'d> ManifestReport<'d> {
    pub fn new(document: &'d Map<String, Value>, findings: &'d mut Vec<Finding>) -> Self {
        Self { document, findings }
    }

    pub fn is_manifest(&self) -> bool {
        self.document.contains_key("handler")
    }

    /// The position of a block: under its own name in a manifest, under `x-toolgate-…` in a Safe Tool Spec.
    pub fn block(&self, name: &str) -> Pointer {
        let root = Pointer::root();
        if self.is_manifest() { root.key(name) } else { root.key(&format!("x-toolgate-{name}")) }
    }

    pub fn at(&self, at: &Pointer) -> Option<&'d Value> {
        let mut tokens = at.tokens().into_iter();
        let mut here = self.document.get(&tokens.next()?)?;
        for token in tokens {
            here = match here {
                Value::Object(members) => members.get(&token)?,
                Value::Array(items) => items.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(here)
    }

    /// The strings of a list, each with its position. The schema reports other values.
    pub fn texts(&self, at: &Pointer) -> Vec<(Pointer, &'d str)> {
        let items = self.at(at).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let placed = items.iter().enumerate();
        placed.filter_map(|(index, item)| Some((at.index(index), item.as_str()?))).collect()
    }

    /// An argument is a string, or an object with the string under `value`.
    pub fn text_of(&self, at: &Pointer) -> Pointer {
        if self.at(at).is_some_and(Value::is_object) { at.key("value") } else { at.clone() }
    }

    pub fn add(&mut self, at: &Pointer, message: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding::new(Code::SpecInvariant, at.clone(), message, remedy));
    }

    /// Runs a check and drops its duplicate findings.
    pub fn without_duplicates(&mut self, judge: impl FnOnce(&mut ManifestReport<'_>)) {
        let mut found = Vec::new();
        judge(&mut ManifestReport::new(self.document, &mut found));
        let mut said = HashSet::new();
        found.retain(|finding| said.insert((finding.at.to_string(), finding.message.clone())));
        self.findings.append(&mut found);
    }

    pub fn add_at_key(&mut self, at: &Pointer, message: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding::new(Code::SpecInvariant, at.clone(), message, remedy).at_key());
    }
}
