//! Paths into a tool's output: `.a.b`, `.a[].b`, `..b`, and the globs `a.*`, `*.b`, `*`.
//!
//! A pattern covers the field it names and everything below it, so that a rule can be wider than meant only by
//! what stands below a named field, never by a sibling. Array elements have no name of their own: `[]` may be
//! written, and is passed over when matching, so that `.items.id` and `.items[].id` name the same fields.

use std::fmt;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct FieldPattern {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Step {
    Name(String),
    /// Exactly one field, whatever its name.
    AnyName,
    /// Any number of fields, also none.
    AnyDepth,
}

/// How narrowly a pattern names a field; of two that match, the greater decides.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Specificity {
    names: usize,
    single_wildcards: usize,
    bounded: bool,
}

impl FieldPattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a field path is not empty; `*` names every field".into());
        }
        if text.len() > MAX_BYTES {
            return Err(format!("a field path has at most {MAX_BYTES} bytes"));
        }
        let mut steps = Vec::new();
        // `*` alone is the catch-all, and a leading `*.` means "at any depth", as in the globs of the source format.
        let mut rest = match text {
            "*" | "." => {
                steps.push(Step::AnyDepth);
                ""
            }
            _ => match (text.strip_prefix("*."), text.strip_prefix("..")) {
                (Some(rest), _) | (None, Some(rest)) => {
                    steps.push(Step::AnyDepth);
                    rest
                }
                (None, None) => text.strip_prefix('.').unwrap_or(text),
            },
        };
        if rest.is_empty() && text != "*" && text != "." {
            return Err("a field name follows the dots".into());
        }
        while !rest.is_empty() {
            let end = rest.find('.').unwrap_or(rest.len());
            let (step, after) = rest.split_at(end);
            parse_step(step, &mut steps)?;
            rest = match after.strip_prefix("..") {
                Some(after) => {
                    steps.push(Step::AnyDepth);
                    after
                }
                None => after.strip_prefix('.').unwrap_or(after),
            };
            if rest.is_empty() && !after.is_empty() {
                return Err("a field name follows the last dot".into());
            }
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does the pattern name this field or one above it? The path lists field names from the top, without indices.
    pub fn matches<S: AsRef<str>>(&self, path: &[S]) -> bool {
        let (mut at_step, mut at_path) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let here = path.get(at_path).map(AsRef::as_ref);
            match (self.steps.get(at_step), here) {
                (None, _) => return true,
                (Some(Step::AnyDepth), _) => {
                    retry = Some((at_step + 1, at_path));
                    at_step += 1;
                }
                (Some(Step::AnyName), Some(_)) => {
                    at_step += 1;
                    at_path += 1;
                }
                (Some(Step::Name(name)), Some(field)) if name == field => {
                    at_step += 1;
                    at_path += 1;
                }
                _ => {
                    let Some((after, from)) = retry else { return false };
                    if from >= path.len() {
                        return false;
                    }
                    retry = Some((after, from + 1));
                    (at_step, at_path) = (after, from + 1);
                }
            }
        }
    }

    pub fn specificity(&self) -> Specificity {
        let count = |wanted: fn(&Step) -> bool| self.steps.iter().filter(|step| wanted(step)).count();
        Specificity {
            names: count(|step| matches!(step, Step::Name(_))),
            single_wildcards: count(|step| matches!(step, Step::AnyName)),
            bounded: !self.steps.iter().any(|step| matches!(step, Step::AnyDepth)),
        }
    }
}

impl fmt::Display for FieldPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_step(step: &str, steps: &mut Vec<Step>) -> Result<(), String> {
    let name = step.trim_end_matches("[]");
    match name {
        "*" => steps.push(Step::AnyName),
        "" if step.is_empty() => {
            return Err("two dots mean any depth and stand before a name; three mean nothing".into());
        }
        "" => {}
        name if name.contains(['[', ']', '*', '"', '|', '(', ')']) => {
            return Err(format!(
                "`{name}` is not a field name; only `.name`, `[]`, `..name` and `*` are understood"
            ));
        }
        name => steps.push(Step::Name(name.to_owned())),
    }
    Ok(())
}

const MAX_BYTES: usize = 512;
