//! Loads tools and activates them.

use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::{Value, json};
use toolgate_config::Config;
use toolgate_gate::{LiveSet, Publisher};
use toolgate_store::FileChanges;

use super::{
    OpenError, Toolgate,
    parts::{approval_settings, argument_limits},
};
use crate::{
    journals::JournalOwner,
    load::{LoadCache, Loaded, Rules},
};

impl Toolgate {
    /// Loads changed files, and shares the rest with the last load.
    pub(super) fn load(&self, config: &Config, publisher: Arc<Publisher>, changes: &FileChanges) -> Loaded {
        let rules = self.rules(publisher, config);
        self.load_by(config, &rules, changes)
    }

    pub(super) fn load_by(&self, config: &Config, rules: &Arc<Rules>, changes: &FileChanges) -> Loaded {
        let mut cache = self.cache();
        let passes = self.state.passes_changed_after(cache.passes_seen()).ok();
        cache.load(config, rules, &self.in_code, changes, passes.as_ref())
    }

    /// The rules of the last load if they are equal to these. Then its results are still valid.
    pub(super) fn rules(&self, publisher: Arc<Publisher>, config: &Config) -> Arc<Rules> {
        self.cache().rules(publisher, config)
    }

    pub(super) fn cache(&self) -> MutexGuard<'_, LoadCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Activates first and records second, because a failing journal must not delay stricter settings.
    pub(super) fn activate(&self, loaded: Loaded, config: &Config) -> Result<(), OpenError> {
        let (_, record) = self.swap(loaded, config);
        self.note_loaded(&record)
    }

    /// Swaps tools, policies and settings atomically. Returns the record for the journal.
    pub(super) fn swap(&self, mut loaded: Loaded, config: &Config) -> (Arc<Loaded>, Value) {
        loaded.has_broken_policies = loaded.policies.is_err();
        // Without usable policies no tool is served.
        let live = if loaded.has_broken_policies { LiveSet::default() } else { loaded.live.clone() };
        let cedar = std::mem::replace(&mut loaded.policies, Ok(None)).unwrap_or_default();
        let set = live.with_shared_policies(cedar);
        let (found, policies) = (loaded.tools.len(), set.policies_digest());
        let entry = json!({
            "kind": "tools.loaded", "live": set.len(), "found": found, "policiesVersion": policies,
        });
        let approvals = approval_settings(&config.approvals);
        self.gate.replace_with_settings(set, approvals, argument_limits(config));
        let loaded = Arc::new(loaded);
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&loaded);
        (loaded, entry)
    }

    pub(super) fn note_loaded(&self, record: &Value) -> Result<(), OpenError> {
        match self.journal_owner {
            JournalOwner::Gateway => self.note(record),
            JournalOwner::Command => Ok(()),
        }
    }
}
