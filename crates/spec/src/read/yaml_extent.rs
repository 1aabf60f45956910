//! Finds the end of a YAML node on its first line. The parser reports only where a node begins.

/// The kind and context of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NodeShape {
    /// A string, number or similar; otherwise a list or map.
    pub is_scalar: bool,
    /// Inside of `[…]` or `{…}`, where `,` and brackets end a plain text.
    pub in_flow: bool,
}

/// The length of the node, given its line from the start of the node.
pub(super) fn length(line: &str, shape: NodeShape) -> usize {
    let near = line.char_indices().take(MOST);
    let found = match line.chars().next() {
        Some(quote @ ('"' | '\'')) => quoted(line, quote),
        Some('[' | '{') => bracketed(near),
        _ if shape.is_scalar => Some(plain(line, shape.in_flow)),
        _ => Some(without_comment(line)),
    };
    found.unwrap_or_else(|| without_comment(line))
}

/// Up to the closing quote; `None` if it is on another line.
fn quoted(line: &str, quote: char) -> Option<usize> {
    let mut letters = line.char_indices().skip(1).take(MOST).peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote == '"' => drop(letters.next()),
            // Two single quotes are an escaped quote.
            '\'' if quote == '\'' && letters.next_if(|(_, next)| *next == '\'').is_some() => {}
            other if other == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Up to the bracket that closes the first one; `None` if it is on another line.
fn bracketed(letters: impl Iterator<Item = (usize, char)>) -> Option<usize> {
    let (mut depth, mut inside, mut before) = (0_usize, None, ' ');
    for (at, letter) in letters {
        match (inside, letter) {
            (Some(quote), _) if letter == quote && !(quote == '"' && before == '\\') => inside = None,
            // Inside plain text a quote is an ordinary character.
            (None, '"' | '\'') if matches!(before, ' ' | ',' | '[' | '{' | ':') => inside = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        before = letter;
    }
    None
}

/// Up to a comment, the colon of a key, or the end of text in brackets.
fn plain(line: &str, in_flow: bool) -> usize {
    let bytes = line.as_bytes();
    let is_gap =
        |byte: Option<&u8>| byte.is_none_or(|byte| matches!(byte, b' ' | b'\t' | b',' | b']' | b'}'));
    let ends = |(at, byte): &(usize, &u8)| match byte {
        b':' => is_gap(bytes.get(at + 1)),
        b',' | b']' | b'}' => in_flow,
        b'#' => *at > 0 && matches!(bytes.get(at - 1), Some(b' ' | b'\t')),
        _ => false,
    };
    let end = bytes.iter().enumerate().take(MOST).find(ends).map_or(line.len(), |(at, _)| at);
    line.get(..end).unwrap_or(line).trim_end().len()
}

fn without_comment(line: &str) -> usize {
    let comment = line.get(..line.len().min(MOST)).and_then(|near| near.find(" #"));
    line.get(..comment.unwrap_or(line.len())).unwrap_or(line).trim_end().len()
}

/// The maximum number of bytes or characters to scan: a line can have megabytes and many nodes.
const MOST: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, is_scalar: bool, in_flow: bool, expect: &str) {
        assert_eq!(&line[..length(line, NodeShape { is_scalar, in_flow })], expect);
    }

    #[test]
    fn nodes_end_before_comments_and_neighbours() {
        check("STRING     # comment", true, false, "STRING");
        check("a#b, c] d  ", true, false, "a#b, c] d");
        check("blockedHosts: ['*']", true, false, "blockedHosts");
        check("http://x:1/y", true, false, "http://x:1/y");
        check("\"http://x y\"  , b ]", true, true, "\"http://x y\"");
        check("\"a\\\"b\" # c", true, false, "\"a\\\"b\"");
        check("'it''s' ]", true, true, "'it''s'");
        check("b.example.com ]", true, true, "b.example.com");
        check("x: 1}", true, true, "x");
        check("[a, \"]\", {b: 1}] # c", false, false, "[a, \"]\", {b: 1}]");
        check("{open: [1,", false, false, "{open: [1,");
        check("first: 1 # c", false, false, "first: 1");
        check("\"open", true, false, "\"open");
        check("", true, false, "");
        let long = format!("{} # c", "x".repeat(2_000));
        assert!(length(&long, NodeShape { is_scalar: true, in_flow: false }) >= 2_000);
    }
}
