//! The part of a line that a finding is about, short enough for a screen however long the line is.

use toolgate_spec::SourceSpan;
use unicode_width::UnicodeWidthChar;

use crate::terminal::{push_visible, width};

/// One line in three parts, already escaped for the terminal. The finding is about the middle part.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Excerpt {
    pub before: String,
    pub marked: String,
    pub after: String,
}

impl Excerpt {
    /// Hides text inside `secrets`, because reports end up in logs that more people read than the document.
    pub fn new(text: &str, span: SourceSpan, secrets: &[SourceSpan]) -> Self {
        let start = floor(text, span.start.min(text.len()));
        let end = floor(text, span.end.clamp(start, text.len()));
        let (before, rest) = text.split_at(start);
        let marked = rest.get(..end - start).unwrap_or(rest);
        let after = text.get(end..).unwrap_or_default();
        let shown = ExcerptWriter { secrets };
        let spans_lines = marked.contains('\n');
        // Show a short line whole.
        let (around, most) = if line_fits(before, rest) { (SCREEN, SCREEN) } else { (AROUND, MARKED) };
        let (_, marked_whole) = head(marked, most);
        // A marked part that was cut or continues on the next line has nothing after it.
        let after = if spans_lines || !marked_whole { String::new() } else { shown.head(after, end, around) };
        Self { before: shown.tail(before, around), marked: shown.head(marked, start, most), after }
    }
}

impl Excerpt {
    /// Shortens the excerpt to this many columns. The marked part stays visible, and `…` replaces the rest.
    pub fn within(&self, columns: usize) -> Self {
        let marked = start(&self.marked, columns / 2);
        let left = columns.saturating_sub(width(&marked));
        let before = end(&self.before, left.saturating_sub(width(&self.after).min(left / 3)));
        let after = start(&self.after, left.saturating_sub(width(&before)));
        Self { before, marked, after }
    }
}

/// The beginning of a text in at most `most` columns.
fn start(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if width(&kept) + letter.width().unwrap_or(0) + 1 > most {
            break;
        }
        kept.push(letter);
    }
    kept + if most > 0 { "…" } else { "" }
}

/// The end of a text in at most `most` columns.
fn end(text: &str, most: usize) -> String {
    let turned: String = text.chars().rev().collect();
    start(&turned, most).chars().rev().collect()
}

/// Escapes text and hides secrets.
struct ExcerptWriter<'s> {
    secrets: &'s [SourceSpan],
}

impl ExcerptWriter<'_> {
    /// The start of a text at `offset`, up to the end of its line.
    fn head(&self, text: &str, offset: usize, most: usize) -> String {
        let (text, whole) = head(text, most);
        let mut shown = String::with_capacity(text.len());
        for (at, character) in text.char_indices() {
            self.push(&mut shown, offset + at, character);
        }
        if !whole {
            shown.push('…');
        }
        shown
    }

    /// The end of the line up to here, at most `most` characters.
    fn tail(&self, text: &str, most: usize) -> String {
        let in_line = |(_, character): &(usize, char)| !matches!(character, '\n' | '\r');
        let mut characters: Vec<(usize, char)> =
            text.char_indices().rev().take(most + 1).take_while(in_line).collect();
        let cut = characters.len() > most;
        characters.truncate(most);
        let mut shown = String::from(if cut { "…" } else { "" });
        for (at, character) in characters.into_iter().rev() {
            self.push(&mut shown, at, character);
        }
        shown
    }

    /// Tabs become spaces; other control and invisible characters become escapes.
    fn push(&self, shown: &mut String, at: usize, character: char) {
        match character {
            '\t' => shown.push_str("    "),
            // Keep quotes: they show where the secret begins and ends.
            '"' => shown.push('"'),
            _ if self.secrets.iter().any(|secret| secret.range().contains(&at)) => shown.push('*'),
            other => push_visible(shown, other),
        }
    }
}

fn line_fits(before: &str, rest: &str) -> bool {
    let is_inside = |character: &char| !matches!(character, '\n' | '\r');
    let left = before.chars().rev().take(SCREEN + 1).take_while(is_inside).count();
    left + rest.chars().take(SCREEN + 1).take_while(is_inside).count() <= SCREEN
}

/// The rest of the line, up to `most` characters, and whether it was complete.
fn head(text: &str, most: usize) -> (&str, bool) {
    let mut end = 0;
    for (count, (at, character)) in text.char_indices().enumerate() {
        if matches!(character, '\n' | '\r') {
            return (text.get(..at).unwrap_or_default(), true);
        }
        if count == most {
            return (text.get(..at).unwrap_or_default(), false);
        }
        end = at + character.len_utf8();
    }
    (text.get(..end).unwrap_or_default(), true)
}

fn floor(text: &str, mut offset: usize) -> usize {
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Characters of a line that need no cropping.
const SCREEN: usize = 112;

/// Characters kept on either side of the marked part.
const AROUND: usize = 48;

/// Characters kept of the marked part.
const MARKED: usize = 64;

#[cfg(test)]
mod tests {
    use toolgate_spec::SourceSpan;

    use super::Excerpt;

    #[track_caller]
    fn check(text: &str, start: usize, end: usize, expect: (&str, &str, &str)) {
        let excerpt = Excerpt::new(text, SourceSpan::new(start, end), &[]);
        assert_eq!((excerpt.before.as_str(), excerpt.marked.as_str(), excerpt.after.as_str()), expect);
    }

    #[test]
    fn excerpt_has_one_line() {
        check("{\n  \"a\": 1,\r\n}", 4, 7, ("  ", "\"a\"", ": 1,"));
        check("{\n  \"a\": {\n}", 9, 12, ("  \"a\": ", "{", ""));
        check("", 0, 0, ("", "", ""));
        check("é", 1, 9, ("", "é", ""));
    }

    #[test]
    fn long_lines_are_cropped() {
        let text = format!("{}X{}", "a".repeat(10_000), "b".repeat(10_000));
        let excerpt = Excerpt::new(&text, SourceSpan::new(10_000, 10_001), &[]);
        assert_eq!(excerpt.before, format!("…{}", "a".repeat(48)));
        assert_eq!((excerpt.marked.as_str(), excerpt.after.len()), ("X", 48 + "…".len()));
        let whole = Excerpt::new(&text, SourceSpan::new(0, text.len()), &[]);
        assert_eq!((whole.marked, whole.after), (format!("{}…", "a".repeat(64)), String::new()));
    }

    #[test]
    fn narrow_excerpts_keep_the_marked_part() {
        let text = "  \"sandboxOverrides\": { \"networkmode\": \"open\", \"hostsAllow\": [\"http://api.example.com\"] }";
        let at = text.find("\"networkmode\"").unwrap();
        let whole = Excerpt::new(text, SourceSpan::new(at, at + 13), &[]);
        assert_eq!(whole.within(200), whole);
        let narrow = whole.within(40);
        assert_eq!(narrow.marked, "\"networkmode\"");
        let shown = format!("{}{}{}", narrow.before, narrow.marked, narrow.after);
        assert!(shown.chars().count() <= 40 && shown.starts_with('…') && shown.ends_with('…'), "{shown}");
    }

    #[test]
    fn secrets_are_hidden() {
        let text = "{\"key\": \"hunter2\", \"b\": 1}";
        let secret = SourceSpan::new(8, 17);
        let itself = Excerpt::new(text, secret, &[secret]);
        assert_eq!((itself.before.as_str(), itself.marked.as_str()), ("{\"key\": ", "\"*******\""));
        let neighbour = Excerpt::new(text, SourceSpan::new(19, 22), &[secret]);
        assert_eq!(neighbour.before, "{\"key\": \"*******\", ");
    }

    #[test]
    fn terminal_escapes_in_documents_are_escaped() {
        check("\u{1b}[31m\u{202e}x", 0, 1, ("", "\\u{1b}", "[31m\\u{202e}x"));
    }
}
