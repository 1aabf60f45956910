//! The result of loading a workspace: the tools that were found, those that may be live, and problems.

mod build;
mod cache;
mod found;
mod patch;
mod rules;
mod source;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolgate_gate::{Candidate, LiveSet, LiveTool};
use toolgate_policy::{CedarError, CedarPolicies, PassOutcome};
use toolgate_spec::{ToolCheck, model::Body};

pub use self::found::FoundTools;
pub(crate) use self::{cache::LoadCache, rules::Rules};
use crate::{documents::Document, rust_tool::RustTool};

/// All tools that were found, those that may be live, and problems.
#[derive(Debug)]
pub struct Loaded {
    pub tools: FoundTools,
    /// The tools that are active and exposed, without policies.
    pub(crate) live: LiveSet,
    /// Errors in documents and policies. If there are any, the previous set stays active.
    pub problems: Vec<LoadProblem>,
    /// The problems about whole files and directories. It is unknown which tools these contain.
    pub(crate) unread: Vec<LoadProblem>,
    /// Overrides of tools that do not exist, and policies about callers that cannot exist. They have no effect, which the
    /// operator should know.
    pub unused_settings: Vec<LoadProblem>,
    /// Changed configuration keys that take effect after a restart.
    pub awaits_restart: Vec<String>,
    /// The operator's policies cannot be used, so no tool is served. Set when the load is activated.
    pub has_broken_policies: bool,
    /// The operator's policies, checked against all tools that were found. `Err`: they cannot be used.
    pub(crate) policies: Result<Option<Arc<CedarPolicies>>, PolicyLoadFailure>,
    pub work: LoadWork,
}

/// The work of one load, for tests and benches. A reload after one edit handles one document, however many there are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LoadWork {
    /// Files whose bytes were parsed.
    pub parsed: usize,
    /// Tools that were compared with the last load, also if nothing changed.
    pub visited: usize,
    /// Tools that were resolved, rated and prepared.
    pub assessed: usize,
}

/// The configured policies cannot be used. `problems` explains why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PolicyLoadFailure;

impl Default for Loaded {
    fn default() -> Self {
        Self {
            tools: FoundTools::default(),
            live: LiveSet::default(),
            problems: Vec::new(),
            unread: Vec::new(),
            unused_settings: Vec::new(),
            awaits_restart: Vec::new(),
            has_broken_policies: false,
            policies: Ok(None),
            work: LoadWork::default(),
        }
    }
}

/// A tool that was found, and the result of its assessment.
#[derive(Clone, Debug)]
pub struct LoadedTool {
    pub name: String,
    pub origin: ToolOrigin,
    pub candidate: Result<Candidate, String>,
    pub is_exposed: bool,
    /// The assessed document. `None`: the tool does not come from a file.
    pub(crate) document: Option<Arc<Document>>,
}

/// The source of a tool.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ToolOrigin {
    Shipped,
    File(PathBuf),
    /// A Rust function of the embedding program.
    Program,
}

/// Additions in code to the documents and policies of the configuration.
#[derive(Debug, Default)]
pub(crate) struct InCode {
    pub tools: Vec<RustTool>,
    /// The checked documents of `tools`, in the same order.
    pub checks: Vec<ToolCheck>,
    /// Cedar policies, each with its name in messages.
    pub cedar: Vec<(String, String)>,
}

/// The shipped tools that get a test run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TrialSelection {
    Untested,
    /// Also tools that failed and were not unpublished: a host that was down may be up again.
    UntestedOrFailed,
}

/// The reason why a file, tool or setting cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoadProblem {
    pub place: String,
    pub what: String,
}

impl fmt::Display for LoadProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.what)
    }
}

impl Loaded {
    /// The selected shipped tools that need a test run under the current policy.
    pub fn untested(&self, which: TrialSelection) -> impl Iterator<Item = &Candidate> {
        // Shipped tools come first.
        let shipped = self.tools.iter().take_while(|tool| tool.origin == ToolOrigin::Shipped);
        let needs_test = move |candidate: &&Candidate| match (&candidate.pass, which) {
            (None, _) => true,
            (Some(_), TrialSelection::Untested) => false,
            (Some(pass), TrialSelection::UntestedOrFailed) => {
                !pass.is_withdrawn && matches!(pass.record.outcome, PassOutcome::Failed { .. })
            }
        };
        let exposed = shipped.filter(|tool| tool.is_exposed);
        exposed.filter_map(|tool| tool.candidate.as_ref().ok()).filter(needs_test)
    }
}

impl LoadedTool {
    /// The file that the tool comes from, if any.
    pub fn file(&self) -> Option<&Path> {
        match &self.origin {
            ToolOrigin::File(file) => Some(file),
            ToolOrigin::Shipped | ToolOrigin::Program => None,
        }
    }

    pub(crate) fn usable(&self) -> Option<&Candidate> {
        self.candidate.as_ref().ok()
    }

    /// The tool, if it is active and exposed.
    pub(crate) fn live(&self) -> Option<&Arc<LiveTool>> {
        let candidate = self.usable().filter(|_| self.is_exposed)?;
        candidate.lifecycle.state.is_exposed().then_some(&candidate.tool)
    }
}

/// Problems for tools whose names clients or people could confuse. Takes wire name, name and look-alikes of each tool. A reload
/// with such a problem keeps the tools that were live before.
fn collisions<'n>(live: impl Iterator<Item = (&'n str, &'n str, &'n BTreeSet<String>)>) -> Vec<LoadProblem> {
    let mut known: HashMap<&str, (&str, &str)> = HashMap::with_capacity(live.size_hint().0);
    let mut problems = Vec::new();
    for (wire, name, looks) in live {
        if let Some((taken_wire, taken_name)) = looks.iter().find_map(|look| known.get(look.as_str())) {
            problems.push(LoadProblem {
                place: format!("tools `{taken_name}` and `{name}`"),
                what: if wire == *taken_wire {
                    format!("clients see both as `{wire}`; rename one")
                } else {
                    "their names look alike, so one can be mistaken for the other; rename one".to_owned()
                },
            });
        }
        for look in looks {
            known.entry(look).or_insert((wire, name));
        }
    }
    problems
}

fn policy_problem(error: &CedarError) -> LoadProblem {
    let place = match error.position {
        Some(position) => format!("{}:{}:{}", error.file, position.line, position.column),
        None => error.file.clone(),
    };
    let help = error.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
    LoadProblem { place, what: format!("{}{help}", error.message) }
}

fn is_javascript(check: &ToolCheck) -> bool {
    check.spec.as_ref().is_some_and(|spec| matches!(spec.body, Body::JavaScript { .. }))
}

fn place(check: &ToolCheck, origin: &ToolOrigin) -> String {
    match origin {
        ToolOrigin::Shipped => format!("shipped tool `{}`", check.name),
        ToolOrigin::File(file) => format!("{}: tool `{}`", file.display(), check.name),
        ToolOrigin::Program => format!("tool `{}` of the program", check.name),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_spec::name_looks;

    use super::*;

    fn collide(live: &[(&str, &str)]) -> Vec<LoadProblem> {
        let looks: Vec<BTreeSet<String>> = live.iter().map(|(wire, _)| name_looks(wire)).collect();
        collisions(live.iter().zip(&looks).map(|((wire, name), looks)| (*wire, *name, looks)))
    }

    #[test]
    fn tools_with_the_same_wire_name_are_a_problem() {
        let live = [("a_b_1", "a\u{1}b"), ("plain", "plain"), ("a_b_1", "a_b_1")];
        let found = collide(&live);
        let [found] = found.as_slice() else { panic!("one of them") };
        assert_eq!(found.place, "tools `a\u{1}b` and `a_b_1`");
        assert_eq!(found.what, "clients see both as `a_b_1`; rename one");
        assert!(collide(&[("a", "a"), ("b", "b")]).is_empty());
    }

    #[test]
    fn tools_whose_names_look_alike_are_a_problem() {
        for newcomer in ["Mail", "m\u{430}il", "\u{ff4d}ail", "m\u{e1}il", "mai1", "maiI"] {
            let live = [("mail", "mail"), ("mall", "mall"), (newcomer, newcomer)];
            let found = collide(&live);
            let [found] = found.as_slice() else { panic!("one of them: {newcomer}") };
            assert_eq!(found.place, format!("tools `mail` and `{newcomer}`"));
            assert!(found.what.starts_with("their names look alike"), "{}", found.what);
        }
    }
}
