//! The time of a record in its canonical form.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};

/// Microseconds since 1970, UTC, up to the year 9999: `2026-11-16T03:59:31.123456Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    micros: i64,
}

impl Stamp {
    pub(crate) const EPOCH: Self = Self { micros: 0 };

    /// `None` beyond the year 9999. Times before 1970 count as 1970.
    pub(crate) fn of(time: SystemTime) -> Option<Self> {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).ok()?;
        Timestamp::from_microsecond(micros).ok().map(|_| Self { micros })
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let stamp = Self { micros: text.parse::<Timestamp>().ok()?.as_microsecond() };
        // Offsets, fewer digits and lower-case letters mean the same instant in another form.
        (stamp.micros >= 0 && stamp.text() == text).then_some(stamp)
    }

    pub(crate) fn text(self) -> String {
        let instant = Timestamp::from_microsecond(self.micros).unwrap_or_default();
        DateTimePrinter::new().precision(Some(6)).timestamp_to_string(&instant)
    }

    /// Days since 1970; cheaper to compare than file names.
    pub(crate) fn day(self) -> i64 {
        self.micros / MICROS_A_DAY
    }

    /// `2026-11-16`
    pub(crate) fn day_text(self) -> String {
        self.text().chars().take(DAY_LENGTH).collect()
    }

    /// The first instant of a day written `2026-11-16`.
    pub(crate) fn of_day(text: &str) -> Option<Self> {
        (text.len() == DAY_LENGTH).then(|| Self::parse(&format!("{text}T00:00:00.000000Z"))).flatten()
    }

    pub(crate) fn time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.micros.unsigned_abs())
    }
}

/// The time of a record, which never goes back, and the system time if that was earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordTime {
    /// Never before the stamp of an earlier record. Determines the file.
    pub(crate) stamp: Stamp,
    /// The system clock, if it was behind `stamp`.
    pub(crate) wall_clock: Option<Stamp>,
}

impl RecordTime {
    /// The time of a record after one that was written at `last`.
    pub(crate) fn after(last: Stamp, now: Stamp) -> Self {
        Self { stamp: now.max(last), wall_clock: (now < last).then_some(now) }
    }

    pub(crate) const fn at(stamp: Stamp) -> Self {
        Self { stamp, wall_clock: None }
    }

    /// The system time.
    pub(crate) fn real(self) -> Stamp {
        self.wall_clock.unwrap_or(self.stamp)
    }

    /// How far the clock was behind.
    pub(crate) fn behind(self) -> Duration {
        Duration::from_micros(self.stamp.micros.abs_diff(self.real().micros))
    }
}

/// The length of a stamp in a line.
pub(crate) const STAMP_LENGTH: usize = 27;
const DAY_LENGTH: usize = 10;
const MICROS_A_DAY: i64 = 24 * 60 * 60 * 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_one_spelling() {
        let text = "2026-11-16T03:59:31.123456Z";
        let stamp = Stamp::parse(text).unwrap();
        assert_eq!(stamp.text(), text);
        assert_eq!(text.len(), STAMP_LENGTH);
        assert_eq!(stamp.day_text(), "2026-11-16");
        assert_eq!(Stamp::of(stamp.time()), Some(stamp));
        assert_eq!(Stamp::of_day("2026-11-16").unwrap().day(), stamp.day());
        for other in [
            "2026-11-16T03:59:31Z",
            "2026-11-16T03:59:31.123456z",
            "2026-11-16 03:59:31.123456Z",
            "2026-11-16T03:59:31.123456+00",
            "2026-11-16T03:59:60.123456Z",
            "2026-13-16T03:59:31.123456Z",
            "1969-11-16T03:59:31.123456Z",
        ] {
            assert_eq!(Stamp::parse(other), None, "{other}");
        }
        assert_eq!(Stamp::of_day("2026-11-31"), None);
    }

    #[test]
    fn time_out_of_range_is_none_or_the_epoch() {
        assert_eq!(Stamp::of(UNIX_EPOCH - Duration::from_secs(5)), Some(Stamp::EPOCH));
        assert_eq!(Stamp::of(UNIX_EPOCH + Duration::from_secs(400_000_000_000)), None);
    }
}
