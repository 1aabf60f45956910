//! Rejects unknown `format` values of arguments: `format: file-path` looks like a guard but has no effect.

use serde_json::Value;

use super::{json_schema, report::ManifestReport};
use crate::Pointer;

/// Only where a string is allowed: for numbers, `format` is their width.
pub(super) fn check(input: &Value, at: &Pointer, report: &mut ManifestReport<'_>) {
    let mut left = vec![(at.clone(), input)];
    while let Some((place, schema)) = left.pop() {
        left.extend(json_schema::children(schema, &place));
        let format = schema
            .get("format")
            .and_then(Value::as_str)
            .filter(|_| json_schema::leaves_open(schema.get("type"), "string"));
        if let Some(format) = format.filter(|format| !KNOWN.contains(format)) {
            let remedy = crate::similar::remedy(format, KNOWN.into_iter(), OTHERWISE);
            let message = format!("`{}` is not a known format", json_schema::shorten(format));
            report.add(&place.key("format"), message, remedy);
        }
    }
}

const OTHERWISE: &str =
    "write `path` for a path, `uri` or `hostname` for an address; say anything else in the `description`";

/// Formats of JSON Schema, formats with a meaning here (`path`, `url`), and formats of other tool descriptions.
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
    fn unknown_format_is_rejected() {
        check(
            "a: {type: string, format: Path}",
            &["/input/properties/a/format `Path` is not a known format"],
        );
        check("a: {type: string, format: pth}", &["did you mean `path`?"]);
        check("a: {type: string, format: file-path}", &["write `path` for a path"]);
        check("a: {format: hostnam}", &["did you mean `hostname`?"]);
        check("a: {type: array, items: {type: ['null', string], format: file}}", &["/a/items/format"]);
        check("a: {anyOf: [{type: string, format: uir}, {type: 'null'}]}", &["/a/anyOf/0/format"]);
    }

    #[test]
    fn common_formats_are_accepted() {
        for format in ["path", "url", "uri", "hostname", "date-time", "uuid", "int64", "password"] {
            check(&format!("a: {{type: string, format: {format}}}"), &[]);
        }
        // For a number, `format` is its width.
        check("a: {type: integer, format: uint8}, b: {type: [number, 'null'], format: decimal}", &[]);
    }
}
