//! Does every `format` of an argument mean something? `format: file-path` looks like a guard and is none.

use serde_json::Value;

use super::{json_schema, report::Report};
use crate::Pointer;

/// Only where a text can stand: a `format` of numbers says how wide they are.
pub(super) fn check(input: &Value, at: &Pointer, report: &mut Report<'_>) {
    let mut left = vec![(at.clone(), input)];
    while let Some((place, schema)) = left.pop() {
        left.extend(json_schema::children(schema, &place));
        let format = schema
            .get("format")
            .and_then(Value::as_str)
            .filter(|_| json_schema::leaves_open(schema.get("type"), "string"));
        if let Some(format) = format.filter(|format| !KNOWN.contains(format)) {
            let remedy = crate::similar::remedy(format, KNOWN.into_iter(), OTHERWISE);
            let message = format!("`{}` is no format that is understood here", json_schema::shorten(format));
            report.say(&place.key("format"), message, remedy);
        }
    }
}

const OTHERWISE: &str =
    "write `path` for a path, `uri` or `hostname` for an address; say anything else in the `description`";

/// Those of JSON Schema, those that have a meaning here (`path`, `url`), and those that other descriptions of tools have.
const KNOWN: [&str; 29] = [
    "binary",
    "byte",
    "date",
    "date-time",
    "double",
    "duration",
    "email",
    "enum",
    "float",
    "hostname",
    "idn-email",
    "idn-hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "password",
    "path",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "url",
    "uuid",
];

#[cfg(test)]
mod tests {
    use crate::{Format, check_text};

    #[track_caller]
    fn check(properties: &str, expect: &[&str]) {
        let text = format!(
            "{{name: t, classification: read, input: {{type: object, properties: {{{properties}}}}}, \
             output: {{type: object, properties: {{r: {{type: string, format: anything}}}}}}, \
             handler: {{http: {{method: POST, url: 'https://a.org', body: {{all: x}}}}}}}}"
        );
        let findings = check_text(&text, Format::Yaml).tools.into_iter().flat_map(|tool| tool.findings);
        let found: Vec<String> = findings
            .filter(|finding| finding.is_error() && finding.at.as_str().ends_with("format"))
            .map(|finding| format!("{} {} ({})", finding.at, finding.message, finding.remedy))
            .collect();
        let fits = found.len() == expect.len()
            && found.iter().zip(expect).all(|(found, expect)| found.contains(expect));
        assert!(fits, "{text}\n{found:#?}");
    }

    #[test]
    fn a_format_that_nobody_understands_is_refused() {
        check("a: {type: string, format: Path}", &["/input/properties/a/format `Path` is no format"]);
        check("a: {type: string, format: pth}", &["did you mean `path`?"]);
        check("a: {type: string, format: file-path}", &["write `path` for a path"]);
        check("a: {format: hostnam}", &["did you mean `hostname`?"]);
        check("a: {type: array, items: {type: ['null', string], format: file}}", &["/a/items/format"]);
        check("a: {anyOf: [{type: string, format: uir}, {type: 'null'}]}", &["/a/anyOf/0/format"]);
    }

    #[test]
    fn formats_in_use_are_understood() {
        for format in ["path", "url", "uri", "hostname", "date-time", "uuid", "int64", "password"] {
            check(&format!("a: {{type: string, format: {format}}}"), &[]);
        }
        // Of a number, how wide it is.
        check("a: {type: integer, format: uint8}, b: {type: [number, 'null'], format: decimal}", &[]);
    }
}
