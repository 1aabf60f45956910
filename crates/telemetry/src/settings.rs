//! Where is the collector, what is it told, and how often?

use std::{error::Error, fmt, time::Duration};

use toolgate_gate::IsolationLayer;

use crate::headers::Headers;

/// Its `Debug` shows neither header values nor what may stand in a URL besides a place.
#[derive(Clone)]
pub struct Settings {
    /// Without `/v1/traces` and `/v1/metrics`, such as `http://127.0.0.1:4318`.
    pub endpoint: String,
    pub headers: Headers,
    /// Between two sendings of metrics. Spans wait at most as long, and at most five seconds.
    pub interval: Duration,
    pub traces: Export,
    pub metrics: Export,
    pub callers: Callers,
    /// The isolation layers of the host, sent with the metrics.
    pub isolation: Vec<IsolationLayer>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Export {
    On,
    Off,
}

/// How is a caller named in a span? A subject can be a person's address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Callers {
    /// The first 16 hexadecimal digits of its SHA-256.
    #[default]
    Hashed,
    Plain,
}

/// Settings that nothing can be sent with. Never repeats a header's value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SettingsError(String);

impl SettingsError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for SettingsError {}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `user:password@` is refused by `start`, but settings may be printed before.
        let place = self.endpoint.split(['?', '#']).next().unwrap_or_default();
        let place = if place.contains('@') { "(with a user)" } else { place };
        f.debug_struct("Settings")
            .field("endpoint", &place)
            .field("headers", &self.headers)
            .field("interval", &self.interval)
            .field("traces", &self.traces)
            .field("metrics", &self.metrics)
            .field("callers", &self.callers)
            .field("isolation", &self.isolation)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_not_in_debug() {
        let settings = Settings {
            endpoint: "https://me:hunter2@collector.example/?key=hunter3".into(),
            headers: Headers::parse("authorization=Bearer%20hunter4").unwrap(),
            interval: Duration::from_secs(15),
            traces: Export::On,
            metrics: Export::Off,
            callers: Callers::default(),
            isolation: Vec::new(),
        };
        let shown = format!("{settings:?}");
        assert!(!shown.contains("hunter"), "{shown}");
        assert!(shown.contains("authorization") && shown.contains("Hashed"), "{shown}");
    }
}
