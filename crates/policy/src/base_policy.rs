//! The settings below the tool's document: the baseline, with a profile chain applied.

use std::{collections::HashSet, num::NonZeroU32, sync::Arc};

use toolgate_spec::{HostPattern, PathPattern, model::NetworkMode};

use crate::{
    asking::AskByRisk,
    effective::ClassPolicy,
    profile::{BaselineFile, FileMode, ProfileFile},
    setting::{Setting, SettingList, SettingOrigin},
};

/// Computed when the set is built, so resolving a tool only shares it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BasePolicy {
    pub classes: ClassPolicy,
    /// Entries that are both allowed and denied before the tool changes the lists.
    pub overlap: Vec<Arc<str>>,
    pub network: Setting<NetworkMode>,
    pub hosts: SettingList<HostPattern>,
    pub file_read: Setting<bool>,
    pub file_write: Setting<bool>,
    pub base_path: Setting<Arc<str>>,
    /// The base path as a list, for tools that list no paths.
    pub base_paths: SettingList<PathPattern>,
    pub max_statements: Setting<u64>,
    pub timeout_ms: Setting<u64>,
    pub memory_bytes: Setting<u64>,
    /// For commands, which need more memory than scripts.
    pub command_memory_bytes: Setting<u64>,
    pub ask_from: Setting<AskByRisk>,
}

impl BasePolicy {
    pub fn baseline(file: &BaselineFile) -> Self {
        let from = || SettingOrigin::Baseline;
        let texts = |written: &[String]| SettingList::empty(from()).joined(shared(written), &from());
        let classes = ClassPolicy { allow: texts(&file.allow_classes), deny: texts(&file.deny_classes) };
        Self {
            overlap: overlap(&classes),
            classes,
            network: Setting::new(file.network.mode(), from()),
            hosts: SettingList::empty(from())
                .joined(file.hosts_allow.iter().map(|host| host.0.clone()), &from()),
            file_read: Setting::new(file.file_read, from()),
            file_write: Setting::new(file.file_write, from()),
            base_path: Setting::new(file.fs_base_path.text(), from()),
            base_paths: SettingList::of([file.fs_base_path.0.clone()], from()),
            max_statements: Setting::new(file.max_statements.0, from()),
            timeout_ms: Setting::new(file.timeout_ms.0, from()),
            memory_bytes: Setting::new(bytes(file.memory_mib), from()),
            command_memory_bytes: Setting::new(
                bytes(file.command_memory_mib.unwrap_or(file.memory_mib)),
                from(),
            ),
            ask_from: match file.ask_from {
                Some(from_level) => Setting::new(from_level.threshold(), from()),
                None => Setting::new(AskByRisk::Gateway, SettingOrigin::Builtin),
            },
        }
    }

    /// Applies one profile: its settings replace or extend; missing ones are inherited.
    #[must_use]
    pub fn under(&self, name: &Arc<str>, profile: &ProfileFile) -> Self {
        let from = SettingOrigin::Profile(Arc::clone(name));
        let mut next = self.clone();
        next.classes.allow = self.classes.allow.joined(shared(&profile.add_allow_classes), &from);
        next.classes.deny = self.classes.deny.joined(shared(&profile.add_deny_classes), &from);
        next.overlap = overlap(&next.classes);
        next.hosts = self.hosts.joined(profile.hosts_allow.iter().map(|host| host.0.clone()), &from);
        if let Some(mode) = profile.network {
            next.network = Setting::new(mode.mode(), from.clone());
        }
        if let Some(mode) = profile.file_mode {
            next.file_read = Setting::new(mode != FileMode::Off, from.clone());
            next.file_write = Setting::new(mode == FileMode::ReadWrite, from.clone());
        }
        if let Some(base) = &profile.fs_base_path {
            next.base_path = Setting::new(base.text(), from.clone());
            next.base_paths = SettingList::of([base.0.clone()], from.clone());
        }
        if let Some(most) = profile.max_statements {
            next.max_statements = Setting::new(most.0, from.clone());
        }
        if let Some(timeout) = profile.timeout_ms {
            next.timeout_ms = Setting::new(timeout.0, from.clone());
        }
        if let Some(from_level) = profile.ask_from {
            next.ask_from = Setting::new(from_level.threshold(), from);
        }
        next
    }

    /// True if a profile sets the network, not only the baseline.
    pub fn states_network(&self) -> bool {
        self.network.origin != SettingOrigin::Baseline
    }
}

fn bytes(mib: NonZeroU32) -> u64 {
    u64::from(mib.get()) * 1024 * 1024
}

/// Entries that are in both lists.
pub(crate) fn overlap(classes: &ClassPolicy) -> Vec<Arc<str>> {
    let denied: HashSet<&str> = classes.deny.values().map(AsRef::as_ref).collect();
    classes.allow.values().filter(|allowed| denied.contains(allowed.as_ref())).cloned().collect()
}

fn shared(texts: &[String]) -> impl Iterator<Item = Arc<str>> + '_ {
    texts.iter().map(|text| Arc::from(text.as_str()))
}
