//! Durations and sizes in the file: `120s`, `5m`, `250ms`; `64KiB`, `1MiB`, or a plain number of bytes.

use std::time::Duration;

use serde::{
    Deserialize, Deserializer,
    de::{Error, Unexpected},
};
use serde_json::Value;

use crate::key::{HOUR, KIB, MIB, MINUTE, Ms, SECOND};

pub(crate) fn milliseconds(text: &str) -> Option<Ms> {
    amount(text, &DURATION_UNITS)
}

/// Accepts a number of bytes or a text with a unit.
pub(crate) fn bytes(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => amount(text, &SIZE_UNITS),
        _ => None,
    }
}

/// Uses the largest unit that divides the value.
pub(crate) fn show_milliseconds(ms: Ms) -> String {
    show(ms, &DURATION_UNITS)
}

pub(crate) fn show_bytes(bytes: u64) -> String {
    show(bytes, &SIZE_UNITS)
}

pub(crate) fn duration_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    milliseconds(&text)
        .map(Duration::from_millis)
        .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"a duration"))
}

pub(crate) fn size_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    bytes(&Value::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("not a size"))
}

fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at_checked(digits)?;
    let has_leading_zero = count.len() > 1 && count.starts_with('0');
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    if has_leading_zero { None } else { count.parse::<u64>().ok()?.checked_mul(*factor) }
}

fn show(amount: u64, units: &[(&str, u64)]) -> String {
    let whole = units.iter().rev().find(|(_, factor)| amount >= *factor && amount.is_multiple_of(*factor));
    let (name, factor) = whole.or(units.first()).copied().unwrap_or(("", 1));
    format!("{}{name}", amount / factor)
}

pub(crate) const DURATION_PATTERN: &str = "^(0|[1-9][0-9]*)(ms|s|m|h)$";
pub(crate) const SIZE_PATTERN: &str = "^(0|[1-9][0-9]*)(B|KiB|MiB|GiB)$";

const DURATION_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", SECOND), ("m", MINUTE), ("h", HOUR)];
const SIZE_UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", KIB), ("MiB", MIB), ("GiB", 1 << 30)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_parsed() {
        for (text, expect) in
            [("250ms", 250), ("120s", 120_000), ("5m", 300_000), ("8h", 28_800_000), ("0s", 0)]
        {
            assert_eq!(milliseconds(text), Some(expect), "{text}");
        }
        for (value, expect) in
            [(Value::from(5), 5), ("1MiB".into(), MIB), ("64KiB".into(), 65_536), ("7B".into(), 7)]
        {
            assert_eq!(bytes(&value), Some(expect), "{value}");
        }
    }

    #[test]
    fn ambiguous_quantities_are_rejected() {
        for text in [
            "",
            "s",
            "120",
            "-1s",
            "1.5s",
            "1 s",
            "01s",
            "1S",
            "1d",
            "99999999999999999999s",
            "18446744073709551615h",
            "١s",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
        for text in ["", "MiB", "1MB", "1K", "1024", "-1B", "17179869184GiB"] {
            assert_eq!(bytes(&text.into()), None, "{text}");
        }
        assert_eq!(bytes(&(-1).into()), None);
        assert_eq!(bytes(&1.5.into()), None);
    }

    #[test]
    fn shows_the_largest_whole_unit() {
        assert_eq!([0, 250, 90_000, 3_600_000].map(show_milliseconds), ["0ms", "250ms", "90s", "1h"]);
        assert_eq!([0, 1_000, 65_536, MIB].map(show_bytes), ["0B", "1000B", "64KiB", "1MiB"]);
    }
}
