//! Converts byte offsets to lines and columns in one pass over the text.

use std::collections::BTreeMap;

use toolgate_spec::{Finding, SourcePosition, SourceSpan};

use super::{Excerpt, FindingLocation, Reported};

/// Adds locations and excerpts to findings. A finding without a span is about the whole file. Excerpts hide the spans of
/// `secrets`.
pub fn report(
    file: &str,
    text: &str,
    findings: Vec<(Option<String>, Finding)>,
    secrets: &[SourceSpan],
) -> Vec<Reported> {
    let offsets =
        findings.iter().filter_map(|(_, finding)| finding.span).flat_map(|span| [span.start, span.end]);
    let positions = positions(text, offsets);
    findings
        .into_iter()
        .map(|(tool, finding)| {
            let location = finding.span.and_then(|span| {
                let start = *positions.get(&span.start)?;
                let end = *positions.get(&span.end)?;
                Some(FindingLocation { start, end, excerpt: Excerpt::new(text, span, &near(span, secrets)) })
            });
            Reported { file: file.to_owned(), tool, finding, location }
        })
        .collect()
}

/// The secrets close enough to appear in an excerpt.
fn near(span: SourceSpan, secrets: &[SourceSpan]) -> Vec<SourceSpan> {
    let (from, to) = (span.start.saturating_sub(REACH), span.start.saturating_add(REACH));
    secrets.iter().copied().filter(|secret| secret.start < to && from < secret.end).collect()
}

fn positions(text: &str, offsets: impl Iterator<Item = usize>) -> BTreeMap<usize, SourcePosition> {
    let mut positions: BTreeMap<usize, SourcePosition> =
        offsets.map(|offset| (offset, SourcePosition { line: 1, column: 1 })).collect();
    let mut wanted = positions.iter_mut().peekable();
    let mut here = SourcePosition { line: 1, column: 1 };
    for (offset, character) in text.char_indices() {
        while let Some((_, position)) = wanted.next_if(|(wanted, _)| **wanted <= offset) {
            *position = here;
        }
        if wanted.peek().is_none() {
            break;
        }
        here = match character {
            '\n' => SourcePosition { line: here.line + 1, column: 1 },
            _ => SourcePosition { line: here.line, column: here.column + 1 },
        };
    }
    wanted.for_each(|(_, position)| *position = here);
    positions
}

/// In bytes; more than an excerpt shows on either side.
const REACH: usize = 2048;

#[cfg(test)]
mod tests {
    use toolgate_spec::{LineIndex, SourcePosition};

    use super::positions;

    #[test]
    fn positions_match_those_of_the_spec_crate() {
        let text = "{\n  \"é\": 1,\r\n\n  \"b\": \"漢字\"\n}";
        let offsets: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let found = positions(text, offsets.iter().copied());
        let index = LineIndex::new(text);
        for offset in offsets {
            assert_eq!(found[&offset], index.position(offset), "at {offset}");
        }
    }

    #[test]
    fn offset_beyond_the_text_maps_to_its_end() {
        assert_eq!(positions("ab", [9].into_iter())[&9], SourcePosition { line: 1, column: 3 });
    }
}
