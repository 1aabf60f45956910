//! English time zone names of the Unicode CLDR, for zones that have one today.

/// The names of a family of zones.
#[derive(Debug, PartialEq)]
pub struct ZoneNames {
    pub standard: &'static str,
    /// Empty if the family has no daylight saving time.
    pub daylight: &'static str,
    /// Empty if English readers are shown the offset.
    pub short_standard: &'static str,
    pub short_daylight: &'static str,
}

/// Returns the names for a zone in the database's spelling.
pub fn names_of(zone: &str) -> Option<ZoneNames> {
    FAMILIES.lines().find_map(|line| {
        let mut cells = line.split('\t');
        let mut next = || cells.next().unwrap_or_default();
        let names =
            ZoneNames { standard: next(), daylight: next(), short_standard: next(), short_daylight: next() };
        next().split(' ').any(|member| member == zone).then_some(names)
    })
}

/// One family per line: its four names and its zones, separated by tabs.
const FAMILIES: &str = include_str!("names.tsv");
