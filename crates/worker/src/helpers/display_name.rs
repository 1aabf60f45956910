//! The English names of languages, regions, scripts and currencies, from the Unicode CLDR.

use super::Answer;

/// `region US` becomes `United States`.
pub fn of(question: &str) -> Answer {
    NAMES
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .find(|(key, _)| *key == question)
        .map_or(Answer::Nothing, |(_, name)| Answer::Text(name.to_owned()))
}

/// A name a line: type and code, a tab, and the name.
const NAMES: &str = include_str!("display_name/names.tsv");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_type_and_code() {
        assert_eq!(of("region US"), Answer::Text("United States".to_owned()));
        assert_eq!(of("language pt-BR"), Answer::Text("Brazilian Portuguese".to_owned()));
        assert_eq!(of("script Hant"), Answer::Text("Traditional".to_owned()));
        assert_eq!(of("currency EUR"), Answer::Text("Euro".to_owned()));
        for unknown in ["", "region", "region us", "region US\tx", "region ZZZ", "US"] {
            assert_eq!(of(unknown), Answer::Nothing, "{unknown}");
        }
    }
}
