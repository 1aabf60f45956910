//! What was found, how sure are we, and in which disguise? Never what the secret is.

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use serde::Deserialize;

use crate::marker::marker;

/// How sure we are. Ordered: what is done about `Probable` is done about `Definite` too.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Random-looking, and a telling word stands before it. Worth a warning.
    Possible,
    /// Used as a secret: a password in an address, an assignment, a bearer token.
    Probable,
    /// Its structure proves it: a provider's prefix, length, checksum, or a private key block.
    Definite,
}

impl Tier {
    /// Stable: stands in journals and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Probable => "probable",
            Self::Definite => "definite",
        }
    }
}

/// How the secret was written.
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
    /// Broken by a line end or by the joint of two string literals.
    Split,
}

impl Encoding {
    /// Stable: stands in journals and documents.
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

/// A place where a secret stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    pub tier: Tier,
    /// `token`, `password`, `private-key` …
    pub kind: Arc<str>,
    pub provider: Arc<str>,
    /// The id of the rule that found it.
    pub rule: Arc<str>,
    /// In bytes of the text that was scanned; begins and ends between characters.
    pub span: Range<usize>,
    pub encoding: Encoding,
}

impl Finding {
    /// What stands in its place where it is taken out.
    pub fn mark(&self) -> String {
        marker(&self.kind, &self.provider)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {} ({})", self.tier.name(), self.kind, self.provider, self.encoding.name())
    }
}

/// A text without its secrets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Redacted<'t> {
    /// Borrowed when nothing was taken out.
    pub text: Cow<'t, str>,
    /// What was taken out; the spans are those of the text before.
    pub findings: Vec<Finding>,
    /// How much was seen that is less sure than what was asked for: it stays, unless it lies in something surer.
    pub less_sure: usize,
}
