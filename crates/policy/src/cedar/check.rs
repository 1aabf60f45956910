//! Finds policies that can never match, which Cedar's validator accepts: arguments that no tool has or that Cedar cannot
//! express, values outside an enum, unknown tools.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::pst::{ActionConstraint, EntityOrSlot, EntityUID, ResourceConstraint, Template, Var};
use toolgate_spec::model::{Classification, NetworkMode};

use super::{
    error::{CedarError, suggestion},
    kind::{CedarRecord, CedarType},
    principal::unknown_principals,
    schema::{CALL, TOOL},
    source::{CedarRule, File, PolicyRole},
    walk::{AttributePath, Mentions, Sign, Use, mentions},
};

/// The arguments of every known tool, by the tool's name.
pub(super) type Inputs = BTreeMap<String, CedarRecord>;

/// Determines which tools a policy is about, and its errors.
pub(super) fn check(file: &File<'_>, rule: &CedarRule, inputs: &Inputs) -> CheckedPolicy {
    let mentions = mentions(&rule.syntax);
    let tools = tools_of(&rule.syntax, inputs);
    let mut check = PolicyCheck { file, rule, errors: Vec::new(), tools: &tools };
    check.scope(inputs, &mentions);
    if !inputs.is_empty() {
        for path in &mentions.paths {
            check.path(path);
        }
        for (path, word) in &mentions.compared {
            check.word(path, word);
        }
    }
    if mentions.has_unknown_form {
        check.errors.push(check.file.error_at(rule, "", "the policy has an unsupported form of expression"));
    }
    let errors = check.errors;
    CheckedPolicy {
        tools: tools.into_keys().map(str::to_owned).collect(),
        watched: watched(&mentions),
        errors,
        warnings: unknown_principals(file, rule, &mentions),
    }
}

pub(super) struct CheckedPolicy {
    /// The tools whose calls the policy may affect.
    pub tools: BTreeSet<String>,
    pub watched: UsedArguments,
    pub errors: Vec<CedarError>,
    /// Problems that do not prevent loading.
    pub warnings: Vec<CedarError>,
}

/// The arguments that policies use.
#[derive(Clone, Debug)]
pub(super) enum UsedArguments {
    These(BTreeSet<String>),
    All,
}

impl UsedArguments {
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::These(names) => names.contains(name),
            Self::All => true,
        }
    }

    pub fn join(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::These(names), Self::These(more)) => names.extend(more.iter().cloned()),
            _ => *self = Self::All,
        }
    }
}

fn watched(mentions: &Mentions) -> UsedArguments {
    let mut names = BTreeSet::new();
    for path in mentions.paths.iter().filter(|path| path.root == Var::Context) {
        match (path.names.as_slice(), path.how) {
            ([_], Use::Asked(_)) => {}
            ([_, argument, ..], _) => drop(names.insert(argument.clone())),
            _ => return UsedArguments::All,
        }
    }
    if mentions.has_unknown_form { UsedArguments::All } else { UsedArguments::These(names) }
}

type ToolInputs<'i> = BTreeMap<&'i str, &'i CedarRecord>;

/// The tools that the scope does not exclude.
fn tools_of<'i>(policy: &Template, inputs: &'i Inputs) -> ToolInputs<'i> {
    let is_named = |uid: &EntityUID, name: &str| uid.eid == CALL || uid.eid == name;
    inputs
        .iter()
        .map(|(name, input)| (name.as_str(), input))
        .filter(|(name, _)| match &policy.action {
            ActionConstraint::Eq(uid) => is_named(uid, name),
            ActionConstraint::In(uids) => uids.iter().any(|uid| is_named(uid, name)),
            ActionConstraint::Any => true,
        })
        .filter(|(name, _)| match &policy.resource {
            ResourceConstraint::Eq(EntityOrSlot::Entity(uid)) => uid.eid == *name,
            _ => true,
        })
        .collect()
}

struct PolicyCheck<'c> {
    file: &'c File<'c>,
    rule: &'c CedarRule,
    tools: &'c ToolInputs<'c>,
    errors: Vec<CedarError>,
}

impl PolicyCheck<'_> {
    fn report(&mut self, word: &str, message: String, help: Option<String>) {
        let error = self.file.error_at(self.rule, word, message).with_help(help);
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn scope(&mut self, inputs: &Inputs, mentions: &Mentions) {
        let in_scope = match &self.rule.syntax.action {
            ActionConstraint::Eq(uid) => Some(uid),
            _ => None,
        };
        if in_scope.into_iter().chain(&mentions.actions).any(|uid| uid.eid == CALL) {
            let help = "write `action in Action::\"call\"` for all tools, `resource == Tool::\"call\"` for one of that name";
            let message = "`Action::\"call\"` is the group of all calls; no call equals it".to_owned();
            self.report(CALL, message, Some(help.to_owned()));
        }
        let mut are_known = true;
        for literal in self.rule.policy.entity_literals() {
            let name: &str = literal.id().as_ref();
            if literal.type_name().to_string() == TOOL && !inputs.contains_key(name) {
                let help = suggestion(name, inputs.keys().map(String::as_str));
                self.report(name, format!("unknown tool `{name}`"), help);
                are_known = false;
            }
        }
        let names_a_tool = matches!(&self.rule.syntax.resource, ResourceConstraint::Eq(_));
        let named = match &self.rule.syntax.action {
            ActionConstraint::Eq(uid) => inputs.contains_key(uid.eid.as_str()),
            ActionConstraint::In(uids) => uids.iter().all(|uid| inputs.contains_key(uid.eid.as_str())),
            ActionConstraint::Any => false,
        };
        if are_known && names_a_tool && named && self.tools.is_empty() {
            let help = "each tool has its own action; remove one of the two".to_owned();
            self.report("resource", "action and resource name different tools".to_owned(), Some(help));
        }
    }

    fn path(&mut self, path: &AttributePath) {
        let Some(names) = path.arguments() else { return };
        if let Some(name) = names.last() {
            self.argument(names, name, path.how);
        }
        let hidden = (path.how == Use::Read)
            .then(|| self.tools.iter().find(|(_, input)| find(input, names).hides_something()))
            .flatten();
        if let Some((tool, _)) = hidden {
            let whole: String = path.names.iter().flat_map(|name| [".", name]).collect();
            let message = format!("`context{whole}` of tool `{tool}` has members that policies cannot see");
            let help = "compare the relevant members one by one".to_owned();
            self.report(names.last().map_or("context", String::as_str), message, Some(help));
        }
    }

    fn argument(&mut self, names: &[String], last: &str, how: Use) {
        let found: Vec<(&str, FoundArgument<'_>)> =
            self.tools.iter().map(|(tool, input)| (*tool, find(input, names))).collect();
        let is_typed = found.iter().any(|(_, found)| matches!(found, FoundArgument::Typed(_)));
        let is_unknown =
            !found.is_empty() && found.iter().all(|(_, found)| matches!(found, FoundArgument::Missing(_)));
        let unseen = found.iter().find_map(|(tool, found)| match found {
            FoundArgument::Unseen(why) => Some((*tool, *why)),
            FoundArgument::Missing(record) if record.is_open && is_typed => Some((*tool, UNDECLARED)),
            _ => None,
        });
        let written = names.join(".");
        match unseen.filter(|_| !is_unknown) {
            Some((tool, why)) if !is_typed || self.is_lenient(how) => {
                let message =
                    format!("argument `{written}` of tool `{tool}` cannot be used in a policy: {why}");
                let help =
                    "give it a plain type in the tool's input schema, or exclude this tool from the policy";
                self.report(last, message, Some(help.to_owned()));
            }
            None if is_unknown => {
                let near = found.iter().flat_map(|(_, found)| match found {
                    FoundArgument::Missing(record) => record.members.keys().map(String::as_str).collect(),
                    _ => Vec::new(),
                });
                let help = suggestion(last, near);
                self.report(
                    last,
                    format!("no tool that this policy is about has an argument `{written}`"),
                    help,
                );
            }
            _ => {}
        }
    }

    /// For an invisible member, `has` is false. Returns true if the policy would then permit what it would otherwise forbid.
    /// Reads need no check, because Cedar requires a `has` before them.
    fn is_lenient(&self, how: Use) -> bool {
        let Use::Asked(sign) = how else { return false };
        match self.rule.role {
            PolicyRole::Permit => sign != Sign::For,
            PolicyRole::Forbid | PolicyRole::Approval(_) => sign != Sign::Against,
        }
    }

    fn word(&mut self, path: &AttributePath, word: &str) {
        let allowed = match (&path.root, path.names.as_slice()) {
            (Var::Resource, [name]) if name == "classification" => {
                Classification::ALL.iter().map(|class| class.name().to_owned()).collect()
            }
            (Var::Resource, [name]) if name == "network" => {
                NetworkMode::ALL.iter().map(|mode| mode.name().to_owned()).collect()
            }
            _ => match path.arguments().and_then(|names| self.allowed(names)) {
                Some(allowed) => allowed,
                None => return,
            },
        };
        if !allowed.contains(word) {
            let known = allowed.iter().map(String::as_str);
            let all = || format!("it is one of: {}", allowed.iter().cloned().collect::<Vec<_>>().join(", "));
            let help = suggestion(word, known).unwrap_or_else(all);
            let what = path.names.last().map_or("", String::as_str);
            self.report(word, format!("`{what}` is never `{word}`"), Some(help));
        }
    }

    /// The allowed values of the argument in all tools together, if every tool limits them.
    fn allowed(&self, names: &[String]) -> Option<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        for input in self.tools.values() {
            match find(input, names) {
                FoundArgument::Typed(CedarType::Text(Some(texts))) => all.extend(texts.iter().cloned()),
                FoundArgument::Typed(CedarType::Many(item)) => match &**item {
                    CedarType::Text(Some(texts)) => all.extend(texts.iter().cloned()),
                    _ => return None,
                },
                FoundArgument::Typed(_) => return None,
                _ => {}
            }
        }
        (!all.is_empty()).then_some(all)
    }
}

impl AttributePath {
    /// The names after `context.input`.
    fn arguments(&self) -> Option<&[String]> {
        match (&self.root, self.names.as_slice()) {
            (Var::Context, [first, names @ ..]) if first == "input" => Some(names),
            (Var::Context, []) => Some(&[]),
            _ => None,
        }
    }
}

enum FoundArgument<'i> {
    Typed(&'i CedarType),
    Unseen(&'static str),
    /// This record does not have the name.
    Missing(&'i CedarRecord),
    /// The path means all arguments.
    Input(&'i CedarRecord),
}

impl FoundArgument<'_> {
    fn hides_something(&self) -> bool {
        match self {
            Self::Typed(kind) => !kind.is_whole(),
            Self::Input(record) => !record.is_whole(),
            Self::Unseen(_) | Self::Missing(_) => false,
        }
    }
}

fn find<'i>(input: &'i CedarRecord, names: &[String]) -> FoundArgument<'i> {
    let Some((first, rest)) = names.split_first() else { return FoundArgument::Input(input) };
    if let Some(why) = input.unseen.get(first) {
        return FoundArgument::Unseen(why);
    }
    match input.members.get(first).map(|member| &member.kind) {
        Some(kind) if rest.is_empty() => FoundArgument::Typed(kind),
        Some(CedarType::Record(record)) => find(record, rest),
        // Cedar itself reports that this type has no members.
        Some(kind) => FoundArgument::Typed(kind),
        None => FoundArgument::Missing(input),
    }
}

const UNDECLARED: &str = "its schema accepts arguments that it does not declare";
