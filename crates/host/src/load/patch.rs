//! Updates the last load after changes of documents or passes. The work does not grow with the number of tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use toolgate_config::{
    Config,
    model::{Catalog, Exposure},
};
use toolgate_gate::{ListPosition, LiveSet, LiveTool};
use toolgate_store::PassChanges;

use super::{
    FoundTools, InCode, LoadWork, Loaded,
    build::ToolIndex,
    rules::Rules,
    source::{ToolAssessment, ToolSource, assess},
};
use crate::documents::TouchedFile;

/// The last load, if it had no problems. Only such a load can be patched.
pub(super) struct SoundLoad {
    tools: FoundTools,
    live: LiveSet,
    pub index: ToolIndex,
    rules: Arc<Rules>,
    catalog: Catalog,
    exposure: Exposure,
}

impl SoundLoad {
    /// `None`: the load has problems, or its result depends on the order of documents.
    pub fn of(loaded: &Loaded, index: ToolIndex, rules: &Arc<Rules>, config: &Config) -> Option<Self> {
        let is_sound = loaded.problems.is_empty() && !index.has_hidden;
        is_sound.then(|| Self {
            tools: loaded.tools.clone(),
            live: loaded.live.clone(),
            index,
            rules: Arc::clone(rules),
            catalog: config.catalog.clone(),
            exposure: config.exposure.clone(),
        })
    }

    fn is_for(&self, rules: &Arc<Rules>, config: &Config) -> bool {
        Arc::ptr_eq(&self.rules, rules) && self.catalog == config.catalog && self.exposure == config.exposure
    }

    /// Returns the next load. `None`: there is an error or a collision; a full load then reports it.
    pub fn patched(
        mut self,
        files: &[TouchedFile],
        passes: &PassChanges,
        (config, in_code, rules): (&Config, &InCode, &Arc<Rules>),
    ) -> Option<(Loaded, Self)> {
        if !self.is_for(rules, config) || files.iter().any(|file| file.is_unread) {
            return None;
        }
        let before = self.tools.clone();
        let mut outdated = self.outdated(passes);
        let mut sources: BTreeMap<ListPosition, ToolSource<'_>> = BTreeMap::new();
        for position in &outdated {
            let source = ToolSource::again(position, before.at(position)?, in_code)?;
            sources.insert(position.clone(), source);
        }
        for file in files {
            for source in ToolSource::of_touched(file, &file.before) {
                sources.remove(&source.position);
                outdated.insert(source.position);
            }
            sources.extend(
                ToolSource::of_touched(file, &file.after).map(|source| (source.position.clone(), source)),
            );
        }
        let sources: Vec<&ToolSource<'_>> = sources.values().collect();
        let assessed = assess(&sources, rules);
        let removed = self.remove(&outdated);
        let mut added = Vec::new();
        for (source, assessed) in sources.iter().zip(assessed) {
            self.add(source, assessed, config, &mut added)?;
        }
        self.live = self.live.changed(removed.iter().map(AsRef::as_ref), added)?;
        let loaded = Loaded {
            tools: self.tools.clone(),
            live: self.live.clone(),
            work: LoadWork { parsed: 0, visited: sources.len(), assessed: sources.len() },
            ..Loaded::default()
        };
        Some((loaded, self))
    }

    /// Tools that must be assessed again although their documents did not change.
    fn outdated(&self, passes: &PassChanges) -> BTreeSet<ListPosition> {
        let mut outdated = self.index.unusable.clone();
        for (id, name) in &passes.tools {
            outdated.extend(self.index.ids.get(id).cloned());
            outdated.extend(name.as_ref().and_then(|name| self.index.names.get(name)).cloned());
        }
        outdated
    }

    /// Removes these tools. Returns the live ones.
    fn remove(&mut self, outdated: &BTreeSet<ListPosition>) -> Vec<Arc<LiveTool>> {
        let mut removed = Vec::new();
        for position in outdated {
            if let Some(tool) = self.tools.remove(position) {
                self.index.remove(position, &tool);
                removed.extend(tool.live().cloned());
            }
        }
        removed
    }

    /// Adds a tool, and also to `added` if it is live. `None`: it has an error, or its name or id is taken.
    fn add(
        &mut self,
        source: &ToolSource<'_>,
        assessed: ToolAssessment,
        config: &Config,
        added: &mut Vec<(ListPosition, Arc<LiveTool>)>,
    ) -> Option<()> {
        let id = source.check.spec.as_ref().map(|spec| spec.id.as_str());
        let is_taken = self.index.names.contains_key(&source.check.name)
            || id.is_some_and(|id| self.index.ids.contains_key(id));
        let is_refused = assessed.refusal.is_some() || assessed.asks_for_own.is_some();
        if is_taken || is_refused {
            return None;
        }
        let candidate = match assessed.candidate {
            Ok(candidate) => Ok(candidate),
            Err(unfit) => {
                let (what, is_problem) = source.explain(unfit);
                if is_problem {
                    return None;
                }
                Err(what)
            }
        };
        let tool = Arc::new(source.loaded_tool(candidate, config));
        self.index.insert(&source.position, &tool);
        added.extend(tool.live().map(|live| (source.position.clone(), Arc::clone(live))));
        self.tools.insert(source.position.clone(), tool);
        Some(())
    }
}
