//! What do people call the time of a zone? The English names of the Unicode CLDR, for the zones that have one today.

/// What a family of zones calls its time.
#[derive(Debug, PartialEq)]
pub struct Names {
    pub standard: &'static str,
    /// Empty where no zone of the family has a summer time.
    pub daylight: &'static str,
    /// Empty where an English reader is shown the offset.
    pub short_standard: &'static str,
    pub short_daylight: &'static str,
}

/// The names for a zone as the database spells it.
pub fn names_of(zone: &str) -> Option<Names> {
    FAMILIES.lines().find_map(|line| {
        let mut cells = line.split('\t');
        let mut next = || cells.next().unwrap_or_default();
        let names =
            Names { standard: next(), daylight: next(), short_standard: next(), short_daylight: next() };
        next().split(' ').any(|member| member == zone).then_some(names)
    })
}

/// A family a line: its four names and its zones, between tabs.
const FAMILIES: &str = include_str!("names.tsv");
