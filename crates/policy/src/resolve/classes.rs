//! Merges the class lists: (inherited ∪ added) − removed. No entry may be in both lists.

use std::{collections::HashSet, sync::Arc};

use toolgate_spec::{Finding, Pointer, model::ToolSpec};

use super::reject;
use crate::{
    base_policy::{self, BasePolicy},
    effective::ClassPolicy,
    setting::{Setting, SettingList, SettingOrigin},
};

pub(super) fn merge(spec: &ToolSpec, ground: &BasePolicy, findings: &mut Vec<Finding>) -> ClassPolicy {
    let overrides = &spec.overrides;
    let lists = [
        &overrides.add_allow_classes,
        &overrides.remove_allow_classes,
        &overrides.add_deny_classes,
        &overrides.remove_deny_classes,
    ];
    if lists.iter().all(|list| list.is_empty()) {
        refuse_overlap(&ground.overlap, findings);
        return ground.classes.clone();
    }
    let merged = ClassPolicy {
        allow: apply(&ground.classes.allow, &overrides.add_allow_classes, &overrides.remove_allow_classes),
        deny: apply(&ground.classes.deny, &overrides.add_deny_classes, &overrides.remove_deny_classes),
    };
    refuse_overlap(&base_policy::overlap(&merged), findings);
    merged
}

fn apply(below: &SettingList<Arc<str>>, add: &[String], remove: &[String]) -> SettingList<Arc<str>> {
    if add.is_empty() && remove.is_empty() {
        return below.clone();
    }
    // A set keeps this linear: a document may add and remove a thousand entries each.
    let removed: HashSet<&str> = remove.iter().map(String::as_str).collect();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut entries: Vec<Setting<Arc<str>>> = Vec::new();
    for entry in below.entries.iter() {
        if !removed.contains(entry.value.as_ref()) && seen.insert(entry.value.as_ref()) {
            entries.push(entry.clone());
        }
    }
    for text in add {
        if !removed.contains(text.as_str()) && seen.insert(text) {
            entries.push(Setting::new(Arc::from(text.as_str()), SettingOrigin::Tool));
        }
    }
    SettingList { entries: entries.into(), origin: SettingOrigin::Tool }
}

fn refuse_overlap(overlap: &[Arc<str>], findings: &mut Vec<Finding>) {
    if !overlap.is_empty() {
        findings.push(reject(
            Pointer::new("/sandboxOverrides"),
            format!("both allowed and denied: `{}`", overlap.join("`, `")),
            "keep each class in one of the two lists",
        ));
    }
}
