//! The secret detector of a gateway: the shipped rules and those of the operator, without the disabled ones.

use std::{fs, sync::Arc};

use toolgate_config::{Config, model::SecretSettings};
use toolgate_secrets::{Detector, RuleFile};

use crate::OpenError;

/// Fails if a rule misses its own examples. A gateway does not start with a detector that has a gap.
pub fn open_detector(config: &Config) -> Result<Arc<Detector>, OpenError> {
    let SecretSettings { rules, disabled, .. } = &config.secrets;
    let invalid = |problem: String| OpenError { part: "secrets", problem };
    if rules.is_empty() && disabled.is_empty() {
        return Detector::shipped().map_err(|error| invalid(error.to_string()));
    }
    let mut files = Vec::with_capacity(rules.len());
    for path in rules {
        let text =
            fs::read_to_string(path).map_err(|error| invalid(format!("`{}`: {error}", path.display())))?;
        files.push((path.display().to_string(), text));
    }
    let files: Vec<RuleFile<'_>> = files.iter().map(|(name, text)| RuleFile { name, text }).collect();
    let disabled: Vec<&str> = disabled.iter().map(String::as_str).collect();
    Detector::with(&files, &disabled).map(Arc::new).map_err(|error| invalid(error.to_string()))
}
