//! The governance blocks: top-level in a manifest, `x-toolgate-…` in a Safe Tool Spec.

use serde_json::Value;

use super::CapabilityPatch;
use crate::field_path::FieldPattern;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Governance {
    pub classification: Option<Classification>,
    /// `Some(false)`: not served unless the operator exposes the tool by name or id. A bundle can set it for its
    /// tools.
    pub exposed: Option<bool>,
    /// A named profile, applied between baseline and overrides.
    pub profile: Option<String>,
    pub permissions: Permissions,
    /// A JSON Schema for the arguments, instead of `params`. `additionalProperties` is false at the top, even if the
    /// document omits it.
    pub input: Option<Value>,
    /// The arguments of the Local Pass if `input` is used.
    pub test_input: Option<Value>,
    pub output: Option<Value>,
    /// `None`: no field policy. `Some`: fields without a rule are removed.
    pub output_policy: Option<Vec<OutputRule>>,
    pub pii_fields: Vec<FieldPattern>,
    pub touches: Touches,
    pub capability: CapabilityPatch,
}

/// The arguments that name paths or hosts, which are checked before the tool runs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Touches {
    /// Paths to read.
    pub read: Vec<FieldPattern>,
    /// Paths to write, create or remove.
    pub write: Vec<FieldPattern>,
    /// URLs or host names to connect to.
    pub connect: Vec<FieldPattern>,
}

/// The effect of a call, ordered by severity.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Classification {
    Read,
    Write,
    Destructive,
}

impl Classification {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Destructive];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permissions {
    /// Always required, all of them.
    pub required: Vec<String>,
    pub elevated: Vec<Elevation>,
}

/// Further permissions that are required if the input matches a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Elevation {
    pub when: Value,
    pub require: Vec<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OutputRule {
    pub pattern: FieldPattern,
    pub action: OutputAction,
}

impl OutputRule {
    /// Returns the rule that decides about a field: the most specific that covers it, then the strictest. `None`
    /// means that the field is removed.
    pub fn deciding<'r, S: AsRef<str>>(rules: &'r [Self], path: &[S]) -> Option<&'r Self> {
        rules
            .iter()
            .filter_map(|rule| Some((rule.pattern.specificity_at(path)?, rule.action, rule)))
            .max_by_key(|(specificity, action, _)| (*specificity, *action))
            .map(|(_, _, rule)| rule)
    }
}

/// The action for a field, ordered by strictness.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum OutputAction {
    Allow,
    Mask,
    Redact,
}

impl OutputAction {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Mask, Self::Redact];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Mask => "mask",
            Self::Redact => "redact",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }
}
