//! Checks schema patterns of a path argument against the real path. Otherwise a symlink with a matching name could
//! lead to a file whose name does not match.

use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value};
use toolgate_gate::{Reason, Refusal};
use toolgate_spec::FieldPattern;

use super::{
    GrantedPath,
    fields::{self, TargetField},
};

/// The schema pattern for the texts of one field.
#[derive(Debug)]
pub struct TextRule {
    field: FieldPattern,
    /// `None` if the pattern cannot be compiled: then only the real path itself is accepted.
    regex: Option<Regex>,
}

pub fn rules(input: Option<&Value>) -> Vec<TextRule> {
    let mut rules = Vec::new();
    if let Some(input) = input {
        gather(input, input, &mut Vec::new(), &mut rules);
    }
    rules
}

/// Rejects a path whose real path does not match its pattern, in any spelling without symlinks.
pub fn check(
    rules: &[TextRule],
    fields: &[TargetField],
    arguments: &Map<String, Value>,
    paths: &[GrantedPath],
    base: &Path,
) -> Result<(), Refusal> {
    if rules.is_empty() || paths.is_empty() {
        return Ok(());
    }
    // If it cannot be resolved, nothing in it was opened.
    let base = base.canonicalize().unwrap_or_else(|_| base.to_owned());
    let look = SpellingCheck { rules, fields, paths, base: &base };
    arguments.iter().try_for_each(|(name, value)| look.at(value, &mut vec![name.as_str()]))
}

struct SpellingCheck<'l> {
    rules: &'l [TextRule],
    fields: &'l [TargetField],
    paths: &'l [GrantedPath],
    base: &'l Path,
}

impl SpellingCheck<'_> {
    fn at<'v>(&self, value: &'v Value, path: &mut Vec<&'v str>) -> Result<(), Refusal> {
        match value {
            Value::String(text) if fields::name_path_at(self.fields, path) => self.text(text, path),
            Value::Array(items) => items.iter().try_for_each(|item| self.at(item, path)),
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                path.push(name);
                let looked = self.at(value, path);
                path.pop();
                looked
            }),
            _ => Ok(()),
        }
    }

    fn text(&self, text: &str, path: &[&str]) -> Result<(), Refusal> {
        let led_to = self.paths.iter().filter(|granted| granted.asked == text);
        let mut rules = self.rules.iter().filter(|rule| rule.field.matches(path)).peekable();
        if rules.peek().is_none() {
            return Ok(());
        }
        for GrantedPath { real, .. } in led_to {
            let spellings = self.spellings(text, real);
            let fits = |rule: &TextRule| {
                rule.regex.as_ref().is_some_and(|one| spellings.iter().any(|s| one.is_match(s)))
            };
            if !self.is_plain(text, real) && !rules.clone().all(fits) {
                return Err(Refusal {
                    reason: Reason::ArgumentRefused,
                    message: format!(
                        "`{}` leads to a file whose name the pattern of `{}` does not allow",
                        text.escape_debug(),
                        path.join(".")
                    ),
                    remedy: "name the file it leads to, if this tool accepts it".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Whether it is the real path, relative to the base directory. It was checked with the other arguments.
    fn is_plain(&self, asked: &str, real: &str) -> bool {
        self.base.join(asked).components().eq(Path::new(real).components())
    }

    fn spellings(&self, asked: &str, real: &str) -> Vec<String> {
        let inside = Path::new(real).strip_prefix(self.base).ok().and_then(Path::to_str);
        let relative = inside.map(|inside| if inside.is_empty() { "." } else { inside });
        let mut all = vec![real.to_owned()];
        all.extend(relative.into_iter().flat_map(|inside| [inside.to_owned(), format!("./{inside}")]));
        if asked.ends_with('/') {
            all.extend(all.clone().into_iter().map(|spelled| spelled + "/"));
        }
        all
    }
}

/// Collects patterns that always apply. Alternatives are skipped.
fn gather(root: &Value, schema: &Value, path: &mut Vec<String>, rules: &mut Vec<TextRule>) {
    let Some(members) = schema.as_object().filter(|_| path.len() <= fields::DEEPEST) else { return };
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str)
        && let Ok(field) = FieldPattern::parse(&format!(".{}", path.join(".")))
    {
        rules.push(TextRule { field, regex: Regex::new(pattern).ok() });
    }
    for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        gather(root, property, path, rules);
        path.pop();
    }
    if let Some(items) = members.get("items") {
        gather(root, items, path, rules);
    }
    for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        gather(root, part, path, rules);
    }
    let target = members.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    // Accepted documents contain no circular references.
    if let Some(inner) = target.and_then(|target| root.pointer(target)) {
        gather(root, inner, path, rules);
    }
}
