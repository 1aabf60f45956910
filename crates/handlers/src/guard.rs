//! May this leave with a request? Not if it holds a secret that was not lent to the call.

use std::{borrow::Cow, sync::Arc};

use toolgate_egress::{BodyGuard, Leaving};
use toolgate_gate::Survey;
use toolgate_secrets::{Detector, Tier};

/// Looks through what one call sends out.
pub struct SecretGuard {
    detector: Arc<Detector>,
    /// The values of the tool's own secrets, which it was given to send, plain and as a URL spells them.
    lent: Vec<String>,
    refuses_from: Tier,
}

impl SecretGuard {
    /// What a person has agreed to send, although it may be a secret, is let through unless it is certainly one.
    pub fn new(detector: &Arc<Detector>, lent: &[String], survey: &Survey) -> Self {
        let was_asked = survey.questions.iter().any(|question| question.source == "secret");
        let refuses_from = if was_asked { Tier::Definite } else { Tier::Probable };
        let lent = lent.iter().filter(|secret| secret.len() >= SHORTEST);
        let lent = lent.flat_map(|secret| [secret.clone(), url_encoded(secret)]).collect();
        Self { detector: Arc::clone(detector), lent, refuses_from }
    }

    /// A credential is recognised by what stands before it too, so that a lent one is put out of sight with as much of
    /// its surroundings as a mark needs.
    fn without_lent<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.lent.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let hidden = self.lent.iter().fold(text, |text, secret| text.replace(secret.as_str(), LENT));
        Cow::Owned(hidden.into_bytes())
    }
}

impl BodyGuard for SecretGuard {
    fn judge(&self, leaving: &Leaving<'_>) -> Option<String> {
        let finding = self.detector.contains(&self.without_lent(leaving.bytes), self.refuses_from)?;
        Some(format!("it holds a {} of {}", finding.kind, finding.provider))
    }
}

fn url_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            other => drop(write!(encoded, "%{other:02X}")),
        }
        encoded
    })
}

/// Too short to be taken for anything by a rule.
const LENT: &str = "(lent)";
const SHORTEST: usize = 4;
