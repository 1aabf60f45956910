//! "Did you mean …?" for words that are ours: codes, schema names, tools of a bundle.

/// The closest known word, if one is near enough to be meant: at most a third of its letters differ.
pub fn closest<'known>(word: &str, known: impl IntoIterator<Item = &'known str>) -> Option<&'known str> {
    if word.len() > LONGEST {
        return None;
    }
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(edits, candidate)| edits * 3 <= candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance without regard to case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, from) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        let mut next = vec![left];
        for (to, up) in b.iter().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(from != *to)).min(up + 1).min(left + 1);
            diagonal = *up;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

const LONGEST: usize = 128;

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn suggests_what_was_probably_meant_and_nothing_else() {
        let known = ["SPEC_PARSE", "LINT_SECRET_TEXT"];
        assert_eq!(closest("spec_prase", known), Some("SPEC_PARSE"));
        assert_eq!(closest("LINT_SECRET", known), Some("LINT_SECRET_TEXT"));
        assert_eq!(closest("kitten", known), None);
    }
}
