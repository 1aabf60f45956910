//! "Did you mean …?" suggestions for codes, schema names and tool names.

use toolgate_spec::edit_distance;

/// The closest known word, if at most a third of its letters differ.
pub fn closest<'known>(word: &str, known: impl IntoIterator<Item = &'known str>) -> Option<&'known str> {
    if word.len() > LONGEST {
        return None;
    }
    known
        .into_iter()
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(edits, candidate)| edits * 3 <= candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

const LONGEST: usize = 128;

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn suggests_only_close_words() {
        let known = ["SPEC_PARSE", "LINT_SECRET_TEXT"];
        assert_eq!(closest("spec_prase", known), Some("SPEC_PARSE"));
        assert_eq!(closest("LINT_SECRET", known), Some("LINT_SECRET_TEXT"));
        assert_eq!(closest("kitten", known), None);
    }
}
