//! Which policy is everything resolved against? What we ship, or the operator's own files; a mistake in them is told, never guessed around.

use std::path::PathBuf;

use toolgate::{PolicyFilesError, overrides_from, policies_from};
use toolgate_spec::Format;

use crate::{
    Failure,
    args::PolicyArgs,
    check_file::{Filter, Rules},
    terminal::visible,
};

impl PolicyArgs {
    /// These files, and those of `other` where none is named here.
    pub fn or(&self, other: &Self) -> Self {
        let first = |one: &Option<PathBuf>, other: &Option<PathBuf>| one.clone().or_else(|| other.clone());
        Self {
            profiles: first(&self.profiles, &other.profiles),
            baseline: first(&self.baseline, &other.baseline),
            overrides: first(&self.overrides, &other.overrides),
        }
    }

    /// Rules that let every warning through.
    pub fn rules(&self) -> Result<Rules, Failure> {
        let told = |error: PolicyFilesError| Failure::new(visible(&error.to_string()));
        Ok(Rules {
            filter: Filter::AllExcept(Vec::new()),
            stdin_format: Format::Json,
            set: policies_from(self.baseline.as_deref(), self.profiles.as_deref()).map_err(told)?,
            overrides: self.overrides.as_deref().map(overrides_from).transpose().map_err(told)?,
        })
    }
}
