//! The tool model.

use uuid::Uuid;

use super::{Governance, Handler, Param, SandboxOverrides, ToolSafety};
use crate::placeholder::Template;

/// A valid tool document. `policy` decides whether it may run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub id: ToolId,
    pub name: String,
    pub description: String,
    pub category: Option<String>,
    pub tags: Vec<String>,
    pub params: Vec<Param>,
    /// In document order; for a repeated name the last value wins.
    pub statics: Vec<StaticVariable>,
    pub body: Body,
    pub overrides: SandboxOverrides,
    /// The record of an earlier writer. Never trusted; see `policy::tool_safety`.
    pub claimed_safety: Option<ToolSafety>,
    pub approval: HumanInTheLoop,
    /// `None` if the document does not say, which counts as a draft until a pass for this digest exists.
    pub draft: Option<bool>,
    pub created_ms: Option<i64>,
    pub updated_ms: Option<i64>,
    pub governance: Governance,
    /// Set by the shipped catalog. A document cannot claim it.
    pub is_builtin: bool,
}

impl ToolSpec {
    /// Whether an entry of a list of tools means this tool. A UUID is matched with the id, any other entry with the
    /// name.
    ///
    /// The author chooses both, so a tool could otherwise use another tool's name as its id, or the reverse.
    pub fn is_named_by(&self, entry: &str) -> bool {
        if ToolId::is_uuid(entry) { self.id.as_str().eq_ignore_ascii_case(entry) } else { self.name == entry }
    }

    /// The static variables as the tool sees them: one value per name, the last one.
    pub fn effective_statics(&self) -> Vec<&StaticVariable> {
        let last_of_name = |(at, variable): &(usize, &StaticVariable)| {
            !self.statics.iter().skip(at + 1).any(|later| later.name == variable.name)
        };
        self.statics.iter().enumerate().filter(last_of_name).map(|(_, variable)| variable).collect()
    }

    /// The environment variables that static variables refer to, in order, without duplicates.
    pub fn required_environment(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for name in self.effective_statics().into_iter().flat_map(|variable| variable.value.names()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// The implementation of the tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    JavaScript { code: String },
    Handler(Handler),
}

/// The tool id: given by the author, which survives renames, or derived from the name.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ToolId(String);

impl ToolId {
    /// An id given by the author: any text that is not blank.
    pub fn given(id: &str) -> Option<Self> {
        (!id.trim().is_empty()).then(|| Self(id.to_owned()))
    }

    /// UUIDv5 of the name under [`TOOL_NAMESPACE`].
    pub fn of_name(name: &str) -> Self {
        Self(Uuid::new_v5(&TOOL_NAMESPACE, name.as_bytes()).to_string())
    }

    pub fn is_uuid(text: &str) -> bool {
        text.len() == 36 && Uuid::try_parse(text).is_ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// UUIDv5 of `https://toolgate.dev/ns/tool` in the URL namespace of RFC 9562. Must never change.
pub const TOOL_NAMESPACE: Uuid = Uuid::from_u128(0xb17b_ee19_ec49_5f8a_9a72_1540_873a_9533);

/// A value that the tool reads and the model never sees.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StaticVariable {
    pub name: String,
    pub value: Template,
}

/// Whether a person must confirm each call.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HumanInTheLoop {
    pub mode: ApprovalMode,
    pub prompt_template: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum ApprovalMode {
    /// The document does not say; the operator decides by the risk.
    #[default]
    Unstated,
    Disabled,
    Required,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_namespace_is_stable() {
        assert_eq!(Uuid::new_v5(&Uuid::NAMESPACE_URL, b"https://toolgate.dev/ns/tool"), TOOL_NAMESPACE);
    }
}
