//! The lifecycle state of a document: draft, failed, missing variables, or active.

use toolgate_spec::model::ToolSpec;

use crate::secret_source::{SecretConsumer, SecretSource};

/// The current state of a document in this gateway. Only `Active` is served.
pub fn state(
    spec: &ToolSpec,
    current: Digests<'_>,
    record: Option<&PassRecord>,
    secrets: &dyn SecretSource,
) -> Lifecycle {
    let record = record.filter(|record| record.document_digest == current.document);
    let of_this_policy = record.filter(|record| record.policy_digest == current.policy);
    // Before the draft flag: a failed run leaves the document a draft, and its author needs the error.
    if let Some(PassRecord { outcome: PassOutcome::Failed { error }, .. }) = of_this_policy {
        return Lifecycle {
            state: LifecycleState::TestFailed,
            missing: Vec::new(),
            error: Some(error.clone()),
            because: "the last test run failed",
        };
    }
    if spec.draft == Some(true) {
        return draft("the document says that it is a draft");
    }
    match (record, of_this_policy) {
        (None, _) => return draft("no test run for this document has passed"),
        (Some(_), None) => return draft("the policy has changed since the last test run"),
        (Some(_), Some(_)) => {}
    }
    let consumer = SecretConsumer::Tool(&spec.name);
    let missing: Vec<String> = spec
        .required_environment()
        .into_iter()
        .filter(|name| secrets.secret(name, consumer).is_none_or(|value| value.trim().is_empty()))
        .map(str::to_owned)
        .collect();
    if !missing.is_empty() {
        let because = "values that it needs are not set";
        return Lifecycle { state: LifecycleState::MissingRequirements, missing, error: None, because };
    }
    Lifecycle {
        state: LifecycleState::Active,
        missing,
        error: None,
        because: "passed, and nothing is missing",
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lifecycle {
    pub state: LifecycleState,
    /// The names of the values to set, with `toolgate secret set` or in the environment.
    pub missing: Vec<String>,
    /// The error of the failed test run.
    pub error: Option<String>,
    pub because: &'static str,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LifecycleState {
    Draft,
    TestFailed,
    MissingRequirements,
    Active,
}

impl LifecycleState {
    pub const ALL: [Self; 4] = [Self::Draft, Self::TestFailed, Self::MissingRequirements, Self::Active];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "DRAFT",
            Self::TestFailed => "TEST_FAILED",
            Self::MissingRequirements => "MISSING_REQUIREMENTS",
            Self::Active => "ACTIVE",
        }
    }

    pub const fn is_exposed(self) -> bool {
        matches!(self, Self::Active)
    }
}

/// The current document and policy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Digests<'d> {
    pub document: &'d str,
    pub policy: &'d str,
}

/// The latest test run of a document. It is valid for exactly this document and this policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PassRecord {
    pub document_digest: String,
    pub policy_digest: String,
    pub outcome: PassOutcome,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PassOutcome {
    Passed,
    Failed { error: String },
}

fn draft(because: &'static str) -> Lifecycle {
    Lifecycle { state: LifecycleState::Draft, missing: Vec::new(), error: None, because }
}

#[cfg(test)]
mod tests;
