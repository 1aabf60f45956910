//! Quotes text of a document for its author: short, with invisible characters made visible.

/// At most [`MOST`] characters. Invisible characters and cursor movements become `U+XXXX`.
pub(crate) fn shown(text: &str) -> String {
    let mut quoted = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == MOST {
            quoted.push('…');
            break;
        }
        match character {
            '\n' | '\t' => quoted.push(' '),
            '`' => quoted.push('\''),
            hidden if is_unseen(hidden) => quoted.push_str(&code_point(hidden)),
            plain => quoted.push(plain),
        }
    }
    quoted
}

pub(super) fn code_point(character: char) -> String {
    format!("U+{:04X}", u32::from(character))
}

/// Joins distinct items in order, at most five.
pub(super) fn listed(items: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for item in items {
        if !seen.contains(&item.as_str()) {
            seen.push(item);
        }
    }
    let more = seen.len().saturating_sub(MOST_ITEMS);
    seen.truncate(MOST_ITEMS);
    let list = seen.join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

fn is_unseen(character: char) -> bool {
    character.is_control()
        || super::poison::characters::is_invisible(character)
        || super::poison::characters::is_bidi(character)
        || matches!(character, '\u{2028}' | '\u{2029}')
}

const MOST: usize = 60;
const MOST_ITEMS: usize = 5;

#[cfg(test)]
mod tests {
    use super::{listed, shown};

    #[test]
    fn quotes_are_short_and_visible() {
        assert_eq!(shown("a\u{200b}b\u{202e}c\u{1b}[0m`"), "aU+200BbU+202EcU+001B[0m'");
        assert_eq!(shown(&"x".repeat(200)).chars().count(), 61);
        let items: Vec<String> = ["a", "b", "a", "c", "d", "e", "f"].map(str::to_owned).to_vec();
        assert_eq!(listed(&items), "a, b, c, d, e and 1 more");
    }
}
