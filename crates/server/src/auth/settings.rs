//! Who may prove who they are, and how? Plain settings; whoever reads the configuration fills them in.

use std::{collections::BTreeSet, fmt, path::PathBuf, sync::Arc, time::Duration};

use sha2::{Digest, Sha256};

use crate::auth::{fetch::Fetch, tokens::TokenVerifier};

/// With neither tokens nor issuers, and without the danger, nobody gets in.
#[derive(Default)]
pub struct AuthSettings {
    pub tokens: Option<Arc<dyn TokenVerifier>>,
    pub issuers: Vec<IssuerSettings>,
    /// How key sets are fetched; needed where an issuer has its keys at a URL.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// Whoever comes without a token is this caller. `None` is the rule.
    pub danger_anonymous: Option<Anonymous>,
    /// Whoever comes without a token is the one who started this process. `None` is the rule, and beside `danger_anonymous` it
    /// is refused.
    pub danger_local: Option<Local>,
    pub throttle: ThrottleSettings,
}

/// Somebody whose signed tokens are believed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IssuerSettings {
    /// Ours for them, part of every subject: lower-case letters, digits, `-` and `.`, at most 64. `issuer_name` makes one.
    pub name: String,
    /// Their `iss`, to the letter.
    pub issuer: String,
    /// Tokens must be for one of these.
    pub audiences: BTreeSet<String>,
    pub algorithms: BTreeSet<Algorithm>,
    pub keys: KeySettings,
    /// The claim that names the caller; `sub`, unless the issuer is odd.
    pub subject_claim: String,
    /// The claim with the permissions: a name, or a JSON pointer that starts with `/`. `scope` is always read too.
    pub permissions_claim: Option<String>,
    /// Who holds this permission may use the admin API. `None`: nobody of this issuer may.
    pub admin_permission: Option<String>,
    /// Tokens must carry all of these, among their permissions. Words as in RFC 6749, 3.3.
    pub required_scopes: BTreeSet<String>,
    /// How far clocks may be apart; at most ten minutes.
    pub clock_skew: Duration,
    /// How old keys from a URL may get before they are fetched again; a minute to a day. They serve for an hour longer
    /// while the URL is out of reach.
    pub refresh: Duration,
    /// What the metadata tells clients to ask for.
    pub scopes: Vec<String>,
}

/// A name for an issuer that has none of its own: always the same for one `iss`, never the same for two.
pub fn issuer_name(issuer: &str) -> String {
    let plain = issuer.split_once("://").map_or(issuer, |(_, rest)| rest).to_ascii_lowercase();
    let readable: String = plain
        .chars()
        .take(READABLE_NAME)
        .map(|character| if is_name_character(character) { character } else { '-' })
        .collect();
    let unique =
        Sha256::digest(issuer).iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{}-{unique:016x}", readable.trim_matches('-'))
}

/// No colon, for that ends the name in a subject.
pub(crate) const fn is_name_character(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || matches!(character, '-' | '.')
}

/// Where an issuer's keys are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeySettings {
    /// Shared with the issuer; for the `HS…` algorithms and for nothing else.
    Secret(Secret),
    Pem(Vec<PemKey>),
    JwksFile(PathBuf),
    /// `https`, or `http` on this very machine.
    JwksUrl(String),
}

/// A public key in PEM form (`PUBLIC KEY` or `RSA PUBLIC KEY`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PemKey {
    pub kid: Option<String>,
    pub pem: String,
}

/// Bytes that no output shows. Compared only with other settings, never with what somebody sent.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Whom to take everybody without a token for. Never an admin.
#[derive(Clone, Debug)]
pub struct Anonymous {
    pub name: String,
    pub permissions: BTreeSet<String>,
}

/// The caller of a gateway whose agents run by themselves. Never an admin.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub permissions: BTreeSet<String>,
}

/// How many wrong tokens an address may try.
#[derive(Clone, Copy, Debug)]
pub struct ThrottleSettings {
    pub failures: u32,
    pub window: Duration,
    /// How many addresses are remembered.
    pub addresses: usize,
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        Self { failures: 20, window: Duration::from_mins(1), addresses: 4096 }
    }
}

/// The signature algorithms that can be configured. `none` is not one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Algorithm {
    Hs256,
    Hs384,
    Hs512,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    pub const ALL: [Self; 12] = [
        Self::Hs256,
        Self::Hs384,
        Self::Hs512,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// As in a token's header (RFC 7518, RFC 8037).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl fmt::Debug for AuthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthSettings")
            .field("tokens", &self.tokens.is_some())
            .field("issuers", &self.issuers)
            .field("fetch", &self.fetch.is_some())
            .field("danger_anonymous", &self.danger_anonymous)
            .field("danger_local", &self.danger_local)
            .field("throttle", &self.throttle)
            .finish()
    }
}

/// Settings that cannot be put in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuthSettingsError(pub(crate) String);

impl fmt::Display for AuthSettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AuthSettingsError {}

const READABLE_NAME: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuers_own_name_is_readable_unique_and_sound() {
        assert_eq!(issuer_name("https://login.example/realms/a"), "login.example-realms-a-b72089307b135087");
        let alike = [
            "https://login.example",
            "https://login.example/",
            "http://login.example",
            "LOGIN.example",
            "",
            "ä:ö",
        ];
        let names: BTreeSet<String> = alike.iter().map(|issuer| issuer_name(issuer)).collect();
        assert_eq!(names.len(), alike.len());
        assert!(
            names.iter().all(|name| name.len() <= 64 && name.chars().all(is_name_character)),
            "{names:?}"
        );
    }

    #[test]
    fn an_algorithm_is_known_by_its_name() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
    }
}
