//! Finds environment variables that hold the gateway's own secrets.

use std::path::Path;

use crate::{
    model::{Config, JwtKey},
    paths::configurations_of,
};

/// Names of environment variables that belong to the gateway and are hidden from tools.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OwnNames {
    Known(Vec<String>),
    /// A configuration exists but cannot be read. Any variable may hold a secret of the gateway.
    Unknown,
}

impl Default for OwnNames {
    fn default() -> Self {
        Self::Known(Vec::new())
    }
}

impl OwnNames {
    fn and(self, more: impl IntoIterator<Item = String>) -> Self {
        match self {
            Self::Known(names) => Self::Known(names.into_iter().chain(more).collect()),
            Self::Unknown => Self::Unknown,
        }
    }
}

impl Config {
    /// All variables that `_env` keys name: signing secrets of issuers, and credentials that the gateway or its providers send.
    /// A tool that read a signing secret could sign tokens for any caller.
    pub fn own_variables(&self) -> OwnNames {
        self.also_own.clone().and(self.named_variables().cloned())
    }

    fn named_variables(&self) -> impl Iterator<Item = &String> {
        let keys = self.auth.jwt.iter().filter_map(|issuer| match &issuer.key {
            JwtKey::SecretEnv(name) => Some(name),
            JwtKey::PemFile(_) | JwtKey::JwksFile(_) | JwtKey::JwksUrl(_) => None,
        });
        let webhook = self.audit.webhook.iter().filter_map(|webhook| webhook.token_env.as_ref());
        let collector = self.metrics.otlp.iter().filter_map(|otlp| otlp.headers_env.as_ref());
        let passed = self.secrets.providers.iter().flat_map(|provider| &provider.pass_env);
        keys.chain(webhook).chain(collector).chain(passed)
    }
}

/// The same for a draft under test in a workspace: the variables of the gateways that `guarded_in` finds.
pub fn own_variables_in(workspace: &Path, env: &dyn Fn(&str) -> Option<String>) -> OwnNames {
    let mut own = OwnNames::default();
    for (file, config) in configurations_of(workspace, env) {
        match config {
            Some(config) => own = own.and(config.named_variables().cloned()),
            None if file.try_exists().is_ok_and(|is_there| !is_there) => {}
            None => return OwnNames::Unknown,
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        key::{ConfigKey, ConfigValueKind},
        keys::ROOT,
        shape::TextShape,
        testing::parse,
    };

    const ALL: &str = "version: 1
auth: {jwt: [{issuer: i, audience: a, algorithms: [HS256], key: {secret_env: SIGNS}}]}
audit: {webhook: {url: 'https://a.example', token_env: POSTS}}
metrics: {otlp: {endpoint: 'https://b.example', headers_env: COUNTS}}
secrets: {providers: [{name: v, kind: command, command: [v, '{name}'], pass_env: [VAULT_TOKEN]}]}
";

    fn known(names: &[&str]) -> OwnNames {
        OwnNames::Known(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn variables_among(keys: &[ConfigKey]) -> usize {
        let of = |key: &ConfigKey| match &key.kind {
            ConfigValueKind::Text(TextShape::EnvName) | ConfigValueKind::Texts(TextShape::EnvName) => 1,
            ConfigValueKind::Section(inside)
            | ConfigValueKind::OneOf(inside)
            | ConfigValueKind::Sections(inside) => variables_among(inside),
            _ => 0,
        };
        keys.iter().map(of).sum()
    }

    /// Tools could read the variable of a key that is in the table but not in `named_variables`.
    #[test]
    fn variables_of_all_env_keys_are_hidden() {
        let mut config = parse(ALL).unwrap();
        assert_eq!(config.own_variables(), known(&["SIGNS", "POSTS", "COUNTS", "VAULT_TOKEN"]));
        assert_eq!(config.named_variables().count(), variables_among(ROOT));
        assert_eq!(parse("version: 1\n").unwrap().own_variables(), known(&[]));
        config.also_own = OwnNames::Unknown;
        assert_eq!(config.own_variables(), OwnNames::Unknown);
    }

    #[test]
    fn draft_cannot_read_variables_of_the_gateway_in_its_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other.yaml");
        fs::write(&other, ALL.replace("SIGNS", "SIGNS_TOO")).unwrap();
        let env = |name: &str| (name == "TOOLGATE_CONFIG").then(|| other.display().to_string());
        assert_eq!(own_variables_in(folder.path(), &|_| None), known(&[]));
        let named = ["SIGNS_TOO", "POSTS", "COUNTS", "VAULT_TOKEN"];
        assert_eq!(own_variables_in(folder.path(), &env), known(&named));
        fs::write(folder.path().join("toolgate.yaml"), ALL).unwrap();
        let both = [["SIGNS", "POSTS", "COUNTS", "VAULT_TOKEN"], named].concat();
        assert_eq!(own_variables_in(folder.path(), &env), known(&both));
        fs::write(folder.path().join("toolgate.yaml"), "version: 1\nauth: {jwt: [").unwrap();
        assert_eq!(own_variables_in(folder.path(), &env), OwnNames::Unknown, "any variable may be one");
    }
}
