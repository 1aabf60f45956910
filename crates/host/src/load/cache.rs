//! Loads the workspace, and keeps what a reload can use again.
//!
//! A tool is judged again if its document, its Local Pass, the policies or the gateway's own files and variables changed.
//! Everything else is shared with the last load. A tool that cannot be used is judged again in every load, because the
//! reason may lie outside of the workspace, such as a program that was missing.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use toolgate_config::{Config, OwnNames};
use toolgate_gate::{Candidate, LiveTool, Unfit, Workshop};
use toolgate_handlers::{EnvironmentSecrets, check_variables};
use toolgate_policy::CedarPolicies;
use toolgate_spec::{ToolCheck, is_deceptive, model::ToolId};
use toolgate_store::{FileChanges, PassChanges};

use super::{
    InCode, LoadWork, Loaded, Origin, Problem, Surveyed, Unusable, collisions, is_javascript, place,
    policy_problem,
};
use crate::{
    catalog,
    documents::{Document, Documents},
    exposure,
    handlers::own_variables,
    parallel::in_parallel,
    policies,
};

/// The documents and results of the last load.
#[derive(Default)]
pub(crate) struct LoadCache {
    documents: Documents,
    /// Usable tools by the address of their check. Each keeps its document alive, so no other check gets the address.
    surveyed: HashMap<usize, Arc<Surveyed>>,
    judged_by: Option<JudgedBy>,
    /// The number of the last change of a pass that was seen.
    passes_seen: i64,
    policies: Option<KnownPolicies>,
}

/// The rules and paths that the tools of the last load were judged by.
#[derive(PartialEq)]
struct JudgedBy {
    workshop: WorkshopId,
    own: OwnNames,
    /// The gateway's own paths with their symlinks resolved. A tool keeps away from the targets it was judged with.
    guarded: Vec<PathBuf>,
}

/// Equal only for the same workshop.
struct WorkshopId(Arc<Workshop>);

impl PartialEq for WorkshopId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl JudgedBy {
    fn now(workshop: &Arc<Workshop>, config: &Config) -> Self {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        Self {
            workshop: WorkshopId(Arc::clone(workshop)),
            own: config.own_variables(),
            guarded: config.guarded_paths().into_iter().map(real).collect(),
        }
    }
}

/// The operator's policies, with the files and the tools that they were loaded for.
struct KnownPolicies {
    sources: Vec<(String, String)>,
    tools: Vec<Arc<LiveTool>>,
    policies: Arc<CedarPolicies>,
}

/// A tool that was found.
struct Source<'d> {
    check: &'d ToolCheck,
    /// Only of a tool from a file.
    document: Option<&'d Arc<Document>>,
    is_shipped: bool,
}

/// The result for one tool, without a look at the others.
struct Judged {
    /// Its name cannot be used.
    refusal: Option<String>,
    /// It asks for a variable of the gateway.
    asks_for_own: Option<String>,
    candidate: Result<Candidate, Unfit>,
}

/// A load that is under way.
struct Loading<'l> {
    loaded: Loaded,
    config: &'l Config,
    names: HashSet<&'l str>,
    /// Names by id, of usable tools.
    ids: HashMap<&'l str, &'l str>,
    /// The cache of the next load.
    surveyed: HashMap<usize, Arc<Surveyed>>,
}

impl LoadCache {
    /// Forgets everything that was judged: the next load judges all tools again.
    pub fn forget(&mut self) {
        self.judged_by = None;
    }

    pub const fn passes_seen(&self) -> i64 {
        self.passes_seen
    }

    /// `changes` names what changed on the disk since the last load, and `passes` the passes that changed since then.
    /// `None`: they cannot be read, and nothing that was judged is used again.
    pub fn load(
        &mut self,
        config: &Config,
        workshop: &Arc<Workshop>,
        in_code: &InCode,
        changes: &FileChanges,
        passes: Option<&PassChanges>,
    ) -> Loaded {
        self.documents.update(&config.tools, changes);
        // Before the tools are judged: a symlink that is switched meanwhile differs in the next load.
        let judged_by = JudgedBy::now(workshop, config);
        self.drop_outdated(&judged_by, passes);
        let documents = std::mem::take(&mut self.documents);
        let mut loading = self.take_all((&documents, in_code), config, workshop, &judged_by.own);
        loading.loaded.work.parsed = documents.parsed;
        loading.read_unread(&documents);
        loading.loaded.unheeded = loading.unheeded(workshop);
        let Loading { mut loaded, surveyed, .. } = loading;
        self.documents = documents;
        self.surveyed = surveyed;
        self.judged_by = passes.is_some().then_some(judged_by);
        let live = loaded.live();
        let names = live.iter().map(|tool| (tool.name(), tool.spec().name.as_str(), tool.looks()));
        loaded.problems.extend(collisions(names));
        loaded.policies = self.read_policies(&mut loaded, &config.policy.cedar, &in_code.cedar);
        loaded
    }

    fn drop_outdated(&mut self, judged_by: &JudgedBy, passes: Option<&PassChanges>) {
        let Some(passes) = passes.filter(|_| self.judged_by.as_ref() == Some(judged_by)) else {
            self.surveyed.clear();
            self.passes_seen = passes.map_or(0, |passes| passes.last);
            return;
        };
        self.passes_seen = passes.last;
        if passes.tools.is_empty() {
            return;
        }
        let ids: HashSet<&str> = passes.tools.iter().map(|(id, _)| id.as_str()).collect();
        let names: HashSet<&str> = passes.tools.iter().filter_map(|(_, name)| name.as_deref()).collect();
        let is_current = |tool: &Surveyed| {
            let spec = tool.candidate.as_ref().map(|candidate| candidate.tool.spec());
            spec.is_ok_and(|spec| !ids.contains(spec.id.as_str()) && !names.contains(spec.name.as_str()))
        };
        self.surveyed.retain(|_, tool| is_current(tool));
    }

    /// The result of the last load, if it is for this very document.
    fn known(&self, source: &Source<'_>) -> Option<&Arc<Surveyed>> {
        let known = self.surveyed.get(&source.key())?;
        let is_same = match (&known.document, source.document) {
            (Some(known), Some(document)) => Arc::ptr_eq(known, document),
            (known, document) => known.is_none() && document.is_none(),
        };
        is_same.then_some(known)
    }

    fn take_all<'l>(
        &self,
        (documents, in_code): (&'l Documents, &'l InCode),
        config: &'l Config,
        workshop: &Workshop,
        own: &OwnNames,
    ) -> Loading<'l> {
        let without_file = |check, is_shipped| Source { check, document: None, is_shipped };
        let shipped = chosen_shipped(config).map(|check| without_file(check, true));
        let of_program = in_code.checks.iter().map(|check| without_file(check, false));
        let found = documents.tools().map(|document| Source {
            check: &document.check,
            document: Some(document),
            is_shipped: false,
        });
        let sources: Vec<Source<'l>> = shipped.chain(found).chain(of_program).collect();
        let fresh: Vec<&Source<'l>> = sources.iter().filter(|source| self.known(source).is_none()).collect();
        let secrets = EnvironmentSecrets(own_variables(own.clone()));
        let judged = in_parallel(&fresh, |source| source.judged(workshop, &secrets));
        let mut judged: HashMap<usize, Judged> =
            fresh.iter().map(|source| source.key()).zip(judged).collect();
        let mut loading = Loading {
            loaded: Loaded { work: LoadWork { parsed: 0, judged: judged.len() }, ..Loaded::default() },
            config,
            names: HashSet::with_capacity(sources.len()),
            ids: HashMap::with_capacity(sources.len()),
            surveyed: HashMap::with_capacity(sources.len()),
        };
        loading.loaded.problems.extend(catalog::altered().into_iter().map(|name| Problem {
            place: format!("shipped tool `{name}`"),
            what: "it is not as it was reviewed; this program was built from altered files".to_owned(),
        }));
        for source in &sources {
            match (self.known(source), judged.remove(&source.key())) {
                (Some(known), _) => loading.take_known(source, known),
                (None, Some(judged)) => loading.take(source, judged),
                // One key has one entry.
                (None, None) => {}
            }
        }
        loading
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
        let known = loaded.tools.iter().filter_map(|tool| tool.candidate.as_ref().ok());
        let tools: Vec<Arc<LiveTool>> = known.map(|candidate| Arc::clone(&candidate.tool)).collect();
        let policies = match self.policies.take().filter(|known| known.hold_for(&sources, &tools)) {
            Some(known) => known.policies,
            None => match CedarPolicies::new(&sources, tools.iter().map(|tool| tool.for_policies())) {
                Ok(policies) => Arc::new(policies),
                Err(errors) => {
                    loaded.problems.extend(errors.iter().map(policy_problem));
                    return Err(Unusable);
                }
            },
        };
        loaded.unheeded.extend(policies.warnings().iter().map(policy_problem));
        self.policies = Some(KnownPolicies { sources, tools, policies: Arc::clone(&policies) });
        Ok(Some(policies))
    }
}

impl KnownPolicies {
    /// Would the same policies be loaded for these tools?
    fn hold_for(&self, sources: &[(String, String)], tools: &[Arc<LiveTool>]) -> bool {
        let is_same = |(one, other): (&Arc<LiveTool>, &Arc<LiveTool>)| {
            Arc::ptr_eq(one, other) || one.for_policies().is_same_as(&other.for_policies())
        };
        self.sources == sources
            && self.tools.len() == tools.len()
            && self.tools.iter().zip(tools).all(is_same)
    }
}

/// The shipped tools that the configuration chooses, in order.
fn chosen_shipped(config: &Config) -> impl Iterator<Item = &'static ToolCheck> {
    let shipped = catalog::shipped_tools();
    let specs = shipped.iter().filter_map(|tool| tool.check.spec.as_ref());
    let base = catalog::preset(config.catalog.preset.name()).unwrap_or_default();
    let chosen = exposure::choose(&config.catalog, &base, &specs);
    chosen
        .into_iter()
        .filter_map(|spec| shipped.iter().find(|tool| tool.name == spec.name))
        .map(|tool| &tool.check)
}

impl Source<'_> {
    fn key(&self) -> usize {
        std::ptr::from_ref(self.check).addr()
    }

    fn origin(&self) -> Origin {
        match self.document {
            Some(document) => Origin::File(document.file.clone()),
            None if self.is_shipped => Origin::Shipped,
            None => Origin::Program,
        }
    }

    fn judged(&self, workshop: &Workshop, secrets: &EnvironmentSecrets) -> Judged {
        let spec = self.check.spec.as_ref().filter(|_| !self.is_shipped);
        Judged {
            refusal: if self.is_shipped { None } else { refused_name(self.check) },
            asks_for_own: spec.and_then(|spec| check_variables(spec, secrets).err()),
            candidate: workshop.assess(self.check),
        }
    }
}

/// Why a tool may not have its name: it deceives the eye, or it belongs to a shipped tool.
fn refused_name(check: &ToolCheck) -> Option<String> {
    if let Some(unseen) = check.name.chars().find(|character| is_deceptive(*character)) {
        return Some(format!(
            "its name holds a character that nobody sees, U+{:04X}; write the name without it",
            u32::from(unseen)
        ));
    }
    catalog::reserved_name(check).map(|finding| format!("{}; {}", finding.message, finding.remedy))
}

impl<'l> Loading<'l> {
    fn take_known(&mut self, source: &Source<'l>, known: &Arc<Surveyed>) {
        if !source.is_shipped && self.collides(source) {
            return;
        }
        let is_exposed = self.is_exposed(&known.candidate);
        let tool = if known.is_exposed == is_exposed {
            Arc::clone(known)
        } else {
            Arc::new(Surveyed { is_exposed, ..known.as_ref().clone() })
        };
        self.push(source, tool);
    }

    fn take(&mut self, source: &Source<'l>, judged: Judged) {
        if let Some(refusal) = judged.refusal {
            return self.refuse(source, refusal);
        }
        if !source.is_shipped {
            if self.collides(source) {
                return;
            }
            // A mistake, because the tool would get a secret of the gateway.
            if let Some(what) = judged.asks_for_own {
                return self.refuse(source, what);
            }
        }
        let candidate = judged.candidate.map_err(|unfit| self.note_unfit(source, unfit));
        let is_exposed = self.is_exposed(&candidate);
        let document = source.document.cloned();
        let tool = Surveyed {
            name: source.check.name.clone(),
            origin: source.origin(),
            candidate,
            is_exposed,
            document,
        };
        self.push(source, Arc::new(tool));
    }

    fn note_unfit(&mut self, source: &Source<'l>, unfit: Unfit) -> String {
        let (what, is_problem) = match unfit {
            Unfit::Findings(findings) => {
                let first = findings.first();
                (first.map_or_else(|| "it has errors".to_owned(), |one| one.message.clone()), true)
            }
            // A command may be missing on this machine and there on the next; what JavaScript asks for is ours to offer.
            Unfit::NotOffered(what) => (what, is_javascript(source.check)),
            Unfit::Unreadable(what) => (what, true),
        };
        if is_problem {
            let place = place(source.check, &source.origin());
            self.loaded.problems.push(Problem { place, what: what.clone() });
        }
        what
    }

    /// Does another tool have its id or name? Then it is refused.
    fn collides(&mut self, source: &Source<'l>) -> bool {
        let check = source.check;
        // Passes are kept by id: two tools with one id would take each other's.
        let holder = check.spec.as_ref().and_then(|spec| self.ids.get(spec.id.as_str()));
        if holder.is_some_and(|name| *name != check.name) {
            self.refuse(
                source,
                "another tool has the same `toolId`; leave it out or make a new one".to_owned(),
            );
            return true;
        }
        let is_taken = self.names.contains(check.name.as_str());
        // A copy of the shipped tool itself does not collide with it.
        if is_taken && catalog::reserved_by(&check.name).is_none() {
            self.refuse(source, format!("there are two tools `{}`; rename one", check.name));
        }
        is_taken
    }

    fn is_exposed(&self, candidate: &Result<Candidate, String>) -> bool {
        let exposure = &self.config.exposure;
        candidate.as_ref().is_ok_and(|candidate| exposure::is_exposed(exposure, candidate.tool.spec()))
    }

    fn push(&mut self, source: &Source<'l>, tool: Arc<Surveyed>) {
        self.names.insert(&source.check.name);
        if let (Ok(_), Some(spec)) = (&tool.candidate, &source.check.spec) {
            self.ids.entry(spec.id.as_str()).or_insert(&spec.name);
            self.surveyed.insert(source.key(), Arc::clone(&tool));
        }
        self.loaded.tools.push(tool);
    }

    fn refuse(&mut self, source: &Source<'l>, what: String) {
        let (name, origin) = (source.check.name.clone(), source.origin());
        self.loaded.problems.push(Problem { place: place(source.check, &origin), what: what.clone() });
        let document = source.document.cloned();
        self.push(
            source,
            Arc::new(Surveyed { name, origin, candidate: Err(what), is_exposed: false, document }),
        );
    }

    fn read_unread(&mut self, documents: &Documents) {
        let unread = documents.unread();
        self.loaded.unread = unread
            .map(|unread| Problem { place: unread.file.display().to_string(), what: unread.problem.clone() })
            .collect();
        self.loaded.problems.extend_from_slice(&self.loaded.unread);
    }

    /// No error: a tool may be gone before its override is, and what is served must not stay as it was for that.
    fn unheeded(&self, workshop: &Workshop) -> Vec<Problem> {
        let place = self.config.policy.overrides.as_ref().map(|file| file.display().to_string());
        let place = place.unwrap_or_default();
        let is_shipped = |name: &str| catalog::shipped_tools().iter().any(|tool| tool.name == name);
        let names = workshop.overrides.iter().flat_map(|overrides| overrides.tool_names());
        let has_id = |entry: &str| self.ids.keys().any(|id| id.eq_ignore_ascii_case(entry));
        let is_meant = |entry: &str| self.names.contains(entry) || ToolId::is_uuid(entry) && has_id(entry);
        let unknown = names.filter(|name| !is_shipped(name) && !is_meant(name));
        let what = |name: &str| {
            format!(
                "no tool is called `{name}`, and what is said of it has no effect; correct the name, or take it out"
            )
        };
        unknown.map(|name| Problem { place: place.clone(), what: what(name) }).collect()
    }
}
