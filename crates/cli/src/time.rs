//! Formats and parses times, always in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
pub use toolgate::rounded;

/// `2026-11-16 04:30`.
pub fn minute(time: SystemTime) -> String {
    timestamp(time).strftime("%Y-%m-%d %H:%M").to_string()
}

/// `2026-11-16T04:30:05Z`.
pub fn rfc3339(time: SystemTime) -> String {
    timestamp(time).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Parses a day such as `2026-11-16` to its first moment.
pub fn day(text: &str) -> Option<SystemTime> {
    let date: jiff::civil::Date = text.parse().ok().filter(|_| text.len() == 10)?;
    let begin = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(begin.as_second()).ok()?))
}

pub const DAY: Duration = Duration::from_hours(24);

/// Parses `30d`, `12h`, `15m` or `90s`.
pub fn span(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "d" => 86_400,
        "h" => 3_600,
        "m" => 60,
        "s" => 1,
        _ => return None,
    };
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    number.checked_mul(seconds).filter(|seconds| *seconds <= MOST_SECONDS).map(Duration::from_secs)
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(i64::try_from(since.as_secs()).unwrap_or(0), 0).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A hundred years.
const MOST_SECONDS: u64 = 100 * 365 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_spans() {
        let time = UNIX_EPOCH + Duration::from_secs(1_794_803_405);
        assert_eq!(minute(time), "2026-11-16 04:30");
        assert_eq!(rfc3339(time), "2026-11-16T04:30:05Z");
        assert_eq!(day("2026-11-16").map(rfc3339).as_deref(), Some("2026-11-16T00:00:00Z"));
        assert_eq!(day("2026-11-31"), None);
        assert_eq!(day("yesterday"), None);
        assert_eq!(rounded(Duration::from_secs(3 * 86_400 + 5)), "3 days");
        assert_eq!(rounded(Duration::from_hours(1)), "1 hour");
        assert_eq!(rounded(Duration::ZERO), "0 seconds");
        assert_eq!(span("12h"), Some(Duration::from_hours(12)));
        for bad in ["", "d", "0d", "-1h", "1w", "1.5h", "99999999999d", "é"] {
            assert_eq!(span(bad), None, "{bad}");
        }
    }
}
