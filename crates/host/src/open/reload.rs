//! Puts edits in force while the gateway runs.
//!
//! Without a mistake all of them are swapped in one piece. With a mistake only what narrows is: tools whose documents were removed
//! or edited, or that were unpublished or excluded, go. A tool whose own document has the mistake stays as it was.

use std::sync::Arc;

use serde_json::json;
use toolgate_config::{Config, Overrides, model::Approvals};
use toolgate_gate::{LiveTool, Workshop, text_for_journal};
use toolgate_policy::SecretSource as _;
use toolgate_store::FileChanges;

use super::{
    OpenError, Toolgate,
    narrowed::narrowed,
    parts::{approval_settings, argument_limits, workshop},
    staying::is_published,
};
use crate::{
    exposure::is_exposed,
    handlers::own_variables,
    load::{Loaded, Problem},
};

/// Was all that a configuration names watched before it was read?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watched {
    Already,
    /// From now on: what was read before may be another thing by now.
    FromNow,
}

/// What stands beside a gateway and follows its configuration.
pub trait Beside {
    /// Told of the configuration as it was read, be it found wanting or not, before anything is read that it names: whoever
    /// mends that is heard.
    fn watch(&mut self, read: &Config) -> Watched;

    /// Makes ready what this configuration asks for. A mistake in it leaves everything as it was.
    fn prepare(&mut self, config: &Config) -> Result<(), Problem>;

    /// Puts in force what was made ready last.
    fn put_in_force(&mut self);
}

/// What is in force since a reload.
#[derive(Debug)]
pub struct Reloaded {
    pub loaded: Arc<Loaded>,
    /// Why the journal does not say so. It is in force all the same: what is tighter waits for no record.
    pub unrecorded: Option<OpenError>,
}

impl Toolgate {
    /// Reads configuration, policies and documents. With a mistake in any document no tool is added or changed, policies are
    /// put in force, and callers, approvals and limits as far as they are tighter. A mistake in those leaves them as they were. Of the
    /// configuration, `IN_FORCE_AT_ONCE` counts at once; the rest after a restart.
    ///
    /// Nothing waits for test runs here, so that what is tighter is in force at once; shipped tools that have no pass under
    /// the new policies are not live until `try_shipped` and the next reload.
    pub async fn reload_with(
        &self,
        overrides: &Overrides,
        beside: &mut impl Beside,
    ) -> Result<Reloaded, Vec<Problem>> {
        self.reload_changed(overrides, beside, FileChanges::Everything).await
    }

    /// As `reload_with`, if it is known which files changed since the last reload. Other documents are not read.
    pub async fn reload_changed(
        &self,
        overrides: &Overrides,
        beside: &mut impl Beside,
        changes: FileChanges,
    ) -> Result<Reloaded, Vec<Problem>> {
        let _alone = self.changing.lock().await;
        self.take_over(overrides, beside, changes).map_err(|problems| self.note_rejection(problems))
    }

    /// Makes the next reload judge every tool again, also those whose documents did not change.
    pub fn forget_judgements(&self) {
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
        beside: &mut impl Beside,
        mut changes: FileChanges,
    ) -> Result<Reloaded, Vec<Problem>> {
        let (config, awaits_restart) = loop {
            let read = self.read_config(overrides).inspect_err(|_| {
                self.drop_changed(&self.config(), &changes);
            })?;
            // The file itself may have been edited while the watch began. One that stands still names the same again.
            if beside.watch(&read.0) == Watched::Already {
                break read;
            }
            // The new watch knows nothing of changes before it.
            changes = FileChanges::Everything;
        };
        // What the configuration names anew is guarded anew.
        let own = own_variables(config.own_variables());
        let secrets = self.secret_values.withholding(own.clone());
        let handlers = self.handlers.as_ref().clone();
        let handlers = handlers.guarding(config.guarded_paths(), own, Arc::new(secrets.clone()));
        let workshop = workshop(&config, &Arc::new(handlers), &self.state, &secrets).map_err(|error| {
            self.drop_changed(&config, &changes);
            broken(error)
        })?;
        let rules = self.rules(Arc::new(workshop), &config);
        let workshop = Arc::clone(&rules.workshop);
        let mut loaded = Loaded { awaits_restart, ..self.load_by(&config, &rules, &changes) };
        let about_callers = beside.prepare(&config).err();
        if loaded.policies.is_err() || about_callers.is_some() {
            loaded.problems.extend(about_callers);
            let staying = self.staying(&loaded, &config, &workshop);
            self.gate.retain(|tool| staying.includes(tool));
            return Err(loaded.problems);
        }
        if !loaded.problems.is_empty() {
            return Err(self.take_over_narrowed(loaded, config, workshop, beside));
        }
        // INVARIANT: tools and policies before callers. Whoever is let in anew meets the new policies, never the old ones.
        let (loaded, record) = self.swap(loaded, &config);
        self.config.store(Arc::new(config));
        self.workshop.store(workshop);
        beside.put_in_force();
        Ok(Reloaded { loaded, unrecorded: self.note_loaded(&record).err() })
    }

    /// Whatever was wrong, the journal says that something was asked for and is not in force.
    fn note_rejection(&self, mut problems: Vec<Problem>) -> Vec<Problem> {
        // What is wrong is quoted, and may be a secret that somebody wrote into the wrong place.
        let tell = |one: &Problem| text_for_journal(&self.secrets, one.to_string());
        let told: Vec<String> = problems.iter().map(tell).collect();
        if let Err(error) = self.note(&json!({ "kind": "tools.rejected", "problems": told })) {
            problems.extend(broken(error));
        }
        problems
    }

    /// The mistakes are in tool documents alone: policies are put in force, callers, approvals and limits as far as they are
    /// tighter, and the set of tools only shrinks.
    fn take_over_narrowed(
        &self,
        mut loaded: Loaded,
        config: Config,
        workshop: Arc<Workshop>,
        beside: &mut impl Beside,
    ) -> Vec<Problem> {
        let policies = std::mem::replace(&mut loaded.policies, Ok(None)).unwrap_or_default();
        let config = narrowed(&self.config(), config);
        let are_callers_ready = beside.prepare(&config).is_ok();
        let staying = self.staying(&loaded, &config, &workshop);
        let (approvals, arguments) = (approval_settings(&config.approvals), argument_limits(&config));
        // INVARIANT: as without mistakes, tools and policies before callers.
        self.gate.narrow(|tool| staying.includes(tool), policies, approvals, arguments);
        self.config.store(Arc::new(config));
        self.workshop.store(workshop);
        if are_callers_ready {
            beside.put_in_force();
        }
        loaded.problems
    }

    /// For a configuration or policies that cannot be used: what was removed or edited is not served any more, by the last good
    /// policies.
    fn drop_changed(&self, config: &Config, changes: &FileChanges) {
        let workshop = self.workshop();
        let loaded = self.load(config, Arc::clone(&workshop), changes);
        let staying = self.staying(&loaded, config, &workshop);
        self.gate.retain(|tool| staying.includes(tool));
    }

    /// Stops serving tools that were unpublished or are not exposed any more, without a reload.
    pub fn drop_taken_back(&self) {
        let config = self.config();
        let published = self.state.published_digests().unwrap_or_default();
        let stays =
            |tool: &LiveTool| is_published(&published, tool) && is_exposed(&config.exposure, tool.spec());
        if self.gate.all().iter().any(|tool| !stays(tool)) {
            self.gate.retain(stays);
        }
    }

    /// The file as it is now, with what was fixed at the start: what is in force from now on, and the keys that await a restart.
    fn read_config(&self, overrides: &Overrides) -> Result<(Config, Vec<String>), Vec<Problem>> {
        let current = self.config();
        let Some(file) = &current.file else { return Ok((current.as_ref().clone(), Vec::new())) };
        let read = Config::load(file, &|name| std::env::var(name).ok(), overrides).map_err(|errors| {
            let problem = |error: &toolgate_config::ConfigError| Problem {
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
        let kept = &current.approvals;
        config.approvals = Approvals {
            // The doors were opened with it, and a flag may have closed it.
            client_may_answer: kept.client_may_answer,
            max_pending: kept.max_pending,
            max_pending_per_caller: kept.max_pending_per_caller,
            ..read.approvals
        };
        (config.limits.arguments, config.limits.depth) = (read.limits.arguments, read.limits.depth);
        Ok((config, awaits_restart))
    }
}

fn broken(error: OpenError) -> Vec<Problem> {
    vec![Problem { place: error.part.to_owned(), what: error.problem }]
}

/// Keys that the file says otherwise than when the gateway was started, and that count only after a restart.
fn awaiting_restart(read: &Config, current: &Config) -> Vec<String> {
    let counts_at_once = |key: &str| {
        let rest_behind = |section: &&'static str| key.strip_prefix(*section);
        IN_FORCE_AT_ONCE.iter().filter_map(rest_behind).any(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let value_in = |config: &Config, key: &str| {
        config.entries().iter().find(|entry| entry.key == key).map(|entry| entry.value.clone())
    };
    let both = read.entries().iter().chain(current.entries());
    let mut keys: Vec<String> = both
        .map(|entry| entry.key.as_str())
        .filter(|key| !counts_at_once(key) && value_in(read, key) != value_in(current, key))
        .map(str::to_owned)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The sections and keys of the configuration that a reload takes over.
const IN_FORCE_AT_ONCE: [&str; 12] = [
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
