//! A call's arguments as Cedar values. Never through Cedar's JSON format, in which an argument could pose as an entity.

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Number, Value};

use super::kind::{Kind, Presence, Record};

/// The members that `is_watched` lets through: what no policy looks at is neither copied nor judged.
pub(super) fn record(
    record: &Record,
    value: &Map<String, Value>,
    is_watched: impl Fn(&str) -> bool,
) -> Result<RestrictedExpression, Unfit> {
    let mut members = Vec::new();
    for (name, member) in record.members.iter().filter(|(name, _)| is_watched(name)) {
        match value.get(name) {
            None | Some(Value::Null) if member.presence == Presence::Maybe => {}
            None => return Err(Unfit { at: name.clone(), why: "is missing" }),
            Some(value) => {
                let value = convert(&member.kind, value).map_err(|unfit| unfit.below(name))?;
                members.push((name.clone(), value));
            }
        }
    }
    RestrictedExpression::new_record(members)
        .map_err(|_| Unfit { at: String::new(), why: "has a member twice" })
}

/// Which argument a policy cannot judge, and why.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Unfit {
    pub at: String,
    pub why: &'static str,
}

impl Unfit {
    const fn here(why: &'static str) -> Self {
        Self { at: String::new(), why }
    }

    fn below(self, name: &str) -> Self {
        let at = if self.at.is_empty() { name.to_owned() } else { format!("{name}.{}", self.at) };
        Self { at, ..self }
    }
}

fn convert(kind: &Kind, value: &Value) -> Result<RestrictedExpression, Unfit> {
    match (kind, value) {
        (Kind::Text(_), Value::String(text)) => Ok(RestrictedExpression::new_string(text.clone())),
        (Kind::Flag, Value::Bool(flag)) => Ok(RestrictedExpression::new_bool(*flag)),
        (Kind::Whole, Value::Number(number)) => whole(number).map(RestrictedExpression::new_long),
        (Kind::Fraction, Value::Number(number)) => decimal(number).map(RestrictedExpression::new_decimal),
        (Kind::Many(item), Value::Array(items)) => {
            let items: Result<Vec<_>, _> = items.iter().map(|value| convert(item, value)).collect();
            items.map(RestrictedExpression::new_set)
        }
        (Kind::Record(kind), Value::Object(members)) => record(kind, members, |_| true),
        _ => Err(Unfit::here("is not of the type that its schema gives it")),
    }
}

/// JSON writes the same integer in several ways: `3`, `3.0`, `3e0`.
fn whole(number: &Number) -> Result<i64, Unfit> {
    if let Some(whole) = number.as_i64() {
        return Ok(whole);
    }
    let unfit = Unfit::here("is beyond what Cedar's 64-bit integers hold");
    let digits = number.as_f64().filter(|_| !number.is_u64()).map(|float| float.to_string());
    digits.and_then(|digits| digits.parse().ok()).ok_or(unfit)
}

/// The shortest decimal that means this number, if it has at most four places: what Cedar's `decimal` holds. Rounding
/// would let 1000.00001 pass a limit of 1000.
fn decimal(number: &Number) -> Result<String, Unfit> {
    // A float's `Display` never uses an exponent.
    let text = match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    };
    let (whole, places) = text.split_once('.').unwrap_or((&text, "0"));
    if places.len() > DECIMAL_PLACES {
        return Err(Unfit::here("has more than the four decimal places that Cedar compares"));
    }
    let scaled: Option<i128> = format!("{whole}{places:0<DECIMAL_PLACES$}").parse().ok();
    match scaled.map(i64::try_from) {
        Some(Ok(_)) => Ok(format!("{whole}.{places}")),
        _ => Err(Unfit::here("is beyond what Cedar's decimals hold")),
    }
}

const DECIMAL_PLACES: usize = 4;
