//! A file of policies, read: which rules it has, what each is for, and where it stands.

use cedar_policy::{Effect, Policy, PolicyId, PolicySet, pst};
use toolgate_spec::{LineIndex, Position};

use super::error::CedarError;

/// Reads one file; every mistake that can be told without knowing the tools.
pub(super) fn read<'s>(name: &'s str, text: &'s str) -> Result<File<'s>, Vec<CedarError>> {
    let lines = LineIndex::new(text);
    if let Some(offset) = too_complex(text) {
        let message = "the policy is too large to be judged";
        return Err(vec![
            CedarError::at(name, &lines, offset, message)
                .with_help(Some("split it into several, or compare with a set: `[…].contains(…)`".into())),
        ]);
    }
    let set: PolicySet = text.parse().map_err(|errors: cedar_policy::ParseErrors| {
        let errors = errors.iter().map(|error| CedarError::from_cedar(name, &lines, 0, error));
        errors.collect::<Vec<_>>()
    })?;
    let mut file = File { name, text, lines, set, rules: Vec::new() };
    let mut errors: Vec<CedarError> = file.set.templates().map(|template| file.refused(template)).collect();
    let mut policies: Vec<Policy> = file.set.policies().cloned().collect();
    policies.sort_by_key(number);
    let mut after = 0;
    for policy in policies {
        let written = policy.to_cedar().unwrap_or_default();
        let start = offset_of(text, &written, after);
        after = start + 1;
        match file.rule(&policy, written, start) {
            Ok(rule) => file.rules.push(rule),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(file) } else { Err(errors) }
}

pub(super) struct File<'s> {
    pub name: &'s str,
    text: &'s str,
    pub lines: LineIndex<'s>,
    /// With the ids that Cedar gave them.
    pub set: PolicySet,
    /// In the order of the file.
    pub rules: Vec<Rule>,
}

/// One policy of a file.
pub(super) struct Rule {
    /// What people call it: its `@id`, or file, line and column.
    pub id: String,
    /// What Cedar called it.
    pub given: PolicyId,
    /// Under the name that people know.
    pub policy: Policy,
    pub syntax: pst::Template,
    pub role: Role,
    pub start: usize,
    written: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Role {
    Permit,
    Forbid,
    /// Forbids unless a person approves; with what the person is told.
    Approval(String),
}

impl File<'_> {
    fn rule(&self, policy: &Policy, written: String, start: usize) -> Result<Rule, CedarError> {
        let error = |message: &str, help: &str| {
            CedarError::at(self.name, &self.lines, start, message).with_help(Some(help.to_owned()))
        };
        let role = match (policy.effect(), policy.annotation("approval")) {
            (Effect::Permit, None) => Role::Permit,
            (Effect::Forbid, None) => Role::Forbid,
            (Effect::Forbid, Some(why)) if why.trim().is_empty() => {
                return Err(error(
                    "`@approval` does not say why",
                    "write `@approval(\"why a person must look\")`",
                ));
            }
            (Effect::Forbid, Some(why)) => Role::Approval(why.trim().to_owned()),
            (Effect::Permit, Some(_)) => {
                let help = "put it on a `forbid`, which then means: forbidden unless a person approves";
                return Err(error("`@approval` on a `permit` means nothing", help));
            }
        };
        let id = match policy.annotation("id") {
            Some(id) if id.trim().is_empty() => {
                return Err(error("`@id` names nothing", "write `@id(\"name\")`"));
            }
            Some(id) => id.trim().to_owned(),
            None => {
                let Position { line, column } = self.lines.position(start);
                format!("{}:{line}:{column}", self.name)
            }
        };
        let syntax = policy.to_pst().map_err(|found| error(&found.to_string(), "write it in another way"))?;
        Ok(Rule {
            given: policy.id().clone(),
            policy: policy.new_id(PolicyId::new(&id)),
            syntax: syntax.body().clone().with_id(pst::PolicyID(id.as_str().into())),
            id,
            role,
            start,
            written,
        })
    }

    fn refused(&self, template: &cedar_policy::Template) -> CedarError {
        let start = offset_of(self.text, &template.to_cedar(), 0);
        let message = "a template has slots that nothing here fills";
        let help = "write out the principal and the resource instead of `?principal` and `?resource`";
        CedarError::at(self.name, &self.lines, start, message).with_help(Some(help.to_owned()))
    }

    /// An error in a rule, at the first mention of `word`.
    pub fn error_at(&self, rule: &Rule, word: &str, message: impl Into<String>) -> CedarError {
        let body = body_of(&rule.written);
        let word = rule.written.get(body..).and_then(|body| word_in(body, word)).unwrap_or_default();
        let offset = rule.start + body + word;
        CedarError::at(self.name, &self.lines, offset, message)
    }
}

/// Cedar numbers the policies of a file in their order.
fn number(policy: &Policy) -> usize {
    let id: &str = policy.id().as_ref();
    id.trim_start_matches("policy").parse().unwrap_or(usize::MAX)
}

fn offset_of(text: &str, written: &str, after: usize) -> usize {
    let rest = text.get(after..).unwrap_or_default();
    rest.find(written).map_or(after.min(text.len()), |at| after + at)
}

/// Where the annotations end.
fn body_of(written: &str) -> usize {
    let mut chars = written.char_indices();
    while let Some((at, c)) = chars.next() {
        let rest = written.get(at..).unwrap_or_default();
        match c {
            '"' => skip_string(&mut chars),
            '/' if rest.starts_with("//") => drop(chars.find(|(_, c)| *c == '\n')),
            'p' | 'f' if rest.starts_with("permit") || rest.starts_with("forbid") => return at,
            _ => {}
        }
    }
    0
}

/// The word, and not a longer one that it is a part of.
fn word_in(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let (before, after) = (text.get(..*at), text.get(at + word.len()..));
        !before.is_some_and(|before| before.ends_with(is_part))
            && !after.is_some_and(|after| after.starts_with(is_part))
    })
}

/// Where a policy begins that has more operators, or nests deeper, than any person writes. Cedar, and the walks over its
/// syntax here, go as deep as an expression is nested; a stack that overflows would take the gateway down.
fn too_complex(text: &str) -> Option<usize> {
    let (mut start, mut operators, mut depth) = (0, 0, 0_usize);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let rest = text.get(at..).unwrap_or_default();
        match c {
            '"' => skip_string(&mut chars),
            '/' if rest.starts_with("//") => drop(chars.find(|(_, c)| *c == '\n')),
            ';' => (start, operators, depth) = (at + 1, 0, 0),
            '&' | '|' if !rest.starts_with("&&") && !rest.starts_with("||") => {}
            '&' | '|' | '+' | '-' | '*' | '.' | '!' => operators += 1,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            // One `if` nests in the `else` of another without any bracket.
            'e' if rest.starts_with("else") => depth += 1,
            _ => {}
        }
        if operators > MOST_OPERATORS || depth > DEEPEST {
            return Some(start);
        }
    }
    None
}

fn skip_string(chars: &mut impl Iterator<Item = (usize, char)>) {
    while let Some((_, c)) = chars.next() {
        match c {
            '"' => return,
            '\\' => drop(chars.next()),
            _ => {}
        }
    }
}

/// In one policy.
const MOST_OPERATORS: usize = 300;

/// Brackets within brackets.
const DEEPEST: usize = 50;
