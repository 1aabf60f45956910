//! Parses a file of policies.

use cedar_policy::{Effect, Policy, PolicyId, PolicySet, pst};
use toolgate_spec::{LineIndex, SourcePosition};

use super::error::CedarError;

/// Parses one file and reports all errors that do not depend on tools.
pub(super) fn read<'s>(name: &'s str, text: &'s str) -> Result<File<'s>, Vec<CedarError>> {
    let lines = LineIndex::new(text);
    if let Some(offset) = too_complex(text) {
        let message = "the policy is too complex";
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
    /// With the ids assigned by Cedar.
    pub set: PolicySet,
    /// In the order of the file.
    pub rules: Vec<CedarRule>,
}

/// One policy of a file.
pub(super) struct CedarRule {
    /// The id for people: its `@id`, or file, line and column.
    pub id: String,
    /// The id assigned by Cedar.
    pub given: PolicyId,
    /// The policy under the id for people.
    pub policy: Policy,
    pub syntax: pst::Template,
    pub role: PolicyRole,
    pub start: usize,
    written: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum PolicyRole {
    Permit,
    Forbid,
    /// Forbids unless a person approves; with the text for that person.
    Approval(String),
}

impl File<'_> {
    fn rule(&self, policy: &Policy, written: String, start: usize) -> Result<CedarRule, CedarError> {
        let error = |message: &str, help: &str| {
            CedarError::at(self.name, &self.lines, start, message).with_help(Some(help.to_owned()))
        };
        let role = match (policy.effect(), policy.annotation("approval")) {
            (Effect::Permit, None) => PolicyRole::Permit,
            (Effect::Forbid, None) => PolicyRole::Forbid,
            (Effect::Forbid, Some(why)) if why.trim().is_empty() => {
                return Err(error(
                    "`@approval` has no text",
                    "write `@approval(\"why a person must decide\")`",
                ));
            }
            (Effect::Forbid, Some(why)) => PolicyRole::Approval(why.trim().to_owned()),
            (Effect::Permit, Some(_)) => {
                let help = "put it on a `forbid`, which then means: forbidden unless a person approves";
                return Err(error("`@approval` has no meaning on a `permit`", help));
            }
        };
        let id = match policy.annotation("id") {
            Some(id) if id.trim().is_empty() => {
                return Err(error("`@id` names nothing", "write `@id(\"name\")`"));
            }
            Some(id) => id.trim().to_owned(),
            None => {
                let SourcePosition { line, column } = self.lines.position(start);
                format!("{}:{line}:{column}", self.name)
            }
        };
        let syntax = policy.to_pst().map_err(|found| error(&found.to_string(), "write it in another way"))?;
        Ok(CedarRule {
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
        let message = "templates are not supported";
        let help = "write the principal and the resource instead of `?principal` and `?resource`";
        CedarError::at(self.name, &self.lines, start, message).with_help(Some(help.to_owned()))
    }

    /// An error in a rule, at the first mention of `word`.
    pub fn error_at(&self, rule: &CedarRule, word: &str, message: impl Into<String>) -> CedarError {
        let body = body_of(&rule.written);
        let word = rule.written.get(body..).and_then(|body| word_in(body, word)).unwrap_or_default();
        let offset = rule.start + body + word;
        CedarError::at(self.name, &self.lines, offset, message)
    }
}

/// Cedar numbers the policies of a file in order.
fn number(policy: &Policy) -> usize {
    let id: &str = policy.id().as_ref();
    id.trim_start_matches("policy").parse().unwrap_or(usize::MAX)
}

fn offset_of(text: &str, written: &str, after: usize) -> usize {
    let rest = text.get(after..).unwrap_or_default();
    rest.find(written).map_or(after.min(text.len()), |at| after + at)
}

/// The end of the annotations.
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

/// Finds the whole word, not a part of a longer one.
fn word_in(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let (before, after) = (text.get(..*at), text.get(at + word.len()..));
        !before.is_some_and(|before| before.ends_with(is_part))
            && !after.is_some_and(|after| after.starts_with(is_part))
    })
}

/// Finds a policy with more operators or deeper nesting than people write. Cedar and the walks here recurse; a stack
/// overflow would crash the gateway.
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
            // An `if` in the `else` of another nests without brackets.
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

/// The limit for one policy.
const MOST_OPERATORS: usize = 300;

/// The limit for nested brackets.
const DEEPEST: usize = 50;
