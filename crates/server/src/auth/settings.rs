//! Settings of authentication. The host crate fills them in from the configuration.

use std::{collections::BTreeSet, fmt, path::PathBuf, sync::Arc, time::Duration};

use sha2::{Digest, Sha256};

use crate::auth::{fetch::Fetch, tokens::TokenVerifier};

/// Without tokens, issuers and the `danger_` settings, every request is rejected.
#[derive(Default)]
pub struct AuthSettings {
    pub tokens: Option<Arc<dyn TokenVerifier>>,
    pub issuers: Vec<IssuerSettings>,
    /// Fetches key sets. Required if an issuer has its keys at a URL.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// The caller of requests without a token. Normally `None`.
    pub danger_anonymous: Option<Anonymous>,
    /// Requests without a token come from the user who started the process. Normally `None`; excludes `danger_anonymous`.
    pub danger_local: Option<Local>,
    pub throttle: ThrottleSettings,
}

/// An issuer of accepted JWTs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IssuerSettings {
    /// Our name for the issuer, part of every subject: at most 64 lower-case letters, digits, `-` and `.`. See `issuer_name`.
    pub name: String,
    /// The exact `iss`.
    pub issuer: String,
    /// Accepted values of `aud`.
    pub audiences: BTreeSet<String>,
    pub algorithms: BTreeSet<Algorithm>,
    pub keys: KeySettings,
    /// The claim that names the caller; usually `sub`.
    pub subject_claim: String,
    /// The claim with the permissions: a name or a JSON pointer. `scope` is always read as well.
    pub permissions_claim: Option<String>,
    /// Callers with this permission may use the admin API. `None`: no caller of this issuer may.
    pub admin_permission: Option<String>,
    /// Tokens must have all of these scopes (RFC 6749, 3.3) among their permissions.
    pub required_scopes: BTreeSet<String>,
    /// Tolerated clock difference; at most ten minutes.
    pub clock_skew: Duration,
    /// Age at which keys from a URL are fetched again; a minute to a day. They are used for one more hour if the URL fails.
    pub refresh: Duration,
    /// Scopes that the metadata document offers to clients.
    pub scopes: Vec<String>,
}

/// A default name for an issuer: stable and unique for each `iss`.
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

/// No colon, because it ends the name in a subject.
pub(crate) const fn is_name_character(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || matches!(character, '-' | '.')
}

/// The source of an issuer's keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KeySettings {
    /// A secret shared with the issuer, for the `HS…` algorithms only.
    Secret(Secret),
    Pem(Vec<PemKey>),
    JwksFile(PathBuf),
    /// `https`, or `http` to this machine.
    JwksUrl(String),
}

/// A public key in PEM form (`PUBLIC KEY` or `RSA PUBLIC KEY`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PemKey {
    pub kid: Option<String>,
    pub pem: String,
}

/// Bytes that are never printed. Compared only with other settings, so not in constant time.
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

/// The caller of all requests without a token. Never an admin.
#[derive(Clone, Debug)]
pub struct Anonymous {
    pub name: String,
    pub permissions: BTreeSet<String>,
}

/// The local user as the caller of requests without a token. Never an admin.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub permissions: BTreeSet<String>,
}

/// Limit of invalid tokens per address.
#[derive(Clone, Copy, Debug)]
pub struct ThrottleSettings {
    pub failures: u32,
    pub window: Duration,
    /// Size of the table of addresses.
    pub addresses: usize,
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        Self { failures: 20, window: Duration::from_mins(1), addresses: 4096 }
    }
}

/// The supported signature algorithms. `none` is not supported.
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

    /// The name in a token's header (RFC 7518, RFC 8037).
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

/// Invalid settings.
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
    fn default_issuer_names_are_readable_unique_and_valid() {
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
    fn algorithms_are_found_by_name() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
    }
}
