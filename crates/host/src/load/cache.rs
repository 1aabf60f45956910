//! Loads the workspace, and caches results for the next reload.
//!
//! A tool is assessed again if its document, its Local Pass, the policies, or the gateway's own files and variables changed.
//! Everything else is shared with the last load. A tool that cannot be used is assessed in every load, because the reason may
//! lie outside the workspace, such as a missing program.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use toolgate_config::Config;
use toolgate_gate::Publisher;
use toolgate_policy::CedarPolicies;
use toolgate_spec::model::ToolId;
use toolgate_store::{FileChanges, PassChanges};

use super::{
    FoundTools, InCode, LoadProblem, Loaded, LoadedTool, PolicyLoadFailure,
    build::{ToolIndex, build},
    patch::SoundLoad,
    policy_problem,
    rules::Rules,
    source::{self, ToolSource},
};
use crate::{
    catalog,
    documents::{DocumentChanges, Documents},
    policies,
};

/// The documents and results of the last load.
#[derive(Default)]
pub(crate) struct LoadCache {
    documents: Documents,
    tools: FoundTools,
    /// The rules for which `tools` were assessed. `None`: the next load assesses all tools.
    rules: Option<Arc<Rules>>,
    /// `None`: the next load visits all tools.
    sound: Option<SoundLoad>,
    /// The sequence number of the last pass change that was read.
    passes_seen: i64,
    policies: Option<KnownPolicies>,
}

/// The operator's policies, with the sources and tools for which they were loaded.
struct KnownPolicies {
    sources: Vec<(String, String)>,
    tools: FoundTools,
    policies: Arc<CedarPolicies>,
}

impl LoadCache {
    /// Makes the next load assess all tools.
    pub fn forget(&mut self) {
        self.rules = None;
        self.sound = None;
    }

    /// The version of the secrets at the last load.
    pub fn secrets_seen(&self) -> Option<u64> {
        self.rules.as_ref().map(|rules| rules.secrets)
    }

    pub const fn passes_seen(&self) -> i64 {
        self.passes_seen
    }

    /// Returns the rules of the last load if they are equal. Other code compares pointers only.
    pub fn rules(&self, publisher: Arc<Publisher>, config: &Config) -> Arc<Rules> {
        let now = Rules::now(publisher, config);
        let known = self.rules.as_ref().filter(|known| known.are_same_as(&now));
        known.map_or_else(|| Arc::new(now), Arc::clone)
    }

    /// Loads after these changes on the disk and of passes since the last load. `passes` is `None` if they cannot be read;
    /// then no result is reused.
    pub fn load(
        &mut self,
        config: &Config,
        rules: &Arc<Rules>,
        in_code: &InCode,
        changes: &FileChanges,
        passes: Option<&PassChanges>,
    ) -> Loaded {
        let touched = self.documents.update(&config.tools, changes);
        self.passes_seen = passes.map_or(0, |passes| passes.last);
        let last = self.sound.take();
        let patched = match (last, &touched, passes) {
            (Some(last), DocumentChanges::Files(files), Some(passes)) => {
                last.patched(files, passes, (config, in_code, rules))
            }
            _ => None,
        };
        let (mut loaded, sound) = match patched {
            Some((mut loaded, sound)) => {
                loaded.unused_settings = unused_settings(&sound.index, rules, config);
                (loaded, Some(sound))
            }
            None => self.build(config, rules, in_code, passes),
        };
        loaded.work.parsed = self.documents.parsed;
        self.tools = loaded.tools.clone();
        self.rules = passes.is_some().then(|| Arc::clone(rules));
        self.sound = sound.filter(|_| passes.is_some());
        loaded.policies = self.read_policies(&mut loaded, &config.policy.cedar, &in_code.cedar);
        loaded
    }

    /// Visits all tools, and assesses those without a cached result.
    fn build(
        &self,
        config: &Config,
        rules: &Arc<Rules>,
        in_code: &InCode,
        passes: Option<&PassChanges>,
    ) -> (Loaded, Option<SoundLoad>) {
        let are_same = self.rules.as_ref().is_some_and(|known| Arc::ptr_eq(known, rules));
        let changed = passes.filter(|_| are_same).map(ChangedPasses::of);
        let known = |source: &ToolSource<'_>| {
            let changed = changed.as_ref()?;
            let known = self.tools.at(&source.position)?;
            (source.is_same_as(known) && changed.leave(known)).then(|| Arc::clone(known))
        };
        let sources: Vec<ToolSource<'_>> = source::all(config, &self.documents, in_code).collect();
        let (mut loaded, index) = build(&sources, known, config, rules);
        let unread = self.documents.unread();
        loaded.unread = unread
            .map(|unread| LoadProblem {
                place: unread.file.display().to_string(),
                what: unread.problem.clone(),
            })
            .collect();
        loaded.problems.extend_from_slice(&loaded.unread);
        loaded.unused_settings = unused_settings(&index, rules, config);
        let sound = SoundLoad::of(&loaded, index, rules, config);
        (loaded, sound)
    }

    fn read_policies(
        &mut self,
        loaded: &mut Loaded,
        files: &[PathBuf],
        in_code: &[(String, String)],
    ) -> Result<Option<Arc<CedarPolicies>>, PolicyLoadFailure> {
        if files.is_empty() && in_code.is_empty() {
            self.policies = None;
            return Ok(None);
        }
        let mut sources = Vec::new();
        for file in files {
            let shown = file.display().to_string();
            match policies::text(file) {
                Ok(text) => sources.push((shown, text)),
                Err(error) => loaded.problems.push(LoadProblem { place: shown, what: error.problem }),
            }
        }
        if sources.len() < files.len() {
            return Err(PolicyLoadFailure);
        }
        sources.extend_from_slice(in_code);
        let known = self.policies.take().filter(|known| known.hold_for(&sources, &loaded.tools));
        let policies = if let Some(known) = known {
            known.policies
        } else {
            let usable = loaded.tools.iter().filter_map(|tool| tool.usable());
            match CedarPolicies::new(&sources, usable.map(|candidate| candidate.tool.for_policies())) {
                Ok(policies) => Arc::new(policies),
                Err(errors) => {
                    loaded.problems.extend(errors.iter().map(policy_problem));
                    return Err(PolicyLoadFailure);
                }
            }
        };
        loaded.unused_settings.extend(policies.warnings().iter().map(policy_problem));
        let tools = loaded.tools.clone();
        self.policies = Some(KnownPolicies { sources, tools, policies: Arc::clone(&policies) });
        Ok(Some(policies))
    }
}

impl KnownPolicies {
    /// Whether loading for these sources and tools would give the same policies.
    fn hold_for(&self, sources: &[(String, String)], tools: &FoundTools) -> bool {
        let is_same = |(old, new): (Option<&LoadedTool>, Option<&LoadedTool>)| match (
            old.and_then(LoadedTool::usable),
            new.and_then(LoadedTool::usable),
        ) {
            (Some(old), Some(new)) => old.tool.for_policies().is_same_as(&new.tool.for_policies()),
            (old, new) => old.is_none() && new.is_none(),
        };
        self.sources == sources && self.tools.changes(tools).all(is_same)
    }
}

/// Tools whose Local Pass or publication changed.
struct ChangedPasses<'p> {
    ids: HashSet<&'p str>,
    names: HashSet<&'p str>,
}

impl<'p> ChangedPasses<'p> {
    fn of(passes: &'p PassChanges) -> Self {
        Self {
            ids: passes.tools.iter().map(|(id, _)| id.as_str()).collect(),
            names: passes.tools.iter().filter_map(|(_, name)| name.as_deref()).collect(),
        }
    }

    /// Whether the pass of this usable tool is unchanged.
    fn leave(&self, tool: &LoadedTool) -> bool {
        tool.usable().map(|candidate| candidate.tool.spec()).is_some_and(|spec| {
            !self.ids.contains(spec.id.as_str()) && !self.names.contains(spec.name.as_str())
        })
    }
}

/// Overrides of tools that do not exist. This is only a warning, because a tool may be removed before its override.
fn unused_settings(index: &ToolIndex, rules: &Rules, config: &Config) -> Vec<LoadProblem> {
    let place = config.policy.overrides.as_ref().map(|file| file.display().to_string());
    let place = place.unwrap_or_default();
    let is_shipped = |name: &str| catalog::shipped_tools().iter().any(|tool| tool.name == name);
    let has_id = |entry: &str| {
        // Try the fast lookup first: most ids are in lower case.
        index.ids.contains_key(&entry.to_ascii_lowercase())
            || index.ids.keys().any(|id| id.eq_ignore_ascii_case(entry))
    };
    let is_known = |entry: &str| index.names.contains_key(entry) || ToolId::is_uuid(entry) && has_id(entry);
    let names = rules.publisher.overrides.iter().flat_map(|overrides| overrides.tool_names());
    let unknown = names.filter(|name| !is_known(name) && !is_shipped(name));
    let what = |name: &str| {
        format!(
            "no tool is called `{name}`, so its override has no effect; correct the name or remove the override"
        )
    };
    unknown.map(|name| LoadProblem { place: place.clone(), what: what(name) }).collect()
}
