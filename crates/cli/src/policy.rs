//! Loads the policy: the shipped one, or the operator's files. An error in a file is reported, never ignored.

use std::path::PathBuf;

use toolgate::{PolicyFilesError, overrides_from, policies_from};
use toolgate_spec::Format;

use crate::{
    Failure,
    args::PolicyArgs,
    check_file::{CheckRules, WarningFilter},
    terminal::visible,
};

impl PolicyArgs {
    /// These files; those of `other` where none is given here.
    pub fn or(&self, other: &Self) -> Self {
        let first = |one: &Option<PathBuf>, other: &Option<PathBuf>| one.clone().or_else(|| other.clone());
        Self {
            profiles: first(&self.profiles, &other.profiles),
            baseline: first(&self.baseline, &other.baseline),
            overrides: first(&self.overrides, &other.overrides),
        }
    }

    /// The rules with all warnings enabled.
    pub fn rules(&self) -> Result<CheckRules, Failure> {
        let failure = |error: PolicyFilesError| Failure::new(visible(&error.to_string()));
        Ok(CheckRules {
            filter: WarningFilter::AllExcept(Vec::new()),
            stdin_format: Format::Json,
            set: policies_from(self.baseline.as_deref(), self.profiles.as_deref()).map_err(failure)?,
            overrides: self.overrides.as_deref().map(overrides_from).transpose().map_err(failure)?,
        })
    }
}
