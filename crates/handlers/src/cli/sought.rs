//! Would what a search shows tell a caller a secret, letter by letter? A line whose secret is taken out still says that it was
//! found: who asks for `sk_live_a`, `sk_live_b` and so on learns the next letter by the answer. So a line with a secret in it is
//! no line of the answer, as if nothing had been found there.

use std::{borrow::Cow, ops::Range};

use toolgate_policy::Mask;
use toolgate_secrets::{Detector, Tier};

use super::{known::Known, plain::plain};

/// What a command line looks for in files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sought {
    /// Nothing, or nothing of a caller's choice.
    Nothing,
    /// Each line that is shown was found.
    Lines,
    /// Lines are shown around those that were found, in groups.
    Groups,
}

impl Sought {
    pub fn by(known: &Known, line: &[String]) -> Self {
        match (known.searches(line), line.iter().any(|element| shows_neighbours(element))) {
            (false, _) => Self::Nothing,
            (true, false) => Self::Lines,
            (true, true) => Self::Groups,
        }
    }

    /// The output without the lines that were, or may have been, found in a secret.
    pub fn without_secrets<'o>(self, stdout: &'o [u8], mask: &Mask, detector: &Detector) -> Cow<'o, [u8]> {
        let (text, between) = match self {
            Self::Nothing => return Cow::Borrowed(stdout),
            Self::Lines => (plain(stdout), ""),
            Self::Groups => (plain(stdout), SEPARATOR),
        };
        let found: Vec<_> =
            detector.scan(&text).into_iter().filter(|finding| finding.tier >= Tier::Probable).collect();
        let is_kept = |part: &Range<usize>| {
            let shown = text.get(part.clone()).unwrap_or_default();
            let has = |secret: &Range<usize>| secret.start < part.end && part.start < secret.end;
            !found.iter().any(|finding| has(&finding.span)) && mask.text(shown) == shown
        };
        let kept: Vec<&str> =
            self.parts(&text).into_iter().filter(is_kept).filter_map(|part| text.get(part)).collect();
        Cow::Owned(kept.join(between).into_bytes())
    }

    /// What is shown or not shown as a whole.
    fn parts(self, text: &str) -> Vec<Range<usize>> {
        let (mut parts, mut at, mut is_open) = (Vec::<Range<usize>>::new(), 0, false);
        for line in text.split_inclusive('\n') {
            let span = at..at + line.len();
            at = span.end;
            if self == Self::Groups && line == SEPARATOR {
                is_open = false;
                continue;
            }
            match parts.last_mut().filter(|_| is_open) {
                Some(group) => group.end = span.end,
                None => parts.push(span),
            }
            is_open = self == Self::Groups;
        }
        parts
    }
}

/// `-A 2`, `-rnC2`, `-3`, `--context=2`, and the whole function around a line.
fn shows_neighbours(element: &str) -> bool {
    let Some(letters) = element.strip_prefix('-') else { return false };
    match letters.strip_prefix('-') {
        Some(word) => ["after", "before", "context", "function"].iter().any(|start| word.starts_with(start)),
        None => letters.starts_with(|c: char| c.is_ascii_digit()) || letters.contains(['A', 'B', 'C', 'W']),
    }
}

/// Between groups of lines.
const SEPARATOR: &str = "--\n";
