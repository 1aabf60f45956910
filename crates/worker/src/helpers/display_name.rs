//! English names of languages, regions, scripts and currencies, from the Unicode CLDR.

use super::HelperAnswer;

/// `region US` becomes `United States`.
pub fn of(question: &str) -> HelperAnswer {
    NAMES
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .find(|(key, _)| *key == question)
        .map_or(HelperAnswer::Nothing, |(_, name)| HelperAnswer::Text(name.to_owned()))
}

/// One name per line: type and code, a tab, the name.
const NAMES: &str = include_str!("display_name/names.tsv");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_type_and_code() {
        assert_eq!(of("region US"), HelperAnswer::Text("United States".to_owned()));
        assert_eq!(of("language pt-BR"), HelperAnswer::Text("Brazilian Portuguese".to_owned()));
        assert_eq!(of("script Hant"), HelperAnswer::Text("Traditional".to_owned()));
        assert_eq!(of("currency EUR"), HelperAnswer::Text("Euro".to_owned()));
        for unknown in ["", "region", "region us", "region US\tx", "region ZZZ", "US"] {
            assert_eq!(of(unknown), HelperAnswer::Nothing, "{unknown}");
        }
    }
}
