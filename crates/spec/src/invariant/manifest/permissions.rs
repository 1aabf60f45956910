//! Checks that permission names are valid and that each condition can hold.

use std::collections::HashSet;

use serde_json::Value;

use super::{json_schema, report::ManifestReport, scope::TemplateScope};
use crate::Pointer;

pub(super) fn check(scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    let at = report.block("permissions");
    names(&at.key("required"), report);
    let elevated_at = at.key("elevated");
    let elevated = report.at(&elevated_at).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, entry) in elevated.iter().enumerate() {
        let at = elevated_at.index(index);
        names(&at.key("require"), report);
        let when_at = at.key("when");
        match entry.get("when") {
            Some(Value::Null) => report.add(
                &when_at,
                "the condition is missing",
                "write a schema, or move the permissions to `required`",
            ),
            Some(when) if when.is_object() => condition(when, &when_at, scope, report),
            _ => {}
        }
    }
}

fn names(at: &Pointer, report: &mut ManifestReport<'_>) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (at, name) in report.texts(at) {
        if name.trim().is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            report.add(
                &at,
                format!("`{}` is not a permission", name.escape_debug()),
                "write one word such as `customers:read`",
            );
        } else if seen.contains(&name) {
            report.add(&at, format!("`{name}` is declared twice"), "remove one of the two");
        }
        seen.insert(name);
    }
}

fn condition(when: &Value, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    if json_schema::check(when, at, report).is_some() {
        parameters(when, at, scope, report);
    }
}

/// Rejects conditions on unknown parameters: they never hold, or always.
fn parameters(when: &Value, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    let mut named: Vec<(Pointer, &str)> = Vec::new();
    for keyword in ["properties", "dependentRequired", "dependentSchemas"] {
        let members = when.get(keyword).and_then(Value::as_object).into_iter().flatten();
        named.extend(members.map(|(name, _)| (at.key(keyword).key(name), name.as_str())));
    }
    let required = when.get("required").and_then(Value::as_array).into_iter().flatten().enumerate();
    named
        .extend(required.filter_map(|(index, name)| Some((at.key("required").index(index), name.as_str()?))));
    for (at, name) in named {
        if scope.variable(name).is_none() {
            let otherwise = "name a parameter; such a condition would never hold";
            let remedy = crate::similar::remedy(name, scope.variable_names(), otherwise);
            report.add(&at, format!("`{}` is not a parameter", json_schema::shorten(name)), remedy);
        }
    }
    if when.get("$ref").is_some() {
        report.add(&at.key("$ref"), "a condition must not contain references", "write the condition out");
    }
    for (place, child) in json_schema::children(when, at) {
        let below = place.as_str().strip_prefix(at.as_str()).unwrap_or_default();
        if SAME_OBJECT.iter().any(|keyword| below.starts_with(keyword)) {
            parameters(child, &place, scope, report);
        }
    }
}

/// Keywords whose subschemas apply to all arguments together, not to one of them.
const SAME_OBJECT: [&str; 8] =
    ["/allOf/", "/anyOf/", "/oneOf/", "/not", "/if", "/then", "/else", "/dependentSchemas/"];
