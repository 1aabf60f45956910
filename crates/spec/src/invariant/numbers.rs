//! Rejects numbers that the canonical form would round: two documents could then share a digest.

use serde_json::{Map, Value};

use crate::{Code, Finding, Pointer, read::EXACT_LIMIT_FLOAT, schema::Schema};

pub(crate) fn wide_numbers(document: &Map<String, Value>, findings: &mut Vec<Finding>) {
    let known = [Schema::SafeToolSpec, Schema::ToolManifest].map(Schema::document);
    for (key, value) in document {
        let is_ours = known.iter().any(|schema| {
            schema.pointer("/properties").is_some_and(|properties| properties.get(key).is_some())
        });
        let code = if is_ours { Code::SpecInvariant } else { Code::LintNumberPrecision };
        walk(value, &Pointer::root().key(key), code, findings);
    }
}

fn walk(value: &Value, at: &Pointer, code: Code, findings: &mut Vec<Finding>) {
    match value {
        Value::Number(number) => {
            let is_wide =
                number.as_f64().is_some_and(|value| value.fract() == 0.0 && value.abs() > EXACT_LIMIT_FLOAT);
            if is_wide {
                findings.push(Finding::new(
                    code,
                    at.clone(),
                    format!("`{number}` is beyond 2^53, where readers round"),
                    "write the number as a string",
                ));
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| walk(item, &at.index(index), code, findings));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| walk(member, &at.key(key), code, findings));
        }
        _ => {}
    }
}
