//! Checks the arguments: one description that clients can read, with a test value that is valid.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{formats, json_schema, missing_examples, report::ManifestReport};
use crate::{
    Pointer,
    identifier::is_identifier,
    model::{Body, Handler, ToolSpec},
};

pub(super) fn check(spec: &ToolSpec, report: &mut ManifestReport<'_>) {
    let (input_at, test_at) = (Pointer::new("/input"), Pointer::new("/testInput"));
    let test_input = spec.governance.test_input.as_ref().filter(|value| value.is_object());
    let Some(input) = report.at(&input_at).filter(|input| input.is_object()) else {
        if test_input.is_some() {
            report.add_at_key(
                &test_at,
                "`testInput` needs `input`, which is missing",
                "give each parameter its `testValue` instead",
            );
        }
        return;
    };
    if report.at(&Pointer::new("/params")).is_some_and(|params| !params.is_null()) {
        report.add_at_key(
            &input_at,
            "`params` and `input` both describe the arguments",
            "keep one of the two",
        );
    }
    top(input, &input_at, report);
    // The closed form is compiled, which rejects undeclared arguments.
    let closed = spec.governance.input.as_ref().unwrap_or(input);
    let validator = json_schema::check(closed, &input_at, report);
    if validator.is_some() {
        examples(input, &input_at, report);
        formats::check(input, &input_at, report);
        missing_examples::check(spec, input, report);
    }
    let has_required = input.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    match (test_input, validator) {
        // A review takes the place of the test run.
        (None, _) if matches!(spec.body, Body::Handler(Handler::Mcp(_))) => {}
        (None, _) if has_required => report.add(
            &input_at.key("required"),
            "`testInput` is missing, and there are required properties",
            "write the arguments of the test run as `testInput`",
        ),
        (Some(value), Some(validator)) => {
            for error in validator.iter_errors(value) {
                report.add(
                    &Pointer::new(error.instance_path().as_str()).within(&test_at),
                    format!(
                        "the test input does not fit `input`: {}",
                        json_schema::shorten(&error.to_string())
                    ),
                    "write arguments that a caller could send",
                );
            }
        }
        _ => {}
    }
}

/// Runs the examples and `x-misses` of a schema. Models copy examples, and a rule that accepts too much protects
/// nothing.
fn examples(input: &Value, at: &Pointer, report: &mut ManifestReport<'_>) {
    if input.get(MISSES).is_some() {
        let message = format!("`{MISSES}` must be next to the rule that it tests, in a property");
        report.add_at_key(&at.key(MISSES), message, "move it into the property");
    }
    let parts = ["properties", "$defs"].into_iter().flat_map(|keyword| {
        let members = input.get(keyword).and_then(Value::as_object).into_iter().flatten();
        members.map(move |(name, schema)| (Pointer::root().key(keyword).key(name), schema))
    });
    let mut left: Vec<(Pointer, &Value)> = parts.collect();
    while let Some((place, schema)) = left.pop() {
        left.extend(json_schema::children(schema, &place));
        if schema.get("examples").is_none() && schema.get(MISSES).is_none() {
            continue;
        }
        // Adds the definitions, otherwise its references would not resolve.
        let mut whole = schema.clone();
        if let (Some(members), Some(definitions)) = (whole.as_object_mut(), input.get("$defs")) {
            members.insert("$defs".to_owned(), definitions.clone());
        }
        let Ok(validator) = crate::schema::compile(&whole) else { continue };
        fits(schema, &validator, &place.within(at), report);
        misses(schema, &validator, &place.within(at), report);
    }
}

fn fits(schema: &Value, validator: &Validator, at: &Pointer, report: &mut ManifestReport<'_>) {
    let examples = schema.get("examples").and_then(Value::as_array).into_iter().flatten();
    for (index, example) in examples.enumerate() {
        let Some(error) = validator.iter_errors(example).next() else { continue };
        report.add(
            &at.key("examples").index(index),
            format!("the example does not fit its schema: {}", json_schema::shorten(&error.to_string())),
            "write a value that a caller could send, or remove the example",
        );
    }
}

fn misses(schema: &Value, validator: &Validator, at: &Pointer, report: &mut ManifestReport<'_>) {
    let Some(written) = schema.get(MISSES) else { return };
    let at = at.key(MISSES);
    let Some(misses) = written.as_array().filter(|misses| !misses.is_empty()) else {
        report.add(&at, "this is not a list of values", "list values that the schema must reject");
        return;
    };
    for (index, miss) in misses.iter().enumerate() {
        if validator.is_valid(miss) {
            report.add(
                &at.index(index),
                format!("{} matches the schema but must not", json_schema::shorten(&miss.to_string())),
                "make the rule stricter, or remove the value",
            );
        }
    }
    if let Some(pattern) = schema.get("pattern").filter(|pattern| pattern.is_string())
        && let Ok(alone) = crate::schema::compile(&json!({ "pattern": pattern }))
        && misses.iter().all(|miss| alone.is_valid(miss))
    {
        report.add(
            &at,
            "the pattern rejects none of these; another rule or their type does",
            "add a string that `pattern` itself must reject",
        );
    }
}

/// All arguments must be listed under `properties`: a combinator at the top can only restrict them.
fn top(input: &Value, at: &Pointer, report: &mut ManifestReport<'_>) {
    super::output::object_at_top(
        input,
        at,
        "arguments must be an object; list them under `properties`",
        report,
    );
    for keyword in NOT_AT_TOP.into_iter().filter(|keyword| input.get(keyword).is_some()) {
        report.add_at_key(
            &at.key(keyword),
            format!("`{keyword}` at the top level adds arguments that are not declared"),
            "list all arguments under `properties`",
        );
    }
    restricts_only(input, at, report);
    if input.get("additionalProperties").is_some_and(|value| *value != Value::Bool(false)) {
        report.add(
            &at.key("additionalProperties"),
            "undeclared arguments cannot be checked",
            "remove it or write `false`; a property of type `object` can hold free content",
        );
    }
    for name in input.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name)
    {
        // `__proto__` is reported at every level.
        if !is_identifier(name) && name != "__proto__" {
            report.add_at_key(
                &at.key("properties").key(name),
                format!("`{}` cannot be a name in a template", json_schema::shorten(name)),
                "use letters, digits and `_`, not beginning with a digit, and no reserved word",
            );
        }
    }
}

/// `format` decides how an argument is checked, and is only read under `properties`. A reference could lead to one
/// elsewhere.
fn restricts_only(input: &Value, at: &Pointer, report: &mut ManifestReport<'_>) {
    let is_combined = |place: &Pointer| {
        let below = place.as_str().strip_prefix(at.as_str()).and_then(|below| below.strip_prefix('/'));
        let keyword = below.and_then(|below| below.split('/').next());
        keyword.is_some_and(|keyword| COMBINATORS.contains(&keyword))
    };
    let mut left: Vec<(Pointer, &Value)> = json_schema::children(input, at);
    left.retain(|(place, _)| is_combined(place));
    while let Some((place, schema)) = left.pop() {
        left.extend(json_schema::children(schema, &place));
        for keyword in ["format", "$ref"].into_iter().filter(|keyword| schema.get(keyword).is_some()) {
            report.add_at_key(
                &place.key(keyword),
                format!("`{keyword}` in a combinator at the top level is not checked"),
                "write it under `properties`",
            );
        }
    }
}

/// The keyword for values that a schema must reject, next to `examples`.
const MISSES: &str = "x-misses";

const NOT_AT_TOP: [&str; 3] = ["$ref", "dependentSchemas", "patternProperties"];
const COMBINATORS: [&str; 7] = ["allOf", "anyOf", "else", "if", "not", "oneOf", "then"];
