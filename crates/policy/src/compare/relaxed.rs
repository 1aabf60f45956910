//! Which settings did the operator's overrides, or the profile of the document, relax?

use toolgate_spec::model::ToolSpec;

use super::{Change, Direction, SettingValues, policy_changes};
use crate::{EffectivePolicy, PolicySet, UserOverrides, resolve};

/// A setting that allows more than it would without one layer of the policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Relaxation {
    /// `overrides`, or `profile NAME`.
    pub by: String,
    pub change: Change,
}

/// Compares the policy with the one that holds without the overrides, and with the one that holds without the profile. A
/// comparison is left out if the document cannot be resolved without that layer.
pub fn relaxations(
    spec: &ToolSpec,
    set: &PolicySet,
    user: Option<&UserOverrides>,
    policy: &EffectivePolicy,
) -> Vec<Relaxation> {
    let mut found = Vec::new();
    if user.is_some_and(|overrides| overrides.for_tool(spec) != Ok(None))
        && let Ok(without) = resolve(spec, set, None)
    {
        found.extend(widened("overrides", &without, policy));
    }
    if let Some(profile) = &policy.profile {
        let mut plain = spec.clone();
        plain.governance.profile = None;
        if let Ok(without) = resolve(&plain, set, user) {
            found.extend(widened(&format!("profile {profile}"), &without, policy));
        }
    }
    found
}

fn widened(by: &str, without: &EffectivePolicy, policy: &EffectivePolicy) -> Vec<Relaxation> {
    policy_changes(&SettingValues::of(without), policy)
        .into_iter()
        .filter(|change| change.direction == Direction::Widened)
        .map(|change| Relaxation { by: by.to_owned(), change })
        .collect()
}
