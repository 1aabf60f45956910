//! Matches names with `*`. Used for paths, hosts and fields; never exponential.

/// `*` matches any text, including none; every other character matches itself.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at_pattern, mut at_text) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while at_text < text.len() {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                retry = Some((at_pattern + 1, at_text));
                at_pattern += 1;
            }
            Some(byte) if text.get(at_text) == Some(byte) => {
                at_pattern += 1;
                at_text += 1;
            }
            _ => {
                let Some((after, from)) = retry else { return false };
                retry = Some((after, from + 1));
                (at_pattern, at_text) = (after, from + 1);
            }
        }
    }
    pattern.get(at_pattern..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn star_matches_any_text() {
        for (pattern, text) in [("*", ""), ("id_*", "id_rsa"), ("*a*b", "xaxxb"), ("a*", "a"), ("**", "x")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a*b", "a"), ("id_*", "xid_"), ("*a", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
