//! Which environment variables hold what only the gateway may know?

use std::path::Path;

use crate::{
    model::{Config, JwtKey},
    paths::configurations_of,
};

/// Names of environment variables that are a gateway's own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OwnNames {
    Known(Vec<String>),
    /// A configuration that would tell is there and cannot be read.
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
    /// Every variable that a key ending in `_env` names: secrets of issuers, and what the gateway sends along itself. A tool
    /// that could read the first would sign for any caller.
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
        keys.chain(webhook).chain(collector)
    }
}

/// The same for a draft that is tried out in a workspace: those of the gateways that serve there, as `guarded_in` finds them.
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
        key::{Key, Kind},
        keys::ROOT,
        shape::Shape,
        testing::parse,
    };

    const ALL: &str = "version: 1
auth: {jwt: [{issuer: i, audience: a, algorithms: [HS256], key: {secret_env: SIGNS}}]}
audit: {webhook: {url: 'https://a.example', token_env: POSTS}}
metrics: {otlp: {endpoint: 'https://b.example', headers_env: COUNTS}}
";

    fn known(names: &[&str]) -> OwnNames {
        OwnNames::Known(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn variables_among(keys: &[Key]) -> usize {
        let of = |key: &Key| match &key.kind {
            Kind::Text(Shape::EnvName) | Kind::Texts(Shape::EnvName) => 1,
            Kind::Section(inside) | Kind::OneOf(inside) | Kind::Sections(inside) => variables_among(inside),
            _ => 0,
        };
        keys.iter().map(of).sum()
    }

    /// A key that is added to the table and forgotten here would be open to every tool.
    #[test]
    fn every_key_that_names_a_variable_counts() {
        let mut config = parse(ALL).unwrap();
        assert_eq!(config.own_variables(), known(&["SIGNS", "POSTS", "COUNTS"]));
        assert_eq!(config.named_variables().count(), variables_among(ROOT));
        assert_eq!(parse("version: 1\n").unwrap().own_variables(), known(&[]));
        config.also_own = OwnNames::Unknown;
        assert_eq!(config.own_variables(), OwnNames::Unknown);
    }

    #[test]
    fn a_draft_is_kept_from_those_of_the_gateway_that_serves_there() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other.yaml");
        fs::write(&other, ALL.replace("SIGNS", "SIGNS_TOO")).unwrap();
        let env = |name: &str| (name == "TOOLGATE_CONFIG").then(|| other.display().to_string());
        assert_eq!(own_variables_in(folder.path(), &|_| None), known(&[]));
        let named = ["SIGNS_TOO", "POSTS", "COUNTS"];
        assert_eq!(own_variables_in(folder.path(), &env), known(&named));
        fs::write(folder.path().join("toolgate.yaml"), ALL).unwrap();
        let both = [["SIGNS", "POSTS", "COUNTS"], named].concat();
        assert_eq!(own_variables_in(folder.path(), &env), known(&both));
        fs::write(folder.path().join("toolgate.yaml"), "version: 1\nauth: {jwt: [").unwrap();
        assert_eq!(own_variables_in(folder.path(), &env), OwnNames::Unknown, "any variable may be one");
    }
}
