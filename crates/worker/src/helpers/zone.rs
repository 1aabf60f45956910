//! Local times in time zones, from the bundled database. Reads no file, environment variable or setting of the machine.

mod names;
#[cfg(test)]
mod tests;

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone, TimeZoneDatabase},
};
use serde_json::json;

use super::{HelperAnswer, HelperError};

/// Input: JSON `[epoch milliseconds, zone]`. Returns `[year, month, day, hour, minute, second, millisecond, weekday,
/// offset in seconds, abbreviation, long name, short name]`. Sunday is weekday 0. The two names are English, and empty
/// if people write the offset instead.
pub fn zoned_time(text: &str) -> Result<HelperAnswer, HelperError> {
    let (instant, name): (i64, String) = serde_json::from_str(text)
        .map_err(|_| invalid("bad-question", "expected [epoch milliseconds, zone]"))?;
    if instant.unsigned_abs() > MAX_INSTANT {
        return Err(invalid("invalid-date", "the date is outside the range of JavaScript dates"));
    }
    let zone = find(&name)
        .ok_or_else(|| invalid("unknown-zone", format!("unknown time zone `{}`", name.escape_debug())))?;
    let cycles = cycles_outside(instant);
    let timestamp = Timestamp::from_millisecond(instant - cycles * CYCLE_MILLISECONDS)
        .map_err(|_| invalid("invalid-date", "the date is outside the range of JavaScript dates"))?;
    let info = zone.to_offset_info(timestamp);
    let clock = zone.to_datetime(timestamp);
    let (long, short) = zone.iana_name().and_then(names::names_of).map_or(("", ""), |names| {
        if info.dst().is_dst() {
            (names.daylight, names.short_daylight)
        } else {
            (names.standard, names.short_standard)
        }
    });
    let answer = json!([
        i64::from(clock.year()) + cycles * CYCLE_YEARS,
        clock.month(),
        clock.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        clock.millisecond(),
        clock.weekday().to_sunday_zero_offset(),
        info.offset().seconds(),
        info.abbreviation(),
        long,
        short,
    ]);
    Ok(HelperAnswer::Json(answer.to_string()))
}

/// Returns the canonical spelling of a zone name; for `*`, a JSON array of all names.
#[expect(clippy::unnecessary_wraps, reason = "every helper has this signature")]
pub fn zone_name(text: &str) -> Result<HelperAnswer, HelperError> {
    if text == "*" {
        let names: Vec<String> =
            database().available().map(|name| name.to_string()).filter(|name| name != PLACEHOLDER).collect();
        return Ok(HelperAnswer::Json(json!(names).to_string()));
    }
    if let Some(offset) = parse_offset(text) {
        return Ok(HelperAnswer::Text(spell(offset)));
    }
    let zone = find(text);
    Ok(zone
        .as_ref()
        .and_then(TimeZone::iana_name)
        .map_or(HelperAnswer::Nothing, |name| HelperAnswer::Text(name.to_owned())))
}

fn find(name: &str) -> Option<TimeZone> {
    if let Some(offset) = parse_offset(name) {
        return Some(TimeZone::fixed(offset));
    }
    if name.len() > MAX_NAME || name.eq_ignore_ascii_case(PLACEHOLDER) {
        return None;
    }
    database().get(name).ok().filter(|zone| !zone.is_unknown())
}

fn database() -> TimeZoneDatabase {
    TimeZoneDatabase::bundled()
}

/// `+05`, `+0530` or `+05:30`.
fn parse_offset(text: &str) -> Option<Offset> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':').filter(|(hours, _)| hours.len() == 2)?,
        _ => return None,
    };
    let number = |text: &str, below: i32| {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_digits && *number < below)
    };
    let seconds = number(hours, 24)? * 3600 + number(minutes, 60)? * 60;
    Offset::from_seconds(sign * seconds).ok()
}

fn spell(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

/// The number of 400-year cycles to subtract to get into the range of the library. Leap years and weekdays repeat
/// exactly, so the zone rules give the same result there.
fn cycles_outside(instant: i64) -> i64 {
    let excess = instant.abs() - COUNTABLE_MILLISECONDS;
    if excess <= 0 { 0 } else { (excess / CYCLE_MILLISECONDS + 1) * instant.signum() }
}

fn invalid(reason: &str, message: impl Into<String>) -> HelperError {
    HelperError::invalid("Intl.DateTimeFormat", reason, message)
}

/// The Gregorian calendar repeats every 400 years, which are whole weeks.
const CYCLE_YEARS: i64 = 400;
const CYCLE_MILLISECONDS: i64 = 146_097 * 86_400_000;
/// About 7900 years around 1970, well inside the library's range of 9999.
const COUNTABLE_MILLISECONDS: i64 = 250_000_000_000_000;
/// The range of JavaScript's dates.
const MAX_INSTANT: u64 = 8_640_000_000_000_000;
const MAX_NAME: usize = 64;
/// A database entry for machines without a configured time zone.
const PLACEHOLDER: &str = "Factory";
