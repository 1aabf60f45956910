//! The blocks that a manifest has of its own, and that a Safe Tool Spec carries as `x-toolgate-…`.

use serde_json::Value;

use super::CapabilityPatch;
use crate::field_path::FieldPattern;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Governance {
    pub classification: Option<Classification>,
    /// `Some(false)`: not served unless the operator exposes the tool by name or id. A bundle can say it for its tools.
    pub exposed: Option<bool>,
    /// A named profile between baseline and overrides.
    pub profile: Option<String>,
    pub permissions: Permissions,
    /// A JSON Schema for the arguments, instead of `params`. Closed: `additionalProperties` is false at the top,
    /// also where the document leaves it out.
    pub input: Option<Value>,
    /// What the Local Pass sends when `input` is used.
    pub test_input: Option<Value>,
    pub output: Option<Value>,
    /// `None`: no field policy. `Some`: what no rule names does not leave.
    pub output_policy: Option<Vec<OutputRule>>,
    pub pii_fields: Vec<FieldPattern>,
    pub touches: Touches,
    pub capability: CapabilityPatch,
}

/// Which arguments name something outside, so that it can be judged before the tool runs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Touches {
    /// Paths that are read.
    pub read: Vec<FieldPattern>,
    /// Paths that are written, made or removed.
    pub write: Vec<FieldPattern>,
    /// URLs or host names that are reached.
    pub connect: Vec<FieldPattern>,
}

/// What a call can do to the world; ordered by consequence.
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
    /// All of these, always.
    pub required: Vec<String>,
    pub elevated: Vec<Elevation>,
}

/// More permissions when the input fits a schema.
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
    /// The rule that decides about a field: the most specific that covers it, and of equals the strictest.
    /// `None` means that the field does not leave.
    pub fn deciding<'r, S: AsRef<str>>(rules: &'r [Self], path: &[S]) -> Option<&'r Self> {
        rules
            .iter()
            .filter_map(|rule| Some((rule.pattern.specificity_at(path)?, rule.action, rule)))
            .max_by_key(|(specificity, action, _)| (*specificity, *action))
            .map(|(_, _, rule)| rule)
    }
}

/// What happens to a field; the order is the order of strictness.
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
