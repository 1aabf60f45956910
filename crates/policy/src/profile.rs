//! The format of baseline and profile files. Unknown keys and invalid values are rejected.

use std::{num::NonZeroU32, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use toolgate_spec::{Format, HostPattern, PathPattern, model::NetworkMode, value_from_text};

use crate::{asking::AskByRisk, rate::RiskLevel};

/// Parses one YAML file, or returns a one-line error.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let value = value_from_text(text, Format::Yaml).map_err(|finding| finding.message)?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// A complete baseline. Only the memory of commands and the approval level are optional.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct BaselineFile {
    pub allow_classes: Vec<String>,
    pub deny_classes: Vec<String>,
    pub network: ProfileNetwork,
    pub hosts_allow: Vec<ProfileHost>,
    pub file_read: bool,
    pub file_write: bool,
    pub fs_base_path: BasePath,
    pub max_statements: Statements,
    pub timeout_ms: Timeout,
    pub memory_mib: NonZeroU32,
    pub command_memory_mib: Option<NonZeroU32>,
    pub ask_from: Option<AskLevel>,
}

/// Absent or null settings are inherited.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct ProfileFile {
    pub extends: Option<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub add_allow_classes: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub add_deny_classes: Vec<String>,
    pub network: Option<ProfileNetwork>,
    #[serde(deserialize_with = "null_is_empty")]
    pub hosts_allow: Vec<ProfileHost>,
    pub file_mode: Option<FileMode>,
    pub fs_base_path: Option<BasePath>,
    pub max_statements: Option<Statements>,
    pub timeout_ms: Option<Timeout>,
    pub ask_from: Option<AskLevel>,
}

/// The risk level from which calls require approval; L0 never does.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) enum AskLevel {
    L1,
    L2,
    L3,
    L4,
    L5,
}

impl AskLevel {
    pub const fn threshold(self) -> AskByRisk {
        AskByRisk::From(match self {
            Self::L1 => RiskLevel::L1,
            Self::L2 => RiskLevel::L2,
            Self::L3 => RiskLevel::L3,
            Self::L4 => RiskLevel::L4,
            Self::L5 => RiskLevel::L5,
        })
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProfileNetwork {
    Blocked,
    Allowlist,
    Strict,
    Open,
}

impl ProfileNetwork {
    pub const fn mode(self) -> NetworkMode {
        match self {
            Self::Blocked => NetworkMode::Blocked,
            Self::Allowlist => NetworkMode::Allowlist,
            Self::Strict => NetworkMode::Strict,
            Self::Open => NetworkMode::Open,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileMode {
    Off,
    Read,
    ReadWrite,
}

#[derive(Debug)]
pub(crate) struct ProfileHost(pub HostPattern);

impl<'de> Deserialize<'de> for ProfileHost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        HostPattern::parse(&text)
            .map(Self)
            .map_err(|why| D::Error::custom(format_args!("host `{text}`: {why}")))
    }
}

/// One directory: absolute, or below `$WORKSPACE` or `$HOME`.
#[derive(Debug)]
pub(crate) struct BasePath(pub PathPattern);

impl BasePath {
    pub fn text(&self) -> Arc<str> {
        Arc::from(self.0.text())
    }
}

impl<'de> Deserialize<'de> for BasePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refuse = |why: &str| D::Error::custom(format_args!("path `{text}`: {why}"));
        match PathPattern::parse(&text) {
            Err(why) => Err(refuse(&why)),
            Ok(_) if text.contains('*') => Err(refuse("a base path must be one directory, without `*`")),
            Ok(path) => Ok(Self(path)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeout(pub u64);

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            ms @ 1..=MAX_TIMEOUT_MS => Ok(Self(ms)),
            ms => {
                Err(D::Error::custom(format_args!("timeoutMs `{ms}` is not between 1 and {MAX_TIMEOUT_MS}")))
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Statements(pub u64);

impl<'de> Deserialize<'de> for Statements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            most @ 1..=MAX_STATEMENTS => Ok(Self(most)),
            most => Err(D::Error::custom(format_args!(
                "maxStatements `{most}` is not between 1 and {MAX_STATEMENTS}"
            ))),
        }
    }
}

fn null_is_empty<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// As in the document's schema.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Days of work, and far below the integers that canonical JSON rounds.
const MAX_STATEMENTS: u64 = 1_000_000_000_000;
