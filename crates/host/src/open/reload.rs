//! Applies edits of configuration, policies and documents while the gateway runs.
//!
//! Without errors, all edits apply atomically. With errors, only edits that narrow apply: tools whose documents were removed or
//! edited, or that were unpublished or excluded, are no longer served. A tool whose own document has the error stays as it was.

use std::sync::Arc;

use serde_json::json;
use toolgate_config::{Config, Overrides, model::Approvals};
use toolgate_gate::{LiveTool, Publisher, text_for_journal};
use toolgate_policy::SecretSource as _;
use toolgate_store::FileChanges;

use super::{
    OpenError, Toolgate,
    kept_tools::is_published,
    narrowing::narrowed,
    parts::{approval_settings, argument_limits, publisher},
};
use crate::{
    exposure::is_exposed,
    handlers::own_variables,
    load::{LoadProblem, Loaded},
};

/// Whether the files that a configuration names were watched before they were read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WatchStart {
    Already,
    /// The watch starts now, so files that were read before may have changed since.
    FromNow,
}

/// A part outside the gateway that follows its configuration, such as the file watch and the HTTP authentication.
pub trait ConfigFollower {
    /// Watches the files that this configuration names, before they are read. Called also for a configuration with errors, so
    /// a fix is noticed.
    fn watch(&mut self, read: &Config) -> WatchStart;

    /// Prepares the settings of this configuration. An error changes nothing.
    fn prepare(&mut self, config: &Config) -> Result<(), LoadProblem>;

    /// Activates the settings that were prepared last.
    fn activate(&mut self);
}

/// The result of a reload without errors.
#[derive(Debug)]
pub struct ReloadReport {
    pub loaded: Arc<Loaded>,
    /// Why the reload is not recorded. It is active anyway, because stricter settings must not wait for the journal.
    pub unrecorded: Option<OpenError>,
}

impl Toolgate {
    /// Reloads configuration, policies and documents. With an error in any document, no tool is added or changed. Policies still
    /// apply, and so do callers, approvals and limits as far as they are stricter. An error in those leaves them as they were.
    /// The keys in `APPLIED_AT_ONCE` apply now, all other keys after a restart.
    ///
    /// This does not wait for test runs, so stricter settings apply at once. Shipped tools without a pass under the new policies
    /// are not live until `test_shipped` and the next reload.
    pub async fn reload_with(
        &self,
        overrides: &Overrides,
        follower: &mut impl ConfigFollower,
    ) -> Result<ReloadReport, Vec<LoadProblem>> {
        self.reload_changed(overrides, follower, FileChanges::Everything).await
    }

    /// Like `reload_with`, but reads only the files that changed since the last reload.
    pub async fn reload_changed(
        &self,
        overrides: &Overrides,
        follower: &mut impl ConfigFollower,
        changes: FileChanges,
    ) -> Result<ReloadReport, Vec<LoadProblem>> {
        let _alone = self.changing.lock().await;
        self.take_over(overrides, follower, changes).map_err(|problems| self.note_rejection(problems))
    }

    /// Makes the next reload assess every tool, also those whose documents did not change.
    pub fn forget_assessments(&self) {
        self.secret_values.forget();
        self.cache().forget();
    }

    /// Whether a secret was set or removed since the last load. Blocks while the store is opened.
    pub fn has_new_secrets(&self) -> bool {
        let loaded = self.cache().secrets_seen();
        loaded.is_some_and(|seen| seen != self.secret_values.version())
    }

    /// The ids of tools whose Local Pass or publication changed since the last load.
    pub fn changed_passes(&self) -> Result<Vec<String>, OpenError> {
        let seen = self.cache().passes_seen();
        let broken =
            |error: toolgate_store::StateError| OpenError { part: "state", problem: error.to_string() };
        let changes = self.state.passes_changed_after(seen).map_err(broken)?;
        Ok(changes.tools.into_iter().map(|(id, _)| id).collect())
    }

    fn take_over(
        &self,
        overrides: &Overrides,
        follower: &mut impl ConfigFollower,
        mut changes: FileChanges,
    ) -> Result<ReloadReport, Vec<LoadProblem>> {
        let (config, awaits_restart) = loop {
            let read = self.read_config(overrides).inspect_err(|_| {
                self.drop_changed(&self.config(), &changes);
            })?;
            // The file may have been edited while the watch started, so read it again. If it names the same files, this ends.
            if follower.watch(&read.0) == WatchStart::Already {
                break read;
            }
            // The new watch does not know changes before its start.
            changes = FileChanges::Everything;
        };
        // Block the files and variables that the new configuration names.
        let own = own_variables(config.own_variables());
        let secrets = self.secret_values.withholding(own.clone());
        let handlers = self.handlers.as_ref().clone();
        let handlers = handlers.guarding(config.guarded_paths(), own, Arc::new(secrets.clone()));
        let publisher = publisher(&config, &Arc::new(handlers), &self.state, &secrets).map_err(|error| {
            self.drop_changed(&config, &changes);
            broken(error)
        })?;
        let rules = self.rules(Arc::new(publisher), &config);
        let publisher = Arc::clone(&rules.publisher);
        let mut loaded = Loaded { awaits_restart, ..self.load_by(&config, &rules, &changes) };
        let about_callers = follower.prepare(&config).err();
        if loaded.policies.is_err() || about_callers.is_some() {
            loaded.problems.extend(about_callers);
            let kept = self.kept_tools(&loaded, &config, &publisher);
            self.gate.retain(|tool| kept.includes(tool));
            return Err(loaded.problems);
        }
        if !loaded.problems.is_empty() {
            return Err(self.take_over_narrowed(loaded, config, publisher, follower));
        }
        // INVARIANT: swap tools and policies before callers. A newly authenticated caller must never meet the old policies.
        let (loaded, record) = self.swap(loaded, &config);
        self.config.store(Arc::new(config));
        self.publisher.store(publisher);
        follower.activate();
        Ok(ReloadReport { loaded, unrecorded: self.note_loaded(&record).err() })
    }

    /// Records that a reload was rejected.
    fn note_rejection(&self, mut problems: Vec<LoadProblem>) -> Vec<LoadProblem> {
        // Messages quote the faulty value, which may be a secret in the wrong place.
        let redacted: Vec<String> =
            problems.iter().map(|one| text_for_journal(&self.secrets, one.to_string())).collect();
        if let Err(error) = self.note(&json!({ "kind": "tools.rejected", "problems": redacted })) {
            problems.extend(broken(error));
        }
        problems
    }

    /// Applies an edit whose errors are in tool documents only: policies apply, and so do callers, approvals and limits as far
    /// as they are stricter. The set of tools only shrinks.
    fn take_over_narrowed(
        &self,
        mut loaded: Loaded,
        config: Config,
        publisher: Arc<Publisher>,
        follower: &mut impl ConfigFollower,
    ) -> Vec<LoadProblem> {
        let policies = std::mem::replace(&mut loaded.policies, Ok(None)).unwrap_or_default();
        let config = narrowed(&self.config(), config);
        let are_callers_ready = follower.prepare(&config).is_ok();
        let kept = self.kept_tools(&loaded, &config, &publisher);
        let (approvals, arguments) = (approval_settings(&config.approvals), argument_limits(&config));
        // INVARIANT: as without errors, swap tools and policies before callers.
        self.gate.narrow(|tool| kept.includes(tool), policies, approvals, arguments);
        self.config.store(Arc::new(config));
        self.publisher.store(publisher);
        if are_callers_ready {
            follower.activate();
        }
        loaded.problems
    }

    /// Stops serving tools that were removed or edited, if the configuration or policies cannot be used. The previous policies
    /// stay active.
    fn drop_changed(&self, config: &Config, changes: &FileChanges) {
        let publisher = self.publisher();
        let loaded = self.load(config, Arc::clone(&publisher), changes);
        let kept = self.kept_tools(&loaded, config, &publisher);
        self.gate.retain(|tool| kept.includes(tool));
    }

    /// Stops serving tools that were unpublished or are no longer exposed, without a reload.
    pub fn drop_unpublished(&self) {
        let config = self.config();
        let published = self.state.published_digests().unwrap_or_default();
        let stays =
            |tool: &LiveTool| is_published(&published, tool) && is_exposed(&config.exposure, tool.spec());
        if self.gate.all().iter().any(|tool| !stays(tool)) {
            self.gate.retain(stays);
        }
    }

    /// Reads the file, and keeps the settings that are fixed at startup. Also returns the changed keys that need a restart.
    fn read_config(&self, overrides: &Overrides) -> Result<(Config, Vec<String>), Vec<LoadProblem>> {
        let current = self.config();
        let Some(file) = &current.file else { return Ok((current.as_ref().clone(), Vec::new())) };
        let read = Config::load(file, &|name| std::env::var(name).ok(), overrides).map_err(|errors| {
            let problem = |error: &toolgate_config::ConfigError| LoadProblem {
                place: file.display().to_string(),
                what: error.to_string(),
            };
            errors.iter().map(problem).collect::<Vec<_>>()
        })?;
        let awaits_restart = awaiting_restart(&read, &current);
        let mut config = current.as_ref().clone();
        (config.tools, config.catalog, config.exposure, config.policy) =
            (read.tools, read.catalog, read.exposure, read.policy);
        config.auth = read.auth;
        config.upstreams = read.upstreams;
        let kept = &current.approvals;
        config.approvals = Approvals {
            // The fronts were started with it, and a command-line flag may have set it.
            client_may_answer: kept.client_may_answer,
            max_pending: kept.max_pending,
            max_pending_per_caller: kept.max_pending_per_caller,
            ..read.approvals
        };
        (config.limits.arguments, config.limits.depth) = (read.limits.arguments, read.limits.depth);
        Ok((config, awaits_restart))
    }
}

fn broken(error: OpenError) -> Vec<LoadProblem> {
    vec![LoadProblem { place: error.part.to_owned(), what: error.problem }]
}

/// Keys that changed since the gateway started and take effect after a restart.
fn awaiting_restart(read: &Config, current: &Config) -> Vec<String> {
    let applies_at_once = |key: &str| {
        let rest_behind = |section: &&'static str| key.strip_prefix(*section);
        APPLIED_AT_ONCE.iter().filter_map(rest_behind).any(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let value_in = |config: &Config, key: &str| {
        config.entries().iter().find(|entry| entry.key == key).map(|entry| entry.value.clone())
    };
    let both = read.entries().iter().chain(current.entries());
    let mut keys: Vec<String> = both
        .map(|entry| entry.key.as_str())
        .filter(|key| !applies_at_once(key) && value_in(read, key) != value_in(current, key))
        .map(str::to_owned)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The sections and keys of the configuration that a reload applies.
const APPLIED_AT_ONCE: [&str; 13] = [
    "upstreams",
    "auth",
    "tools",
    "catalog",
    "exposure",
    "policy",
    "approvals.ask_from",
    "approvals.self_approval",
    "approvals.timeout",
    "approvals.expires",
    "approvals.trust",
    "limits.arguments",
    "limits.depth",
];

#[cfg(test)]
mod tests;
