//! Checks that `touches` names values that a caller can send. A path that names nothing looks like a guard but has no
//! effect.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{json_schema, report::ManifestReport, scope::TemplateScope};
use crate::{
    FieldPattern, Pointer,
    field_path::FieldStep,
    model::{Param, ToolSpec},
};

pub(super) fn check(spec: &ToolSpec, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    let arguments = match &spec.governance.input {
        Some(input) => Cow::Borrowed(input),
        None => Cow::Owned(schema_of(&spec.params)),
    };
    for kind in ["read", "write", "connect"] {
        for (at, text) in report.texts(&report.block("touches").key(kind)) {
            if let Ok(pattern) = FieldPattern::parse(text) {
                judge(&pattern, &arguments, &at, scope, report);
            }
        }
    }
}

fn judge(
    pattern: &FieldPattern,
    arguments: &Value,
    at: &Pointer,
    scope: &TemplateScope,
    report: &mut ManifestReport<'_>,
) {
    let steps: Vec<FieldStep<'_>> = pattern.steps().collect();
    if let Some(FieldStep::Name(name)) = steps.first()
        && scope.variable(name).is_none()
    {
        let otherwise = "name a parameter; otherwise nothing is checked";
        let remedy = crate::similar::remedy(name, scope.variable_names(), otherwise);
        report.add(at, format!("`{}` is not a parameter", json_schema::shorten(name)), remedy);
        return;
    }
    let mut search = TextSearch { root: arguments, left: MOST_VISITS };
    if !search.finds(arguments, &steps) {
        report.add(
            at,
            format!("`{pattern}` names no string that a caller could send, so nothing would be checked"),
            "name a string parameter, or a string property of one",
        );
    }
}

fn schema_of(params: &[Param]) -> Value {
    let properties: Map<String, Value> = params
        .iter()
        .map(|param| (param.name.clone(), json!({ "type": param.kind.schema_name() })))
        .collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Searches a schema for strings. If the schema leaves a part open, a string may be there.
struct TextSearch<'s> {
    root: &'s Value,
    /// Bounds the walk of recursive schemas. A part that was not visited may be a string.
    left: usize,
}

impl<'s> TextSearch<'s> {
    fn finds(&mut self, schema: &'s Value, steps: &[FieldStep<'_>]) -> bool {
        let Some(members) = schema.as_object() else { return *schema != Value::Bool(false) };
        self.left = self.left.saturating_sub(1);
        let others = self.others(members);
        let is_told = OF_ITSELF.iter().any(|keyword| members.contains_key(*keyword));
        if self.left == 0 || (!is_told && others.is_empty()) {
            return true;
        }
        (is_told && self.finds_inside(members, steps))
            || others.into_iter().any(|other| self.finds(other, steps))
    }

    /// Other subschemas for the same value, except those that do not restrict its type, such as `{required: [a]}`.
    fn others(&self, members: &'s Map<String, Value>) -> Vec<&'s Value> {
        let lists = ELSEWHERE.into_iter().filter_map(|keyword| members.get(keyword)?.as_array()).flatten();
        let branches = ["then", "else"].into_iter().filter_map(|keyword| members.get(keyword));
        let target = members.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        let target = target.and_then(|target| self.root.pointer(target));
        let tells = |other: &&Value| {
            let mut telling = OF_ITSELF.iter().chain(&ELSEWHERE).chain(&["$ref"]);
            telling.any(|keyword| other.get(*keyword).is_some())
        };
        lists.chain(branches).chain(target).filter(tells).collect()
    }

    fn finds_inside(&mut self, members: &'s Map<String, Value>, steps: &[FieldStep<'_>]) -> bool {
        let items = if may_be(members, "array") { elements(members) } else { Vec::new() };
        let of_object = may_be(members, "object");
        match steps.split_first() {
            None => {
                let fields = if of_object { fields(members, None) } else { Vec::new() };
                may_be(members, "string")
                    || items.into_iter().chain(fields).any(|part| self.finds(part, steps))
            }
            Some((FieldStep::AnyDepth, rest)) => {
                let fields = if of_object { fields(members, None) } else { Vec::new() };
                self.finds_inside(members, rest)
                    || items.into_iter().chain(fields).any(|part| self.finds(part, steps))
            }
            Some((FieldStep::Name(_) | FieldStep::AnyName, _)) if !of_object => {
                items.into_iter().any(|item| self.finds(item, steps))
            }
            Some((step, rest)) => {
                let name = if let FieldStep::Name(name) = step { Some(*name) } else { None };
                // Array elements have no name.
                items.into_iter().any(|item| self.finds(item, steps))
                    || fields(members, name).into_iter().any(|field| self.finds(field, rest))
            }
        }
    }
}

fn may_be(members: &Map<String, Value>, kind: &str) -> bool {
    let is_kind = |value: &Value| match value {
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    };
    let listed = members.get("enum").and_then(Value::as_array);
    let is_listed = match (listed, members.get("const")) {
        (Some(listed), _) => listed.iter().any(is_kind),
        (None, Some(only)) => is_kind(only),
        (None, None) => true,
    };
    is_listed && json_schema::leaves_open(members.get("type"), kind)
}

/// The schemas of the property with this name, or of all properties.
fn fields<'s>(members: &'s Map<String, Value>, name: Option<&str>) -> Vec<&'s Value> {
    let properties = members.get("properties").and_then(Value::as_object);
    if let Some(property) = name.and_then(|name| properties?.get(name)) {
        return vec![property];
    }
    let named = properties.into_iter().flatten().filter(|_| name.is_none());
    let patterns = members.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    let others = members.get("additionalProperties").unwrap_or(&Value::Bool(true));
    named.chain(patterns).map(|(_, field)| field).chain([others]).collect()
}

fn elements(members: &Map<String, Value>) -> Vec<&Value> {
    let first = members.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
    first.chain([members.get("items").unwrap_or(&Value::Bool(true))]).collect()
}

/// Keywords that restrict the type of a value.
const OF_ITSELF: [&str; 8] = [
    "additionalProperties",
    "const",
    "enum",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
    "type",
];

const ELSEWHERE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

const MOST_VISITS: usize = 2000;

#[cfg(test)]
mod tests {
    use crate::{Format, check_text};

    /// The findings about `touches` in a manifest with these properties.
    #[track_caller]
    fn check(properties: &str, touches: &str, expect: &[&str]) {
        let manifest = format!(
            "{{name: t, classification: read, input: {{type: object, properties: {{{properties}}}, $defs: {{file: {{type: \
             string}}}}}}, handler: {{http: {{method: POST, url: 'https://a.org', body: {{all: x}}}}}}, touches: {touches}}}"
        );
        judge(&manifest, "/touches/", expect);
    }

    #[track_caller]
    fn judge(document: &str, place: &str, expect: &[&str]) {
        let findings = check_text(document, Format::Yaml).tools.into_iter().flat_map(|tool| tool.findings);
        let found: Vec<String> = findings
            .filter(|finding| finding.is_error() && finding.at.as_str().starts_with(place))
            .map(|finding| format!("{} {} ({})", finding.at, finding.message, finding.remedy))
            .collect();
        let fits = found.len() == expect.len()
            && found.iter().zip(expect).all(|(found, expect)| found.contains(expect));
        assert!(fits, "{document}\n{found:#?}");
    }

    #[test]
    fn path_without_parameter_is_rejected() {
        let file = "file: {type: string}";
        check(file, "{read: [.fiel]}", &["/touches/read/0 `fiel` is not a parameter (did you mean `file`?)"]);
        check(
            file,
            "{read: [.file], write: [file, '.other.x']}",
            &["/touches/write/1 `other` is not a parameter"],
        );
        check(file, "{connect: ['.file.name']}", &["names no string"]);
        check(file, "{read: ['..fiel']}", &["`..fiel` names no string that a caller could send"]);
        check("", "{read: ['*']}", &["names no string"]);
        check(file, "{read: [.file], write: ['..file', '*', '.*', '.file[]']}", &[]);
    }

    #[test]
    fn non_string_argument_is_rejected() {
        for kind in ["type: integer", "type: boolean", "type: ['null', number]", "enum: [1, 2]", "const: 5"] {
            check(&format!("n: {{{kind}}}"), "{read: [.n]}", &["`.n` names no string"]);
        }
        check("n: {type: array, items: {type: integer}}", "{read: [.n]}", &["`.n` names no string"]);
        check("n: {anyOf: [{type: integer}, {type: boolean}]}", "{read: [.n]}", &["`.n` names no string"]);
        for kind in [
            "type: ['null', string]",
            "enum: [a, 1]",
            "description: anything",
            "$ref: '#/$defs/file'",
            "anyOf: [{type: integer}, {type: string}]",
            "type: array",
            "type: array, items: {type: string}",
            "type: object",
        ] {
            check(&format!("n: {{{kind}}}"), "{read: [.n]}", &[]);
        }
    }

    #[test]
    fn fields_inside_an_argument_are_found() {
        let closed = "o: {type: object, additionalProperties: false, properties: {file: {type: string}, n: {type: integer}}}";
        check(closed, "{read: [.o, .o.file, '..file', '.o.*', '.o..file']}", &[]);
        check(closed, "{read: [.o.fiel, .o.n, '..n', '.o.file.x']}", &["fiel", ".o.n", "..n", ".x"]);
        let list = "o: {type: array, items: {type: object, properties: {file: {$ref: '#/$defs/file'}}, additionalProperties: false}}";
        check(list, "{read: ['.o[].file', .o.file, '..file']}", &[]);
        check(list, "{read: ['.o[].fiel']}", &["fiel"]);
        check("o: {type: object}", "{read: [.o.anything, '..anything']}", &[]);
    }

    #[test]
    fn javascript_parameters_are_checked_too() {
        let check = |touches: &str, expect: &[&str]| {
            let document = format!(
                "{{name: t, codeType: Javascript, code: 'return 1;', params: [{{name: file, type: STRING, required: true}}, \
                 {{name: n, type: INTEGER, required: true}}, {{name: o, type: OBJECT, required: true}}], \
                 x-toolgate-touches: {touches}}}"
            );
            judge(&document, "/x-toolgate-touches/", expect);
        };
        check("{read: [.fiel]}", &["did you mean `file`?"]);
        check("{write: [.n]}", &["`.n` names no string"]);
        check("{read: [.file, .o.file, '..file'], connect: ['..host']}", &[]);
    }
}
