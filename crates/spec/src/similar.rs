//! Suggests similar words: "did you mean …?"

/// The closest known word within two edits, if it is close enough.
pub(crate) fn closest<'known>(word: &str, known: impl Iterator<Item = &'known str>) -> Option<&'known str> {
    if word.len() > 64 {
        return None;
    }
    known
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= 2 && *edits * 2 < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Suggests the closest known word, or returns the given text.
pub(crate) fn remedy<'known>(
    word: &str,
    known: impl Iterator<Item = &'known str>,
    otherwise: &str,
) -> String {
    closest(word, known).map_or_else(|| otherwise.to_owned(), |close| format!("did you mean `{close}`?"))
}

/// The edit distance between two words, ignoring case. A swap of neighbours counts as one edit.
pub fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best =
                (at(&last, j) + usize::from(from != to)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            if i > 0 && j > 0 && a.get(i - 1) == Some(to) && b.get(j - 1) == Some(from) {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn only_close_words_are_suggested() {
        let known = ["fileRead", "fileWrite", "networkMode"];
        assert_eq!(closest("fileread", known.into_iter()), Some("fileRead"));
        assert_eq!(closest("netwrokMode", known.into_iter()), Some("networkMode"));
        assert_eq!(closest("timeout", known.into_iter()), None);
    }
}
