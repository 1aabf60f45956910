//! Builds the set of tools from all documents. Reuses tools that were assessed before under the same rules.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use toolgate_config::Config;
use toolgate_gate::{ListPosition, LiveSet, LiveTool};

use super::{
    FoundTools, LoadProblem, LoadWork, Loaded, LoadedTool, collisions, place,
    rules::Rules,
    source::{ToolAssessment, ToolSource, assess, is_exposed},
};
use crate::catalog;

/// Indexes of the tools of a load, to detect collisions with an edited tool.
#[derive(Default)]
pub(super) struct ToolIndex {
    pub names: HashMap<String, ListPosition>,
    /// Usable tools by id.
    pub ids: HashMap<String, ListPosition>,
    /// Tools that cannot be used. Each load assesses them again, because the reason may lie outside the workspace.
    pub unusable: BTreeSet<ListPosition>,
    /// A copy of a shipped tool was skipped without a problem.
    pub has_hidden: bool,
}

impl ToolIndex {
    pub fn insert(&mut self, position: &ListPosition, tool: &LoadedTool) {
        self.names.entry(tool.name.clone()).or_insert_with(|| position.clone());
        match &tool.candidate {
            Ok(candidate) => {
                let id = candidate.tool.spec().id.as_str().to_owned();
                self.ids.entry(id).or_insert_with(|| position.clone());
            }
            Err(_) => {
                self.unusable.insert(position.clone());
            }
        }
    }

    pub fn remove(&mut self, position: &ListPosition, tool: &LoadedTool) {
        if self.names.get(&tool.name) == Some(position) {
            self.names.remove(&tool.name);
        }
        if let Ok(candidate) = &tool.candidate {
            let id = candidate.tool.spec().id.as_str();
            if self.ids.get(id) == Some(position) {
                self.ids.remove(id);
            }
        }
        self.unusable.remove(position);
    }
}

/// A build in progress.
struct Build<'l> {
    loaded: Loaded,
    index: ToolIndex,
    config: &'l Config,
}

/// `known` returns the tool of the last load if its result still holds.
pub(super) fn build<'l>(
    sources: &[ToolSource<'l>],
    known: impl Fn(&ToolSource<'l>) -> Option<Arc<LoadedTool>>,
    config: &'l Config,
    rules: &Rules,
) -> (Loaded, ToolIndex) {
    let known: Vec<Option<Arc<LoadedTool>>> = sources.iter().map(known).collect();
    let fresh: Vec<&ToolSource<'l>> =
        sources.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(source, _)| source).collect();
    let work = LoadWork { parsed: 0, visited: sources.len(), assessed: fresh.len() };
    let mut assessed = assess(&fresh, rules).into_iter();
    let mut build =
        Build { loaded: Loaded { work, ..Loaded::default() }, index: ToolIndex::default(), config };
    build.loaded.problems.extend(catalog::altered().into_iter().map(|name| LoadProblem {
        place: format!("shipped tool `{name}`"),
        what: "it differs from the reviewed version; this program was built from altered files".to_owned(),
    }));
    for (source, known) in sources.iter().zip(known) {
        match known {
            Some(known) => build.take_known(source, known),
            None => {
                if let Some(assessed) = assessed.next() {
                    build.take(source, assessed);
                }
            }
        }
    }
    build.finish()
}

impl<'l> Build<'l> {
    fn take_known(&mut self, source: &ToolSource<'l>, known: Arc<LoadedTool>) {
        if !source.is_shipped && self.collides(source) {
            return;
        }
        let is_exposed = is_exposed(self.config, &known.candidate);
        let tool = if known.is_exposed == is_exposed {
            known
        } else {
            Arc::new(LoadedTool { is_exposed, ..known.as_ref().clone() })
        };
        self.push(source, tool);
    }

    fn take(&mut self, source: &ToolSource<'l>, assessed: ToolAssessment) {
        if let Some(refusal) = assessed.refusal {
            return self.refuse(source, refusal);
        }
        if !source.is_shipped {
            if self.collides(source) {
                return;
            }
            // Refused, because the tool would get a secret of the gateway.
            if let Some(what) = assessed.asks_for_own {
                return self.refuse(source, what);
            }
        }
        let candidate = assessed.candidate.map_err(|unfit| {
            let (what, is_problem) = source.explain(unfit);
            if is_problem {
                let place = place(source.check, &source.origin());
                self.loaded.problems.push(LoadProblem { place, what: what.clone() });
            }
            what
        });
        self.push(source, Arc::new(source.loaded_tool(candidate, self.config)));
    }

    /// Whether another tool has its id or name. If so, refuses this one.
    fn collides(&mut self, source: &ToolSource<'l>) -> bool {
        let check = source.check;
        // Passes are stored by id, so two tools with one id would share them.
        let holder = check.spec.as_ref().and_then(|spec| self.index.ids.get(spec.id.as_str()));
        let holder = holder.and_then(|position| self.loaded.tools.at(position));
        if holder.is_some_and(|tool| tool.name != check.name) {
            self.refuse(
                source,
                "another tool has the same `toolId`; remove it or write a new one".to_owned(),
            );
            return true;
        }
        let is_taken = self.index.names.contains_key(check.name.as_str());
        // An identical copy of a shipped tool is skipped without a problem.
        if is_taken && catalog::reserved_by(&check.name).is_none() {
            self.refuse(source, format!("there are two tools `{}`; rename one", check.name));
        } else if is_taken {
            self.index.has_hidden = true;
        }
        is_taken
    }

    fn push(&mut self, source: &ToolSource<'l>, tool: Arc<LoadedTool>) {
        self.index.insert(&source.position, &tool);
        self.loaded.tools.insert(source.position.clone(), tool);
    }

    fn refuse(&mut self, source: &ToolSource<'l>, what: String) {
        let place = place(source.check, &source.origin());
        self.loaded.problems.push(LoadProblem { place, what: what.clone() });
        self.push(source, Arc::new(source.loaded_tool(Err(what), self.config)));
    }

    fn finish(self) -> (Loaded, ToolIndex) {
        let Self { mut loaded, index, .. } = self;
        let live: Vec<_> = live(&loaded.tools).collect();
        let names = live.iter().map(|(_, tool)| (tool.name(), tool.spec().name.as_str(), tool.looks()));
        loaded.problems.extend(collisions(names));
        // At startup, neither of two tools that look alike is live. A reload is rejected because of the problem above.
        (loaded.live, _) = LiveSet::with_positions(live);
        (loaded, index)
    }
}

/// The tools that are active and exposed.
fn live(tools: &FoundTools) -> impl Iterator<Item = (ListPosition, Arc<LiveTool>)> {
    tools.with_positions().filter_map(|(position, tool)| Some((position.clone(), Arc::clone(tool.live()?))))
}
