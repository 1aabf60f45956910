//! The tools of a workspace: which were found, which may be live, and the problems with the others.

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

/// Everything that was found, and what of it may be live.
#[derive(Debug)]
pub struct Loaded {
    pub tools: FoundTools,
    /// Those of them that are active and exposed, without policies.
    pub(crate) live: LiveSet,
    /// Errors in documents and policies. With any of these an earlier good set stays in force.
    pub problems: Vec<Problem>,
    /// Those of them that are about whole files and folders: which tools are in there is not known.
    pub(crate) unread: Vec<Problem>,
    /// Overrides of tools that do not exist, and policies about callers that cannot exist. They look like a guard and are none.
    pub unheeded: Vec<Problem>,
    /// Keys of the configuration that were changed and count only after a restart.
    pub awaits_restart: Vec<String>,
    /// The operator's policies cannot be used, and no tool is served. Set when the load is put in force.
    pub has_broken_policies: bool,
    /// The operator's policies, checked against all tools that were found; `Err` where they cannot be used.
    pub(crate) policies: Result<Option<Arc<CedarPolicies>>, Unusable>,
    pub work: LoadWork,
}

/// The work of one load. A reload after one edit visits, parses and judges one document, however many there are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LoadWork {
    /// Files whose bytes were parsed.
    pub parsed: usize,
    /// Tools that were looked at, be it to find that nothing about them changed.
    pub visited: usize,
    /// Tools that were resolved, rated and prepared.
    pub judged: usize,
}

/// There are policies, and they cannot be used; `problems` says why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Unusable;

impl Default for Loaded {
    fn default() -> Self {
        Self {
            tools: FoundTools::default(),
            live: LiveSet::default(),
            problems: Vec::new(),
            unread: Vec::new(),
            unheeded: Vec::new(),
            awaits_restart: Vec::new(),
            has_broken_policies: false,
            policies: Ok(None),
            work: LoadWork::default(),
        }
    }
}

/// A tool and how far it has come.
#[derive(Clone, Debug)]
pub struct Surveyed {
    pub name: String,
    pub origin: Origin,
    pub candidate: Result<Candidate, String>,
    pub is_exposed: bool,
    /// The document that was judged. `None`: the tool is shipped.
    pub(crate) document: Option<Arc<Document>>,
}

/// Where a tool comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    Shipped,
    File(PathBuf),
    /// A function of the program that embeds the gateway.
    Program,
}

/// Additions in code to the documents and policies of the configuration.
#[derive(Debug, Default)]
pub(crate) struct InCode {
    pub tools: Vec<RustTool>,
    /// The judgements of their documents. They stay at one address, by which `LoadCache` knows them.
    pub checks: Vec<ToolCheck>,
    /// Cedar policies, each with the name that messages give it.
    pub cedar: Vec<(String, String)>,
}

/// Which shipped tools are to be tried?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ToTry {
    /// Those that have not been.
    Untried,
    /// Those that have failed, too, and that nobody took back: a host that was down may be up again.
    AlsoFailed,
}

/// Something that keeps a file or a tool from being used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    pub place: String,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.what)
    }
}

impl Loaded {
    /// Shipped tools that were chosen and are to take a test run under the policy in force.
    pub fn untried(&self, which: ToTry) -> impl Iterator<Item = &Candidate> {
        // They come first.
        let shipped = self.tools.iter().take_while(|tool| tool.origin == Origin::Shipped);
        let is_meant = move |candidate: &&Candidate| match (&candidate.pass, which) {
            (None, _) => true,
            (Some(_), ToTry::Untried) => false,
            (Some(pass), ToTry::AlsoFailed) => {
                !pass.is_withdrawn && matches!(pass.record.outcome, PassOutcome::Failed { .. })
            }
        };
        let exposed = shipped.filter(|tool| tool.is_exposed);
        exposed.filter_map(|tool| tool.candidate.as_ref().ok()).filter(is_meant)
    }
}

impl Surveyed {
    /// The file that the tool comes from, if any.
    pub fn file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::File(file) => Some(file),
            Origin::Shipped | Origin::Program => None,
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

/// Tools with names of their own that clients or people could not tell apart, by their name on the wire and their own. A mistake
/// like any other: who was live before stays so, and the newcomer does not take its place.
fn collisions<'n>(live: impl Iterator<Item = (&'n str, &'n str, &'n BTreeSet<String>)>) -> Vec<Problem> {
    let mut known: HashMap<&str, (&str, &str)> = HashMap::with_capacity(live.size_hint().0);
    let mut problems = Vec::new();
    for (wire, name, looks) in live {
        if let Some((taken_wire, taken_name)) = looks.iter().find_map(|look| known.get(look.as_str())) {
            problems.push(Problem {
                place: format!("tools `{taken_name}` and `{name}`"),
                what: if wire == *taken_wire {
                    format!("both have the name `{wire}` on the wire; rename one")
                } else {
                    "one can be taken for the other, for their names look alike; rename one".to_owned()
                },
            });
        }
        for look in looks {
            known.entry(look).or_insert((wire, name));
        }
    }
    problems
}

fn policy_problem(error: &CedarError) -> Problem {
    let place = match error.position {
        Some(position) => format!("{}:{}:{}", error.file, position.line, position.column),
        None => error.file.clone(),
    };
    let help = error.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
    Problem { place, what: format!("{}{help}", error.message) }
}

fn is_javascript(check: &ToolCheck) -> bool {
    check.spec.as_ref().is_some_and(|spec| matches!(spec.body, Body::JavaScript { .. }))
}

fn place(check: &ToolCheck, origin: &Origin) -> String {
    match origin {
        Origin::Shipped => format!("shipped tool `{}`", check.name),
        Origin::File(file) => format!("{}: tool `{}`", file.display(), check.name),
        Origin::Program => format!("tool `{}` of the program", check.name),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_spec::name_looks;

    use super::*;

    fn collide(live: &[(&str, &str)]) -> Vec<Problem> {
        let looks: Vec<BTreeSet<String>> = live.iter().map(|(wire, _)| name_looks(wire)).collect();
        collisions(live.iter().zip(&looks).map(|((wire, name), looks)| (*wire, *name, looks)))
    }

    #[test]
    fn tools_that_clients_could_not_tell_apart_are_a_mistake() {
        let live = [("a_b_1", "a\u{1}b"), ("plain", "plain"), ("a_b_1", "a_b_1")];
        let found = collide(&live);
        let [found] = found.as_slice() else { panic!("one of them") };
        assert_eq!(found.place, "tools `a\u{1}b` and `a_b_1`");
        assert_eq!(found.what, "both have the name `a_b_1` on the wire; rename one");
        assert!(collide(&[("a", "a"), ("b", "b")]).is_empty());
    }

    #[test]
    fn so_are_tools_that_people_could_not_tell_apart() {
        for newcomer in ["Mail", "m\u{430}il", "\u{ff4d}ail", "m\u{e1}il", "mai1", "maiI"] {
            let live = [("mail", "mail"), ("mall", "mall"), (newcomer, newcomer)];
            let found = collide(&live);
            let [found] = found.as_slice() else { panic!("one of them: {newcomer}") };
            assert_eq!(found.place, format!("tools `mail` and `{newcomer}`"));
            assert!(found.what.ends_with("look alike; rename one"), "{}", found.what);
        }
    }
}
