//! Overrides from the environment and the command line.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::entry::ConfigOrigin;

/// Overrides from the command line. Each is validated like the key that it replaces.
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

/// One override of a key.
pub(crate) struct Overlay {
    section: &'static str,
    name: &'static str,
    value: String,
    pub origin: ConfigOrigin,
}

impl Overlay {
    /// Lists the command line after the environment, because later overrides win.
    pub fn gather(env: &dyn Fn(&str) -> Option<String>, overrides: &Overrides) -> Vec<Self> {
        // Ignore empty variables: Compose files pass unset variables as empty.
        let from_env = ENVIRONMENT.iter().filter_map(|(variable, section, name)| {
            let value = env(variable).filter(|value| !value.is_empty())?;
            Some(Self { section, name, value, origin: ConfigOrigin::Environment(variable) })
        });
        let options = [
            ("--listen", "server", "listen", &overrides.listen),
            ("--public-url", "server", "public_url", &overrides.public_url),
            ("--log", "log", "level", &overrides.log),
            ("--log-format", "log", "format", &overrides.log_format),
        ];
        let from_options = options.into_iter().filter_map(|(option, section, name, value)| {
            Some(Self { section, name, value: value.clone()?, origin: ConfigOrigin::CommandLine(option) })
        });
        from_env.chain(from_options).collect()
    }

    pub fn pointer(&self) -> String {
        format!("/{}/{}", self.section, self.name)
    }

    /// Inserts the value into the document. Does nothing if the file has no section there, which is reported as an error elsewhere.
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

/// The configuration file to load: `named`, else `TOOLGATE_CONFIG`, else `toolgate.yaml` in the current directory.
pub fn config_path(named: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let from_env = || env(CONFIG_VARIABLE).filter(|value| !value.is_empty()).map(Into::into);
    named.map(Into::into).or_else(from_env).unwrap_or_else(|| FILE_NAME.into())
}

pub(crate) const ENVIRONMENT: [(&str, &str, &str); 2] =
    [("TOOLGATE_LISTEN", "server", "listen"), ("TOOLGATE_LOG", "log", "level")];

pub(crate) const CONFIG_VARIABLE: &str = "TOOLGATE_CONFIG";

pub(crate) const FILE_NAME: &str = "toolgate.yaml";
