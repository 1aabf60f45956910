//! Checks names: unknown fields, identifiers outside ASCII, and static variables that hide parameters.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{report::LintReport, show::shown, value_path::elements};
use crate::{
    Code, Pointer, Schema,
    block::{BLOCKS, key_of_block, remedy_for_void_guard},
    model::ToolSpec,
    similar::closest,
};

pub(super) fn check(document: &Map<String, Value>, spec: &ToolSpec, report: &mut LintReport<'_>) {
    unknown_fields(document, report);
    shadowed_params(document, spec, report);
    ascii_only(document, report);
}

fn unknown_fields(document: &Map<String, Value>, report: &mut LintReport<'_>) {
    // The schema of a manifest already rejects unknown fields.
    if document.contains_key("handler") {
        return;
    }
    let Some(known) = Schema::SafeToolSpec.document().get("properties").and_then(Value::as_object) else {
        return;
    };
    for key in document.keys().filter(|key| !known.contains_key(*key) && !key.starts_with("x-")) {
        let blocks = BLOCKS.iter().map(|(block, _)| *block);
        let meant = closest(key, known.keys().map(String::as_str))
            .map(str::to_owned)
            .or_else(|| closest(key, blocks).and_then(|block| key_of_block(block, false)));
        // A misspelt guard is already an error.
        if let Some(close) = meant.filter(|_| remedy_for_void_guard(key).is_none()) {
            report.add_at_key(
                Code::LintUnknownField,
                Pointer::root().key(key),
                format!("`{}` is not a field of a tool and has no effect", shown(key)),
                format!("did you mean `{close}`? custom fields begin with `x-`"),
            );
        }
    }
}

fn shadowed_params(document: &Map<String, Value>, spec: &ToolSpec, report: &mut LintReport<'_>) {
    let params: HashSet<&str> = spec.params.iter().map(|param| param.name.as_str()).collect();
    for (index, entry) in elements(document, "staticVariables").iter().enumerate() {
        for name in entry.as_object().into_iter().flat_map(Map::keys) {
            if params.contains(name.as_str()) {
                report.add_at_key(
                    Code::LintShadowedParam,
                    Pointer::new("/staticVariables").index(index).key(name),
                    format!("`{}` is also a parameter; the static value wins", shown(name)),
                    "rename one of the two",
                );
            }
        }
    }
}

fn ascii_only(document: &Map<String, Value>, report: &mut LintReport<'_>) {
    let mut judge = |text: &str, what: &str, at: &dyn Fn() -> Pointer| {
        if !text.is_ascii() {
            report.add(
                Code::LintLocale,
                at(),
                format!("{what} `{}` is not ASCII", shown(text)),
                "use English letters, digits, `-` and `_`; texts for people may be in any language",
            );
        }
    };
    for (key, what) in IDENTIFIERS {
        if let Some(Value::String(text)) = document.get(key) {
            judge(text, what, &|| Pointer::root().key(key));
        }
    }
    for (index, tag) in elements(document, "tags").iter().enumerate() {
        judge(tag.as_str().unwrap_or_default(), "the tag", &|| Pointer::new("/tags").index(index));
    }
    for (index, param) in elements(document, "params").iter().enumerate() {
        let name = param.get("name").and_then(Value::as_str).unwrap_or_default();
        judge(name, "the parameter name", &|| Pointer::new("/params").index(index).key("name"));
    }
    for (index, entry) in elements(document, "staticVariables").iter().enumerate() {
        for name in entry.as_object().into_iter().flat_map(Map::keys) {
            judge(name, "the variable name", &|| Pointer::new("/staticVariables").index(index).key(name));
        }
    }
}

const IDENTIFIERS: [(&str, &str); 5] = [
    ("name", "the name"),
    ("toolId", "the tool id"),
    ("category", "the category"),
    ("profile", "the profile"),
    ("x-toolgate-profile", "the profile"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(document: &Value, expect: &[(Code, &str)]) {
        let document = document.as_object().unwrap();
        let spec = crate::decode::tool(document, &mut Vec::new());
        let mut findings = Vec::new();
        super::check(document, &spec, &mut LintReport::new(&mut findings));
        let found: Vec<_> = findings.iter().map(|finding| (finding.code, finding.at.as_str())).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn misspelt_fields_are_reported_and_others_accepted() {
        check(
            &serde_json::json!({ "name": "t", "toolSaftey": {}, "discription": "x", "permisions": {}, "x-descriptoin": 1, "icon": 1 }),
            &[(Code::LintUnknownField, "/toolSaftey"), (Code::LintUnknownField, "/discription")],
        );
    }

    #[test]
    fn static_variable_hiding_a_parameter_is_reported() {
        check(
            &serde_json::json!({ "name": "t", "params": [{ "name": "q" }], "staticVariables": [{ "a": "1" }, { "q": "2" }] }),
            &[(Code::LintShadowedParam, "/staticVariables/1/q")],
        );
    }

    #[test]
    fn identifiers_are_ascii() {
        check(
            &serde_json::json!({ "name": "검색", "tags": ["korea", "한국"], "category": "WEB", "params": [{ "name": "q", "testValue": "서울" }] }),
            &[(Code::LintLocale, "/name"), (Code::LintLocale, "/tags/1")],
        );
    }
}
