//! Short texts that were searched before and hold no secret.
//!
//! A client sends the same name and version with every call. A lookup costs less than another search.

use std::{
    collections::HashSet,
    sync::{PoisonError, RwLock},
};

use toolgate_secrets::Detector;

use super::redact::{RedactedText, RedactionAudience, redact_text};

/// Valid for one detector, because another one may find more.
#[derive(Debug, Default)]
pub struct CleanTexts(RwLock<HashSet<Box<str>>>);

impl CleanTexts {
    /// Like [`text_for_journal`](super::text_for_journal), which it calls for an unknown text.
    pub fn text_for_journal(&self, detector: &Detector, text: String) -> String {
        if self.0.read().unwrap_or_else(PoisonError::into_inner).contains(text.as_str()) {
            return text;
        }
        let RedactedText { text, findings, .. } = redact_text(detector, text, RedactionAudience::Journal);
        if findings.is_empty() && text.len() <= LONGEST {
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(text.as_str().into());
        }
        text
    }
}

/// Callers choose these texts, so both the number and the size are bounded.
const MOST: usize = 1_024;
const LONGEST: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_a_secret_is_redacted_every_time() {
        let (detector, clean) = (Detector::shipped().unwrap(), CleanTexts::default());
        let secret = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
        for text in ["bench", "1", &secret, &"x".repeat(LONGEST + 1)] {
            let shown = super::super::text_for_journal(&detector, text.to_owned());
            assert_eq!(shown.contains("[REDACTED]"), text == secret);
            for _ in 0..2 {
                assert_eq!(clean.text_for_journal(&detector, text.to_owned()), shown);
            }
        }
        assert_eq!(clean.0.read().unwrap().len(), 2);
    }

    #[test]
    fn number_of_known_texts_is_bounded() {
        let (detector, clean) = (Detector::shipped().unwrap(), CleanTexts::default());
        for number in 0..=MOST {
            clean.text_for_journal(&detector, number.to_string());
        }
        assert_eq!(clean.0.read().unwrap().len(), 1);
    }
}
