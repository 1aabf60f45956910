//! Findings: kind, certainty and encoding of a secret, never its value.

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use serde::Deserialize;

use crate::marker::marker;

/// The certainty of a finding. Ordered: an action for `Probable` also applies to `Definite`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Random-looking text after a keyword. Worth a warning.
    Possible,
    /// Used as a secret: a password in a URL, an assignment, a bearer token.
    Probable,
    /// Proven by its structure: a provider's prefix, length, checksum, or a private key block.
    Definite,
}

impl Tier {
    /// Stable: used in journals and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Probable => "probable",
            Self::Definite => "definite",
        }
    }
}

/// How the secret was encoded.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Encoding {
    Plain,
    /// In either alphabet, at any alignment.
    Base64,
    Hex,
    /// `%2D`.
    Url,
    /// `\u002d`, `\x2d` or `\/`.
    Escape,
    /// `&#45;`.
    Entity,
    /// Characters that look like ASCII, or invisible ones in between.
    LookAlike,
    /// `g h p _`.
    Spaced,
    /// Broken by a line end or by two concatenated string literals.
    Split,
}

impl Encoding {
    /// Stable: used in journals and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Base64 => "base64",
            Self::Hex => "hex",
            Self::Url => "url",
            Self::Escape => "escape",
            Self::Entity => "entity",
            Self::LookAlike => "look-alike",
            Self::Spaced => "spaced",
            Self::Split => "split",
        }
    }
}

/// A secret in a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SecretFinding {
    pub tier: Tier,
    /// `token`, `password`, `private-key` …
    pub kind: Arc<str>,
    pub provider: Arc<str>,
    /// The id of the rule that found it.
    pub rule: Arc<str>,
    /// In bytes of the scanned text; on character boundaries.
    pub span: Range<usize>,
    pub encoding: Encoding,
}

impl SecretFinding {
    /// The redaction marker that replaces it.
    pub fn mark(&self) -> String {
        marker(&self.kind, &self.provider)
    }
}

impl fmt::Display for SecretFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {} ({})", self.tier.name(), self.kind, self.provider, self.encoding.name())
    }
}

/// A redacted text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Redacted<'t> {
    /// Borrowed if nothing was redacted.
    pub text: Cow<'t, str>,
    /// The redacted secrets, with spans of the original text.
    pub findings: Vec<SecretFinding>,
    /// The number of findings below the requested tier. They stay, unless they overlap a more certain one.
    pub less_sure: usize,
}
