//! What does a gateway take over while it runs? Everything that was edited, in one piece, or nothing of it; what was taken back
//! goes in any case.

use std::sync::Arc;

use serde_json::json;
use toolgate_config::{
    Config, Overrides,
    model::{Approvals, Exposure},
};
use toolgate_gate::LiveTool;

use super::{OpenError, Toolgate, workshop};
use crate::{
    exposure::is_exposed,
    handlers::own_variables,
    load::{self, Loaded, Problem},
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

impl Toolgate {
    /// Reads configuration, policies and documents anew. A mistake in any of them leaves everything as it was. Of the
    /// configuration, `IN_FORCE_AT_ONCE` counts at once; the rest after a restart.
    ///
    /// Nothing waits for test runs here, so that what is tighter is in force at once; shipped tools that have no pass under
    /// the new policies are not live until `try_shipped` and the next reload.
    pub async fn reload_with(
        &self,
        overrides: &Overrides,
        beside: &mut impl Beside,
    ) -> Result<Arc<Loaded>, Vec<Problem>> {
        let _alone = self.changing.lock().await;
        let (config, awaits_restart) = loop {
            let read =
                self.read_config(overrides).inspect_err(|_| self.drop_withdrawn(&self.config().exposure))?;
            // The file itself may have been edited while the watch began. One that stands still names the same again.
            if beside.watch(&read.0) == Watched::Already {
                break read;
            }
        };
        // What the configuration names anew is guarded anew.
        let own = own_variables(config.own_variables());
        let handlers = self.handlers.as_ref().clone().guarding(config.guarded_paths(), own);
        let exposure = config.exposure.clone();
        let workshop = workshop(&config, &Arc::new(handlers), &self.state).map_err(|error| {
            self.drop_withdrawn(&exposure);
            broken(error)
        })?;
        let mut loaded = Loaded { awaits_restart, ..load::load(&config, &workshop) };
        loaded.problems.extend(beside.prepare(&config).err());
        if !loaded.problems.is_empty() {
            self.drop_withdrawn(&exposure);
            let problems = loaded.problems;
            let told: Vec<String> =
                problems.iter().map(|one| format!("{}: {}", one.place, one.what)).collect();
            self.note(&json!({ "kind": "tools.rejected", "problems": told })).map_err(broken)?;
            return Err(problems);
        }
        self.config.store(Arc::new(config));
        self.workshop.store(Arc::new(workshop));
        beside.put_in_force();
        self.put_in_force(loaded, &self.config()).map_err(broken)
    }

    /// What was taken back, or is not exposed any more, is not served: for whoever cannot reload just now.
    pub fn drop_taken_back(&self) {
        self.drop_withdrawn(&self.config().exposure);
    }

    /// A tool that was taken back goes at once, also where a mistake elsewhere keeps the rest as it was; and so does one that
    /// the configuration, as it is written now, does not expose.
    fn drop_withdrawn(&self, exposure: &Exposure) {
        let stays = |tool: &LiveTool| {
            let pass = toolgate_gate::PassStore::latest(self.state.as_ref(), tool.spec().id.as_str());
            matches!(pass, Ok(Some(pass)) if pass.is_published) && is_exposed(exposure, tool.spec())
        };
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
    "approvals.default",
    "approvals.ask_from",
    "approvals.timeout",
    "approvals.expires",
    "approvals.trust",
    "limits.arguments",
    "limits.depth",
];
