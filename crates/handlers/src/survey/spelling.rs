//! Does the rule for a path hold for what the path leads to? A rule about names says nothing of a file that goes by another one.

use std::path::Path;

use regex::Regex;
use serde_json::{Map, Value};
use toolgate_gate::{Reason, Refusal};
use toolgate_spec::FieldPattern;

use super::{
    GrantedPath,
    fields::{self, Field},
};

/// What the schema of the arguments says about the texts of one field.
#[derive(Debug)]
pub struct Rule {
    field: FieldPattern,
    /// `None` where it means nothing here: then only the real name itself passes.
    regex: Option<Regex>,
}

pub fn rules(input: Option<&Value>) -> Vec<Rule> {
    let mut rules = Vec::new();
    if let Some(input) = input {
        gather(input, input, &mut Vec::new(), &mut rules);
    }
    rules
}

/// Refuses a path whose own name the rule for it does not let through, in any spelling that leads there without a link.
pub fn check(
    rules: &[Rule],
    fields: &[Field],
    arguments: &Map<String, Value>,
    paths: &[GrantedPath],
    base: &Path,
) -> Result<(), Refusal> {
    if rules.is_empty() || paths.is_empty() {
        return Ok(());
    }
    // Where it cannot be looked up, nothing in it was opened either.
    let base = base.canonicalize().unwrap_or_else(|_| base.to_owned());
    let look = Look { rules, fields, paths, base: &base };
    arguments.iter().try_for_each(|(name, value)| look.at(value, &mut vec![name.as_str()]))
}

struct Look<'l> {
    rules: &'l [Rule],
    fields: &'l [Field],
    paths: &'l [GrantedPath],
    base: &'l Path,
}

impl Look<'_> {
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
            let fits = |rule: &Rule| {
                rule.regex.as_ref().is_some_and(|one| spellings.iter().any(|s| one.is_match(s)))
            };
            if !self.is_plain(text, real) && !rules.clone().all(fits) {
                return Err(Refusal {
                    reason: Reason::ArgumentRefused,
                    message: format!(
                        "`{}` leads to something whose own name the rule for `{}` does not let through",
                        text.escape_debug(),
                        path.join(".")
                    ),
                    remedy: "name what it leads to, if this tool may be given that".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Is it the real name, from the folder that relative paths are taken from? It was judged when the arguments were.
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

/// Those that hold whatever the value is: what stands in one of several alternatives is not looked at.
fn gather(root: &Value, schema: &Value, path: &mut Vec<String>, rules: &mut Vec<Rule>) {
    let Some(members) = schema.as_object().filter(|_| path.len() <= fields::DEEPEST) else { return };
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str)
        && let Ok(field) = FieldPattern::parse(&format!(".{}", path.join(".")))
    {
        rules.push(Rule { field, regex: Regex::new(pattern).ok() });
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
    // A reference never leads back to itself in a document that was accepted.
    if let Some(inner) = target.and_then(|target| root.pointer(target)) {
        gather(root, inner, path, rules);
    }
}
