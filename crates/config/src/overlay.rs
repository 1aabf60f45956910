//! What environment and command line lay over the file.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::entry::Origin;

/// What was said on the command line. Each is held to the rules of the key that it stands for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Overrides {
    /// `--listen`, for `server.listen`.
    pub listen: Option<String>,
    /// `--public-url`, for `server.public_url`.
    pub public_url: Option<String>,
    /// `--log`, for `log.level`.
    pub log: Option<String>,
    /// `--log-format`, for `log.format`.
    pub log_format: Option<String>,
}

/// One value that did not come from the file.
pub(crate) struct Overlay {
    section: &'static str,
    name: &'static str,
    value: String,
    pub origin: Origin,
}

impl Overlay {
    /// The command line after the environment, so that it wins.
    pub fn gather(env: &dyn Fn(&str) -> Option<String>, overrides: &Overrides) -> Vec<Self> {
        // An empty variable is how a compose file passes on one that is not set.
        let from_env = ENVIRONMENT.iter().filter_map(|(variable, section, name)| {
            let value = env(variable).filter(|value| !value.is_empty())?;
            Some(Self { section, name, value, origin: Origin::Environment(variable) })
        });
        let options = [
            ("--listen", "server", "listen", &overrides.listen),
            ("--public-url", "server", "public_url", &overrides.public_url),
            ("--log", "log", "level", &overrides.log),
            ("--log-format", "log", "format", &overrides.log_format),
        ];
        let from_options = options.into_iter().filter_map(|(option, section, name, value)| {
            Some(Self { section, name, value: value.clone()?, origin: Origin::CommandLine(option) })
        });
        from_env.chain(from_options).collect()
    }

    pub fn pointer(&self) -> String {
        format!("/{}/{}", self.section, self.name)
    }

    /// Puts the value into the document, unless the file has something else than a section there; that is refused anyway.
    pub fn lay_over(&self, document: &mut Map<String, Value>) {
        let section = document.entry(self.section).or_insert(Value::Null);
        if section.is_null() {
            *section = Value::Object(Map::new());
        }
        if let Value::Object(section) = section {
            section.insert(self.name.to_owned(), self.value.clone().into());
        }
    }
}

/// The file to load: the one that was named, or the one that the environment names, or `toolgate.yaml` here.
pub fn config_path(named: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let from_env = || env(CONFIG_VARIABLE).filter(|value| !value.is_empty()).map(Into::into);
    named.map(Into::into).or_else(from_env).unwrap_or_else(|| FILE_NAME.into())
}

pub(crate) const ENVIRONMENT: [(&str, &str, &str); 2] =
    [("TOOLGATE_LISTEN", "server", "listen"), ("TOOLGATE_LOG", "log", "level")];

pub(crate) const CONFIG_VARIABLE: &str = "TOOLGATE_CONFIG";

pub(crate) const FILE_NAME: &str = "toolgate.yaml";
