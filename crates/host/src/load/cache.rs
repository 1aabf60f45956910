//! Loads the workspace, and keeps what a reload can use again.
//!
//! A tool is judged again if its document, its Local Pass, the policies or the gateway's own files and variables changed.
//! Everything else is shared with the last load. A tool that cannot be used is judged again in every load, because the
//! reason may lie outside of the workspace, such as a program that was missing.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use toolgate_config::Config;
use toolgate_gate::Workshop;
use toolgate_policy::CedarPolicies;
use toolgate_spec::model::ToolId;
use toolgate_store::{FileChanges, PassChanges};

use super::{
    FoundTools, InCode, Loaded, Problem, Surveyed, Unusable,
    build::{ToolIndex, build},
    patch::SoundLoad,
    policy_problem,
    rules::Rules,
    source::{self, Source},
};
use crate::{
    catalog,
    documents::{Documents, Touched},
    policies,
};

/// The documents and results of the last load.
#[derive(Default)]
pub(crate) struct LoadCache {
    documents: Documents,
    tools: FoundTools,
    /// The rules that `tools` were judged by. `None`: the next load judges all of them again.
    rules: Option<Arc<Rules>>,
    /// `None`: the next load goes through all tools.
    sound: Option<SoundLoad>,
    /// The number of the last change of a pass that was seen.
    passes_seen: i64,
    policies: Option<KnownPolicies>,
}

/// The operator's policies, with the files and the tools that they were loaded for.
struct KnownPolicies {
    sources: Vec<(String, String)>,
    tools: FoundTools,
    policies: Arc<CedarPolicies>,
}

impl LoadCache {
    /// Forgets everything that was judged: the next load judges all tools again.
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

    /// The rules of the last load if they are the same. This is the only place where rules are compared.
    pub fn rules(&self, workshop: Arc<Workshop>, config: &Config) -> Arc<Rules> {
        let now = Rules::now(workshop, config);
        let known = self.rules.as_ref().filter(|known| known.are_same_as(&now));
        known.map_or_else(|| Arc::new(now), Arc::clone)
    }

    /// `changes` names what changed on the disk since the last load, and `passes` the passes that changed since then.
    /// `None`: they cannot be read, and nothing that was judged is used again.
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
            (Some(last), Touched::Files(files), Some(passes)) => {
                last.patched(files, passes, (config, in_code, rules))
            }
            _ => None,
        };
        let (mut loaded, sound) = match patched {
            Some((mut loaded, sound)) => {
                loaded.unheeded = unheeded(&sound.index, rules, config);
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

    /// Goes through all tools, and judges those of which nothing is known.
    fn build(
        &self,
        config: &Config,
        rules: &Arc<Rules>,
        in_code: &InCode,
        passes: Option<&PassChanges>,
    ) -> (Loaded, Option<SoundLoad>) {
        let are_same = self.rules.as_ref().is_some_and(|known| Arc::ptr_eq(known, rules));
        let changed = passes.filter(|_| are_same).map(ChangedPasses::of);
        let known = |source: &Source<'_>| {
            let changed = changed.as_ref()?;
            let known = self.tools.at(&source.position)?;
            (source.is_same_as(known) && changed.leave(known)).then(|| Arc::clone(known))
        };
        let sources: Vec<Source<'_>> = source::all(config, &self.documents, in_code).collect();
        let (mut loaded, index) = build(&sources, known, config, rules);
        let unread = self.documents.unread();
        loaded.unread = unread
            .map(|unread| Problem { place: unread.file.display().to_string(), what: unread.problem.clone() })
            .collect();
        loaded.problems.extend_from_slice(&loaded.unread);
        loaded.unheeded = unheeded(&index, rules, config);
        let sound = SoundLoad::of(&loaded, index, rules, config);
        (loaded, sound)
    }

    fn read_policies(
        &mut self,
        loaded: &mut Loaded,
        files: &[PathBuf],
        in_code: &[(String, String)],
    ) -> Result<Option<Arc<CedarPolicies>>, Unusable> {
        if files.is_empty() && in_code.is_empty() {
            self.policies = None;
            return Ok(None);
        }
        let mut sources = Vec::new();
        for file in files {
            let shown = file.display().to_string();
            match policies::text(file) {
                Ok(text) => sources.push((shown, text)),
                Err(error) => loaded.problems.push(Problem { place: shown, what: error.problem }),
            }
        }
        if sources.len() < files.len() {
            return Err(Unusable);
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
                    return Err(Unusable);
                }
            }
        };
        loaded.unheeded.extend(policies.warnings().iter().map(policy_problem));
        let tools = loaded.tools.clone();
        self.policies = Some(KnownPolicies { sources, tools, policies: Arc::clone(&policies) });
        Ok(Some(policies))
    }
}

impl KnownPolicies {
    /// Would the same policies be loaded for these tools?
    fn hold_for(&self, sources: &[(String, String)], tools: &FoundTools) -> bool {
        let is_same = |(old, new): (Option<&Surveyed>, Option<&Surveyed>)| match (
            old.and_then(Surveyed::usable),
            new.and_then(Surveyed::usable),
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

    /// Does the result of a usable tool still hold?
    fn leave(&self, tool: &Surveyed) -> bool {
        tool.usable().map(|candidate| candidate.tool.spec()).is_some_and(|spec| {
            !self.ids.contains(spec.id.as_str()) && !self.names.contains(spec.name.as_str())
        })
    }
}

/// Overrides of tools that do not exist. No error: a tool may be removed before its override, and the rest must go on.
fn unheeded(index: &ToolIndex, rules: &Rules, config: &Config) -> Vec<Problem> {
    let place = config.policy.overrides.as_ref().map(|file| file.display().to_string());
    let place = place.unwrap_or_default();
    let is_shipped = |name: &str| catalog::shipped_tools().iter().any(|tool| tool.name == name);
    let has_id = |entry: &str| {
        // Most ids are in lower case.
        index.ids.contains_key(&entry.to_ascii_lowercase())
            || index.ids.keys().any(|id| id.eq_ignore_ascii_case(entry))
    };
    let is_meant = |entry: &str| index.names.contains_key(entry) || ToolId::is_uuid(entry) && has_id(entry);
    let names = rules.workshop.overrides.iter().flat_map(|overrides| overrides.tool_names());
    let unknown = names.filter(|name| !is_meant(name) && !is_shipped(name));
    let what = |name: &str| {
        format!(
            "no tool is called `{name}`, and what is said of it has no effect; correct the name, or take it out"
        )
    };
    unknown.map(|name| Problem { place: place.clone(), what: what(name) }).collect()
}
