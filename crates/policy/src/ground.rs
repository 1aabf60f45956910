//! What a tool stands on before its own document speaks: the baseline, and each profile upon it.

use std::{collections::HashSet, num::NonZeroU32, sync::Arc};

use toolgate_spec::{HostPattern, PathPattern, model::NetworkMode};

use crate::{
    asking::AskByRisk,
    effective::ClassPolicy,
    profile::{BaselineFile, FileMode, ProfileFile},
    setting::{Listing, Origin, Setting},
};

/// Worked out when the set is built, so that resolving a tool only shares it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ground {
    pub classes: ClassPolicy,
    /// Entries both allowed and denied before the tool adds or removes any.
    pub overlap: Vec<Arc<str>>,
    pub network: Setting<NetworkMode>,
    pub hosts: Listing<HostPattern>,
    pub file_read: Setting<bool>,
    pub file_write: Setting<bool>,
    pub base_path: Setting<Arc<str>>,
    /// The base path as the list of paths that a tool without paths of its own may touch.
    pub base_paths: Listing<PathPattern>,
    pub max_statements: Setting<u64>,
    pub timeout_ms: Setting<u64>,
    pub memory_bytes: Setting<u64>,
    /// Of a program that others wrote, which wants more than a script does.
    pub command_memory_bytes: Setting<u64>,
    pub ask_from: Setting<AskByRisk>,
}

impl Ground {
    pub fn baseline(file: &BaselineFile) -> Self {
        let from = || Origin::Baseline;
        let texts = |written: &[String]| Listing::empty(from()).joined(shared(written), &from());
        let classes = ClassPolicy { allow: texts(&file.allow_classes), deny: texts(&file.deny_classes) };
        Self {
            overlap: overlap(&classes),
            classes,
            network: Setting::new(file.network.mode(), from()),
            hosts: Listing::empty(from()).joined(file.hosts_allow.iter().map(|host| host.0.clone()), &from()),
            file_read: Setting::new(file.file_read, from()),
            file_write: Setting::new(file.file_write, from()),
            base_path: Setting::new(file.fs_base_path.text(), from()),
            base_paths: Listing::of([file.fs_base_path.0.clone()], from()),
            max_statements: Setting::new(file.max_statements.0, from()),
            timeout_ms: Setting::new(file.timeout_ms.0, from()),
            memory_bytes: Setting::new(bytes(file.memory_mib), from()),
            command_memory_bytes: Setting::new(
                bytes(file.command_memory_mib.unwrap_or(file.memory_mib)),
                from(),
            ),
            ask_from: match file.ask_from {
                Some(from_level) => Setting::new(from_level.threshold(), from()),
                None => Setting::new(AskByRisk::Gateway, Origin::Builtin),
            },
        }
    }

    /// One step of a chain: what the profile says replaces or adds, what it leaves out stays.
    #[must_use]
    pub fn under(&self, name: &Arc<str>, profile: &ProfileFile) -> Self {
        let from = Origin::Profile(Arc::clone(name));
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
            next.base_paths = Listing::of([base.0.clone()], from.clone());
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

    /// Has a profile spoken about the network, or is it only the baseline's silence?
    pub fn states_network(&self) -> bool {
        self.network.origin != Origin::Baseline
    }
}

fn bytes(mib: NonZeroU32) -> u64 {
    u64::from(mib.get()) * 1024 * 1024
}

/// The entries that stand, letter for letter, in both lists.
pub(crate) fn overlap(classes: &ClassPolicy) -> Vec<Arc<str>> {
    let denied: HashSet<&str> = classes.deny.values().map(AsRef::as_ref).collect();
    classes.allow.values().filter(|allowed| denied.contains(allowed.as_ref())).cloned().collect()
}

fn shared(texts: &[String]) -> impl Iterator<Item = Arc<str>> + '_ {
    texts.iter().map(|text| Arc::from(text.as_str()))
}
