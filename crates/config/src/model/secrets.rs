//! Settings of secret detection and of the secret store.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::quantity::duration_of;

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SecretSettings {
    pub rules: Vec<PathBuf>,
    pub disabled: Vec<String>,
    pub key: SecretKeyPlace,
    /// The default of the user, if the file names none. `None`: the home directory is unknown.
    pub key_file: Option<PathBuf>,
    /// INVARIANT: names are unique. Empty: the environment.
    pub providers: Vec<SecretProvider>,
}

/// The place that keeps the key of the secret store.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum SecretKeyPlace {
    Auto,
    Keyring,
    Credential,
    File,
    Passphrase,
}

/// A source of secrets that the store does not have.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SecretProvider {
    pub name: String,
    pub kind: SecretProviderKind,
    /// INVARIANT: present for `file`.
    pub path: Option<PathBuf>,
    /// INVARIANT: for `command`, one argument after the program contains `{name}`.
    pub command: Vec<String>,
    pub pass_env: Vec<String>,
    #[serde(deserialize_with = "duration_of")]
    pub cache: Duration,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum SecretProviderKind {
    Env,
    File,
    Command,
}

/// `$XDG_CONFIG_HOME/toolgate/secrets.key`, or the same below `~/.config`.
pub fn default_key_file(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("toolgate/secrets.key"))
}
