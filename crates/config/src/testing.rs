//! Shared test helpers.

use std::{fs, path::Path};

use crate::{Config, ConfigError, Overrides};

pub(crate) fn parse(text: &str) -> Result<Config, Vec<ConfigError>> {
    Config::parse(text, Path::new("/srv/gate"), &|_| None, &Overrides::default())
}

/// The settings without their entries: two texts with the same meaning may differ in origins.
pub(crate) fn settings(text: &str) -> Config {
    let config = parse(text).unwrap_or_else(|errors| panic!("{}\n{text}", show(&errors)));
    Config { entries: Vec::new(), ..config }
}

pub(crate) fn show(errors: &[ConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Compares a committed file with the generated one; `TOOLGATE_BLESS=1` overwrites it.
pub(crate) fn compare(name: &str, generate: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let expected = generate(&committed);
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    } else {
        assert!(
            committed == expected,
            "{name} is not what the code generates; run `make bless` and review the change"
        );
    }
}
