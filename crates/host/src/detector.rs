//! What does this gateway take for a secret? The shipped rules, those of the operator, without those that are switched off.

use std::{fs, sync::Arc};

use toolgate_config::{Config, model::SecretSettings};
use toolgate_secrets::{Detector, RuleFile};

use crate::OpenError;

/// Fails where a rule does not keep to its own examples: a detector with a hole is none.
pub fn open_detector(config: &Config) -> Result<Arc<Detector>, OpenError> {
    let SecretSettings { rules, disabled, .. } = &config.secrets;
    let told = |problem: String| OpenError { part: "secrets", problem };
    if rules.is_empty() && disabled.is_empty() {
        return Detector::shipped().map_err(|error| told(error.to_string()));
    }
    let mut files = Vec::with_capacity(rules.len());
    for path in rules {
        let text =
            fs::read_to_string(path).map_err(|error| told(format!("`{}`: {error}", path.display())))?;
        files.push((path.display().to_string(), text));
    }
    let files: Vec<RuleFile<'_>> = files.iter().map(|(name, text)| RuleFile { name, text }).collect();
    let disabled: Vec<&str> = disabled.iter().map(String::as_str).collect();
    Detector::with(&files, &disabled).map(Arc::new).map_err(|error| told(error.to_string()))
}
