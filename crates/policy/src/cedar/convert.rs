//! Converts arguments to Cedar values, without Cedar's JSON format, in which an argument could pose as an entity.

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Number, Value};

use super::kind::{CedarRecord, CedarType, Presence};

/// Converts the members that `is_watched` accepts. Members that no policy uses are not copied or checked.
pub(super) fn record(
    record: &CedarRecord,
    value: &Map<String, Value>,
    is_watched: impl Fn(&str) -> bool,
) -> Result<RestrictedExpression, Inexpressible> {
    let mut members = Vec::new();
    for (name, member) in record.members.iter().filter(|(name, _)| is_watched(name)) {
        match value.get(name) {
            None | Some(Value::Null) if member.presence == Presence::Maybe => {}
            None => return Err(Inexpressible { at: name.clone(), why: "is missing" }),
            Some(value) => {
                let value = convert(&member.kind, value).map_err(|unfit| unfit.below(name))?;
                members.push((name.clone(), value));
            }
        }
    }
    RestrictedExpression::new_record(members)
        .map_err(|_| Inexpressible { at: String::new(), why: "has a duplicate member" })
}

/// The argument that cannot be converted, and why.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Inexpressible {
    pub at: String,
    pub why: &'static str,
}

impl Inexpressible {
    const fn here(why: &'static str) -> Self {
        Self { at: String::new(), why }
    }

    fn below(self, name: &str) -> Self {
        let at = if self.at.is_empty() { name.to_owned() } else { format!("{name}.{}", self.at) };
        Self { at, ..self }
    }
}

fn convert(kind: &CedarType, value: &Value) -> Result<RestrictedExpression, Inexpressible> {
    match (kind, value) {
        (CedarType::Text(_), Value::String(text)) => Ok(RestrictedExpression::new_string(text.clone())),
        (CedarType::Flag, Value::Bool(flag)) => Ok(RestrictedExpression::new_bool(*flag)),
        (CedarType::Whole, Value::Number(number)) => whole(number).map(RestrictedExpression::new_long),
        (CedarType::Fraction, Value::Number(number)) => {
            decimal(number).map(RestrictedExpression::new_decimal)
        }
        (CedarType::Many(item), Value::Array(items)) => {
            let items: Result<Vec<_>, _> = items.iter().map(|value| convert(item, value)).collect();
            items.map(RestrictedExpression::new_set)
        }
        (CedarType::Record(kind), Value::Object(members)) => record(kind, members, |_| true),
        _ => Err(Inexpressible::here("does not have the type of its schema")),
    }
}

/// JSON can write the same integer as `3`, `3.0` or `3e0`.
fn whole(number: &Number) -> Result<i64, Inexpressible> {
    if let Some(whole) = number.as_i64() {
        return Ok(whole);
    }
    let unfit = Inexpressible::here("does not fit into Cedar's 64-bit integers");
    let digits = number.as_f64().filter(|_| !number.is_u64()).map(|float| float.to_string());
    digits.and_then(|digits| digits.parse().ok()).ok_or(unfit)
}

/// The shortest decimal for this number, if it has at most four places, the limit of Cedar's `decimal`. Rounding would let
/// 1000.00001 pass a limit of 1000.
fn decimal(number: &Number) -> Result<String, Inexpressible> {
    // `Display` of a float never uses an exponent.
    let text = match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    };
    let (whole, places) = text.split_once('.').unwrap_or((&text, "0"));
    if places.len() > DECIMAL_PLACES {
        return Err(Inexpressible::here("has more than four decimal places, the limit of Cedar"));
    }
    let scaled: Option<i128> = format!("{whole}{places:0<DECIMAL_PLACES$}").parse().ok();
    match scaled.map(i64::try_from) {
        Some(Ok(_)) => Ok(format!("{whole}.{places}")),
        _ => Err(Inexpressible::here("does not fit into Cedar's decimals")),
    }
}

const DECIMAL_PLACES: usize = 4;
