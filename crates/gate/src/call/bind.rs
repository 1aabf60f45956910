//! Stage B: validates the arguments against the tool's input schema and the size limits.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_policy::Arguments;
use toolgate_spec::{CompiledSchema, Unambiguous, model::ToolSpec, project};

use super::{
    admit::Admitted,
    support::{stop::StoppedCall, texts},
};
use crate::{digest, gate::ArgumentLimits, live::LiveTool, reason::Reason};

/// A call whose arguments fit the tool's input schema.
#[derive(Debug)]
pub struct BoundCall {
    pub admitted: Admitted,
    /// Shared, not copied: policies, the path check and the run all read this one.
    pub arguments: Arc<Arguments>,
    pub arguments_digest: String,
    /// Changes other than `normalise`, each as `name: from → to`.
    pub coercions: Vec<String>,
    _sealed: (),
}

/// `given_digest` is the digest of the arguments before binding.
pub fn bind(mut admitted: Admitted, given_digest: &str) -> Result<BoundCall, StoppedCall> {
    let given = std::mem::take(&mut admitted.call.arguments);
    let declared = DeclaredArguments {
        schema: &admitted.tool.input_schema,
        compiled: &admitted.tool.input,
        source: SchemaSource::of(&admitted.tool.spec),
    };
    let alarms = alarms_in(&given, &admitted.tool);
    let (value, coercions) =
        fit(given, &declared, admitted.live_config.arguments).map_err(|stop| stop.with_alerts(alarms))?;
    let arguments_digest = if coercions.is_empty() { given_digest.to_owned() } else { digest::of(&value) };
    let Value::Object(arguments) = value else {
        return Err(StoppedCall::new(Reason::InputShape, "no object"));
    };
    let arguments = Arc::new(Arguments::from(arguments));
    Ok(BoundCall { admitted, arguments, arguments_digest, coercions, _sealed: () })
}

/// Searches refused arguments for `alertOn` texts. The next stage searches accepted ones.
fn alarms_in(given: &Map<String, Value>, tool: &LiveTool) -> Vec<String> {
    if !tool.has_alarms() {
        return Vec::new();
    }
    let json = serde_json::to_string(given).unwrap_or_default();
    tool.alarms_in(texts::of_members(given).into_iter().chain([json.as_str()]))
}

/// The arguments as a call of this tool would get them, or the reason for a refusal. For a run without a gateway, which
/// has no configured limits.
pub fn fitted(spec: &ToolSpec, given: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let schema = project::input_schema(spec).map_err(|error| error.to_string())?;
    let compiled = CompiledSchema::new(&schema).map_err(|error| format!("the input schema: {error}"))?;
    let declared = DeclaredArguments { schema: &schema, compiled: &compiled, source: SchemaSource::of(spec) };
    match fit(given, &declared, ArgumentLimits { bytes: usize::MAX, depth: usize::MAX }) {
        Ok((Value::Object(arguments), _)) => Ok(arguments),
        Ok(_) => Err("no object".to_owned()),
        Err(stop) => Err(stop.to_caller),
    }
}

/// The tool's declaration of its arguments.
struct DeclaredArguments<'t> {
    schema: &'t Value,
    compiled: &'t CompiledSchema,
    source: SchemaSource,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum SchemaSource {
    /// `params`: null counts as absent, and so does blank text that is not required.
    Params,
    /// The author's own schema, which itself defines the meaning of null and blank.
    OwnSchema,
}

impl SchemaSource {
    fn of(spec: &ToolSpec) -> Self {
        if spec.governance.input.is_none() { Self::Params } else { Self::OwnSchema }
    }
}

/// Returns an object that fits the schema, and the changes that were needed.
fn fit(
    given: Map<String, Value>,
    declared: &DeclaredArguments<'_>,
    limits: ArgumentLimits,
) -> Result<(Value, Vec<String>), StoppedCall> {
    within(&given, limits)?;
    let mut coercions = Vec::new();
    let mut arguments = Map::with_capacity(given.len());
    for (name, value) in given {
        let value = coerce(&name, value, wanted_type(declared.schema, &name), &mut coercions);
        if declared.source == SchemaSource::Params && counts_as_absent(&value, declared.schema, &name) {
            coercions.push(format!("{name}: {} → absent", if value.is_null() { "null" } else { "blank" }));
        } else {
            arguments.insert(name, value);
        }
    }
    // Check the limits again: text that was parsed as a structure adds depth.
    if !coercions.is_empty() {
        within(&arguments, limits)?;
    }
    let mut value = Value::Object(arguments);
    normalise(&mut value);
    let violations = declared.compiled.violations(&value, MOST_VIOLATIONS);
    if !violations.is_empty() {
        return Err(refusal(&violations));
    }
    // After the coercions, because text may have become a number.
    match inexact_integer(&value) {
        Some(place) => Err(inexact(&place)),
        None => Ok((value, coercions)),
    }
}

/// Gives arguments with the same digest the same form. The digest is over canonical JSON, which sorts members and
/// writes `-0` and `1.0` as `0` and `1`. Otherwise an approval of one spelling would run another one.
fn normalise(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let integer = number.as_f64().filter(|_| number.is_f64()).and_then(exact_integer);
            if let Some(integer) = integer {
                *number = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(members) => {
            members.sort_keys();
            members.values_mut().for_each(normalise);
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The integer with the same value as a double. `None` for a fraction and beyond 2^53 - 1, where only the double is
/// accepted.
fn exact_integer(double: f64) -> Option<i64> {
    // `{:.0}` writes an integral double exactly; `-0` parses as 0.
    (double.fract() == 0.0)
        .then(|| format!("{double:.0}").parse::<i64>().ok())
        .flatten()
        .filter(|integer| integer.unsigned_abs() <= LARGEST_EXACT_INTEGER)
}

fn within(arguments: &Map<String, Value>, limits: ArgumentLimits) -> Result<(), StoppedCall> {
    let too_deep = arguments.values().any(|value| depth(value) >= limits.depth);
    if too_deep {
        let message = format!("the arguments nest more than {} levels deep", limits.depth);
        return Err(StoppedCall::new(Reason::InputTooLarge, message).with_remedy("send flatter arguments"));
    }
    let bytes = digest::json_bytes(arguments);
    if bytes > limits.bytes {
        let message = format!("the arguments have {bytes} bytes; at most {} are allowed", limits.bytes);
        return Err(
            StoppedCall::new(Reason::InputTooLarge, message).with_remedy("send less, or in several calls")
        );
    }
    Ok(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// The JSON pointer of the first integer that shares its double with other integers. Canonical JSON writes numbers as
/// doubles, so two such integers would have the same digest, and one could consume the approval of the other.
fn inexact_integer(value: &Value) -> Option<String> {
    let within = |step: &str, value: &Value| {
        let rest = inexact_integer(value)?;
        Some(format!("/{}{rest}", step.replace('~', "~0").replace('/', "~1")))
    };
    match value {
        // An integer that does not fit `i64` is larger still.
        Value::Number(number) if !number.is_f64() => {
            let is_exact =
                number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= LARGEST_EXACT_INTEGER);
            (!is_exact).then(String::new)
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| within(&index.to_string(), item))
        }
        Value::Object(members) => members.iter().find_map(|(name, member)| within(name, member)),
        _ => None,
    }
}

fn inexact(place: &str) -> StoppedCall {
    let message = format!(
        "the arguments do not fit: `{place}`: expected an integer from -{LARGEST_EXACT_INTEGER} to \
         {LARGEST_EXACT_INTEGER}, got one that some JSON readers would round"
    );
    StoppedCall::new(Reason::InputShape, message).with_remedy("pass it as text if the tool accepts that")
}

/// The type that the schema names for this argument, if it names exactly one.
fn wanted_type<'s>(schema: &'s Value, name: &str) -> Option<&'s str> {
    schema.get("properties")?.get(name)?.get("type")?.as_str()
}

/// Small models send numbers and structures as text. Only these two are converted. Text with more than one reading,
/// such as duplicate keys, stays text and then fails the schema.
fn coerce(name: &str, value: Value, wanted: Option<&str>, coercions: &mut Vec<String>) -> Value {
    let (Value::String(text), Some(wanted)) = (&value, wanted) else { return value };
    let read: Option<Value> = match wanted {
        "object" | "array" | "number" | "integer" => {
            serde_json::from_str(text.trim()).ok().map(|Unambiguous(read)| read)
        }
        _ => None,
    };
    let fits = |read: &Value| match wanted {
        "object" => read.is_object(),
        "array" => read.is_array(),
        "number" => read.is_number(),
        "integer" => read.is_i64() || read.is_u64(),
        _ => false,
    };
    match read.filter(fits) {
        Some(read) => {
            coercions.push(format!("{name}: text → {wanted}"));
            read
        }
        None => value,
    }
}

/// Null counts as absent, and so does blank text. A required text is different: there, blank is a value, such as a
/// replacement that deletes a word.
fn counts_as_absent(value: &Value, schema: &Value, name: &str) -> bool {
    let is_required_text = || {
        let required = schema.get("required").and_then(Value::as_array);
        wanted_type(schema, name) == Some("string")
            && required.is_some_and(|names| names.iter().any(|required| required == name))
    };
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty() && !is_required_text(),
        _ => false,
    }
}

fn refusal(violations: &[toolgate_spec::Violation]) -> StoppedCall {
    let lines: Vec<String> = violations
        .iter()
        .map(|violation| {
            let place = if violation.at.is_empty() { "the arguments" } else { &violation.at };
            format!("`{place}`: expected {}, got {}", violation.expected, violation.came)
        })
        .collect();
    let places: Vec<&str> = violations.iter().map(|violation| violation.at.as_str()).collect();
    StoppedCall::new(Reason::InputShape, format!("the arguments do not fit: {}", lines.join("; ")))
        .with_remedy("correct the named fields and call again")
        // The values may be private, so the journal gets only their places.
        .for_operator(format!("the arguments do not fit at `{}`", places.join("`, `")))
}

const MOST_VIOLATIONS: usize = 5;
/// 2^53 - 1.
const LARGEST_EXACT_INTEGER: u64 = 9_007_199_254_740_991;
