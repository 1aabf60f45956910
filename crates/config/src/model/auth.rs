//! Authentication settings.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::quantity::duration_of;

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    pub tokens: bool,
    /// Danger: accepts callers without a token. INVARIANT: absent unless the server listens on loopback.
    pub anonymous: Option<AnonymousAccess>,
    /// INVARIANT: issuer names are unique.
    pub jwt: Vec<JwtIssuer>,
    pub local: LocalCaller,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AnonymousAccess {
    pub permissions: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct JwtIssuer {
    pub issuer: String,
    pub audience: String,
    /// INVARIANT: not empty; all symmetric if the key is a shared secret, otherwise none.
    pub algorithms: Vec<IssuerAlgorithm>,
    pub key: JwtKey,
    #[serde(deserialize_with = "duration_of")]
    pub clock_skew: Duration,
    pub subject_claim: String,
    pub permissions_claim: String,
    /// The permission that makes its holder an admin; `None`: this issuer has no admins.
    pub admin_permission: Option<String>,
    pub required_scopes: Vec<String>,
    #[serde(deserialize_with = "duration_of")]
    pub jwks_refresh: Duration,
}

impl JwtIssuer {
    /// Uses the defaults of the configuration file, RS256 among them. A shared secret needs an HS algorithm in `algorithms`.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>, key: JwtKey) -> Self {
        Self {
            issuer: issuer.into(),
            audience: audience.into(),
            algorithms: vec![IssuerAlgorithm::Rs256],
            key,
            clock_skew: Duration::from_mins(1),
            subject_claim: "sub".to_owned(),
            permissions_claim: "permissions".to_owned(),
            admin_permission: None,
            required_scopes: Vec::new(),
            jwks_refresh: Duration::from_mins(10),
        }
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum JwtKey {
    /// The name of the environment variable, not its value.
    SecretEnv(String),
    PemFile(PathBuf),
    JwksFile(PathBuf),
    JwksUrl(String),
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
pub enum IssuerAlgorithm {
    #[serde(rename = "HS256")]
    Hs256,
    #[serde(rename = "HS384")]
    Hs384,
    #[serde(rename = "HS512")]
    Hs512,
    #[serde(rename = "RS256")]
    Rs256,
    #[serde(rename = "RS384")]
    Rs384,
    #[serde(rename = "RS512")]
    Rs512,
    #[serde(rename = "PS256")]
    Ps256,
    #[serde(rename = "PS384")]
    Ps384,
    #[serde(rename = "PS512")]
    Ps512,
    #[serde(rename = "ES256")]
    Es256,
    #[serde(rename = "ES384")]
    Es384,
    #[serde(rename = "EdDSA")]
    EdDsa,
}

/// The caller where no authentication takes place: stdio and `toolgate call`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LocalCaller {
    pub subject: String,
    pub permissions: Vec<String>,
}
