//! What is there, what may be live, and what is wrong with the rest? Everything is read anew and swapped whole.

use std::{collections::HashMap, fmt, path::PathBuf, sync::Arc};

use toolgate_config::Config;
use toolgate_gate::{Candidate, LiveTool, Unfit, Workshop};
use toolgate_handlers::{EnvironmentSecrets, check_variables};
use toolgate_policy::{CedarError, CedarPolicies, PassOutcome};
use toolgate_spec::{ToolCheck, digest, is_deceptive, model::Body, name_looks};

use crate::{catalog, documents, exposure, handlers::own_variables, policies, rust_tool::RustTool};

/// Everything that was found, and what of it may be live.
#[derive(Debug)]
pub struct Loaded {
    pub tools: Vec<Surveyed>,
    /// Errors in documents and policies. With any of these an earlier good set stays in force.
    pub problems: Vec<Problem>,
    /// Those of them that are about whole files and folders: which tools are in there is not known.
    pub(crate) unread: Vec<Problem>,
    /// Overrides of tools that do not exist, and policies about callers that cannot exist. They look like a guard and are none.
    pub unheeded: Vec<Problem>,
    /// Keys of the configuration that were changed and count only after a restart.
    pub awaits_restart: Vec<String>,
    /// The operator's policies, checked against all tools that were found; `Err` where they cannot be used.
    pub(crate) policies: Result<Option<CedarPolicies>, Unusable>,
}

/// There are policies, and they cannot be used; `problems` says why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Unusable;

impl Default for Loaded {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            problems: Vec::new(),
            unread: Vec::new(),
            unheeded: Vec::new(),
            awaits_restart: Vec::new(),
            policies: Ok(None),
        }
    }
}

/// A tool and how far it has come.
#[derive(Debug)]
pub struct Surveyed {
    pub name: String,
    pub origin: Origin,
    pub candidate: Result<Candidate, String>,
    pub is_exposed: bool,
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
    /// The tools that are active and exposed, in order: shipped ones first, as the preset has them, then the files'.
    pub fn live(&self) -> Vec<Arc<LiveTool>> {
        let is_live = |tool: &&Surveyed| {
            tool.is_exposed
                && tool.candidate.as_ref().is_ok_and(|candidate| candidate.lifecycle.state.is_exposed())
        };
        self.tools
            .iter()
            .filter(is_live)
            .filter_map(|tool| tool.candidate.as_ref().ok())
            .map(|candidate| Arc::clone(&candidate.tool))
            .collect()
    }

    /// Shipped tools that were chosen and are to take a test run under the policy in force.
    pub fn untried(&self, which: ToTry) -> impl Iterator<Item = &Candidate> {
        let shipped = self.tools.iter().filter(|tool| tool.origin == Origin::Shipped && tool.is_exposed);
        let is_meant = move |candidate: &&Candidate| match (&candidate.pass, which) {
            (None, _) => true,
            (Some(_), ToTry::Untried) => false,
            (Some(pass), ToTry::AlsoFailed) => {
                !pass.is_withdrawn && matches!(pass.record.outcome, PassOutcome::Failed { .. })
            }
        };
        shipped.filter_map(|tool| tool.candidate.as_ref().ok()).filter(is_meant)
    }
}

pub fn load(config: &Config, workshop: &Workshop, in_code: &InCode) -> Loaded {
    let mut loaded = Loaded::default();
    let shipped = catalog::shipped_tools();
    let specs = shipped.iter().filter_map(|tool| tool.check.spec.as_ref());
    loaded.problems.extend(catalog::altered().into_iter().map(|name| Problem {
        place: format!("shipped tool `{name}`"),
        what: "it is not as it was reviewed; this program was built from altered files".to_owned(),
    }));
    let base = catalog::preset(config.catalog.preset.name()).unwrap_or_default();
    for spec in exposure::choose(&config.catalog, &base, &specs) {
        if let Some(tool) = shipped.iter().find(|tool| tool.name == spec.name) {
            loaded.take(&tool.check, Origin::Shipped, config, workshop);
        }
    }
    let (found, unread) = documents::read(&config.tools);
    loaded.unread = unread
        .into_iter()
        .map(|unread| Problem { place: unread.file.display().to_string(), what: unread.problem })
        .collect();
    loaded.problems.extend_from_slice(&loaded.unread);
    for document in found {
        loaded.take_own(&document.check, Origin::File(document.file), config, workshop);
    }
    for tool in &in_code.tools {
        loaded.take_own(&tool.check(), Origin::Program, config, workshop);
    }
    let is_shipped = |name: &str| shipped.iter().any(|tool| tool.name == name);
    loaded.unheeded = loaded.unheeded(config, workshop, is_shipped);
    let live = loaded.live();
    loaded.problems.extend(collisions(live.iter().map(|tool| (tool.name(), tool.spec().name.as_str()))));
    loaded.policies = loaded.read_policies(&config.policy.cedar, &in_code.cedar);
    loaded
}

/// Tools with names of their own that clients or people could not tell apart, by their name on the wire and their own. A mistake
/// like any other: who was live before stays so, and the newcomer does not take its place.
fn collisions<'n>(live: impl Iterator<Item = (&'n str, &'n str)>) -> Vec<Problem> {
    let mut known: HashMap<String, (&str, &str)> = HashMap::new();
    let mut problems = Vec::new();
    for (wire, name) in live {
        let looks = name_looks(wire);
        if let Some((taken_wire, taken_name)) = looks.iter().find_map(|look| known.get(look)) {
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

impl Loaded {
    fn read_policies(
        &mut self,
        files: &[PathBuf],
        in_code: &[(String, String)],
    ) -> Result<Option<CedarPolicies>, Unusable> {
        if files.is_empty() && in_code.is_empty() {
            return Ok(None);
        }
        let mut sources = Vec::new();
        for file in files {
            let shown = file.display().to_string();
            match policies::text(file) {
                Ok(text) => sources.push((shown, text)),
                Err(error) => self.problems.push(Problem { place: shown, what: error.problem }),
            }
        }
        if sources.len() < files.len() {
            return Err(Unusable);
        }
        sources.extend_from_slice(in_code);
        let known = self.tools.iter().filter_map(|tool| tool.candidate.as_ref().ok());
        let tools = known.map(|candidate| candidate.tool.for_policies());
        match CedarPolicies::new(&sources, tools) {
            Ok(policies) => {
                self.unheeded.extend(policies.warnings().iter().map(policy_problem));
                Ok(Some(policies))
            }
            Err(errors) => {
                self.problems.extend(errors.iter().map(policy_problem));
                Err(Unusable)
            }
        }
    }

    /// A shipped name is reserved: only the shipped tool itself may carry it, and nothing that would be taken for it.
    fn take_own(&mut self, check: &ToolCheck, origin: Origin, config: &Config, workshop: &Workshop) {
        let shipped = catalog::reserved_by(&check.name);
        let own = check.spec.as_ref().map(|spec| digest(spec, &check.document));
        let is_tampered = shipped.is_some() && (own.is_none() || own != catalog::digest_of(&check.name));
        if let Some(unseen) = check.name.chars().find(|character| is_deceptive(*character)) {
            self.refuse(
                check,
                origin,
                format!(
                    "its name holds a character that nobody sees, U+{:04X}; write the name without it",
                    u32::from(unseen)
                ),
            );
        } else if let Some(shipped) = shipped.filter(|_| is_tampered) {
            self.refuse(check, origin, taken_name(&check.name, shipped));
        } else if self.has_id_of(check) {
            self.refuse(
                check,
                origin,
                "another tool has the same `toolId`; leave it out or make a new one".to_owned(),
            );
        } else if self.tools.iter().any(|known| known.name == check.name) {
            // The shipped tool itself, copied into a file, is no collision.
            if shipped.is_none() {
                self.refuse(check, origin, format!("there are two tools `{}`; rename one", check.name));
            }
        } else if let Some(what) = asks_for_own(check, config) {
            self.refuse(check, origin, what);
        } else {
            self.take(check, origin, config, workshop);
        }
    }

    /// No error: a tool may be gone before its override is, and what is served must not stay as it was for that.
    fn unheeded(
        &self,
        config: &Config,
        workshop: &Workshop,
        is_shipped: impl Fn(&str) -> bool,
    ) -> Vec<Problem> {
        let place = config.policy.overrides.as_ref().map(|file| file.display().to_string());
        let place = place.unwrap_or_default();
        let names = workshop.overrides.iter().flat_map(|overrides| overrides.tool_names());
        let is_meant = |tool: &Surveyed, entry: &str| {
            tool.name == entry
                || tool.candidate.as_ref().is_ok_and(|candidate| candidate.tool.spec().is_named_by(entry))
        };
        let unknown =
            names.filter(|name| !is_shipped(name) && !self.tools.iter().any(|tool| is_meant(tool, name)));
        let what = |name: &str| {
            format!(
                "no tool is called `{name}`, and what is said of it has no effect; correct the name, or take it out"
            )
        };
        unknown.map(|name| Problem { place: place.clone(), what: what(name) }).collect()
    }

    /// Passes are kept by id: two tools with one id would take each other's.
    fn has_id_of(&self, check: &ToolCheck) -> bool {
        let Some(spec) = &check.spec else { return false };
        let known = self.tools.iter().filter_map(|tool| tool.candidate.as_ref().ok());
        known
            .map(|candidate| candidate.tool.spec())
            .any(|known| known.id == spec.id && known.name != spec.name)
    }

    fn take(&mut self, check: &ToolCheck, origin: Origin, config: &Config, workshop: &Workshop) {
        let candidate = workshop.assess(check).map_err(|unfit| match unfit {
            Unfit::Findings(findings) => {
                let what =
                    findings.first().map_or_else(|| "it has errors".to_owned(), |one| one.message.clone());
                self.problems.push(Problem { place: place(check, &origin), what: what.clone() });
                what
            }
            // A command may be missing on this machine and there on the next; what JavaScript asks for is ours to offer.
            Unfit::NotOffered(what) if !is_javascript(check) => what,
            Unfit::NotOffered(what) | Unfit::Unreadable(what) => {
                self.problems.push(Problem { place: place(check, &origin), what: what.clone() });
                what
            }
        });
        let is_exposed = candidate
            .as_ref()
            .is_ok_and(|candidate| exposure::is_exposed(&config.exposure, candidate.tool.spec()));
        self.tools.push(Surveyed { name: check.name.clone(), origin, candidate, is_exposed });
    }

    fn refuse(&mut self, check: &ToolCheck, origin: Origin, what: String) {
        self.problems.push(Problem { place: place(check, &origin), what: what.clone() });
        self.tools.push(Surveyed {
            name: check.name.clone(),
            origin,
            candidate: Err(what),
            is_exposed: false,
        });
    }
}

/// A mistake in whatever is run, for the tool would have got a secret of the gateway's own; so it is told, and keeps what was in
/// force.
fn asks_for_own(check: &ToolCheck, config: &Config) -> Option<String> {
    let source = EnvironmentSecrets(own_variables(config.own_variables()));
    check_variables(check.spec.as_ref()?, &source).err()
}

fn policy_problem(error: &CedarError) -> Problem {
    let place = match error.position {
        Some(position) => format!("{}:{}:{}", error.file, position.line, position.column),
        None => error.file.clone(),
    };
    let help = error.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
    Problem { place, what: format!("{}{help}", error.message) }
}

fn taken_name(name: &str, shipped: &str) -> String {
    if name == shipped {
        format!("`{name}` is the name of a shipped tool and this is another one; give it a name of its own")
    } else {
        format!("`{name}` can be taken for the shipped tool `{shipped}`; give it a name of its own")
    }
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
    use super::*;

    #[test]
    fn tools_that_clients_could_not_tell_apart_are_a_mistake() {
        let live = [("a_b_1", "a\u{1}b"), ("plain", "plain"), ("a_b_1", "a_b_1")];
        let found = collisions(live.into_iter());
        let [found] = found.as_slice() else { panic!("one of them") };
        assert_eq!(found.place, "tools `a\u{1}b` and `a_b_1`");
        assert_eq!(found.what, "both have the name `a_b_1` on the wire; rename one");
        assert!(collisions([("a", "a"), ("b", "b")].into_iter()).is_empty());
    }

    #[test]
    fn so_are_tools_that_people_could_not_tell_apart() {
        for newcomer in ["Mail", "m\u{430}il", "\u{ff4d}ail", "m\u{e1}il", "mai1", "maiI"] {
            let live = [("mail", "mail"), ("mall", "mall"), (newcomer, newcomer)];
            let found = collisions(live.into_iter());
            let [found] = found.as_slice() else { panic!("one of them: {newcomer}") };
            assert_eq!(found.place, format!("tools `mail` and `{newcomer}`"));
            assert!(found.what.ends_with("look alike; rename one"), "{}", found.what);
        }
    }
}
