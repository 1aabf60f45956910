//! Finds settings that the overrides or the document's profile relaxed.

use toolgate_spec::model::ToolSpec;

use super::{ChangeDirection, PolicyChange, SettingValues, policy_changes};
use crate::{EffectivePolicy, PolicySet, UserOverrides, resolve};

/// A setting that allows more than it would without one layer of the policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Relaxation {
    /// `overrides`, or `profile NAME`.
    pub by: String,
    pub change: PolicyChange,
}

/// Compares the policy with the one without overrides, and with the one without the profile. Omits a comparison if the
/// document cannot be resolved without that layer.
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
        .filter(|change| change.direction == ChangeDirection::Widened)
        .map(|change| Relaxation { by: by.to_owned(), change })
        .collect()
}
