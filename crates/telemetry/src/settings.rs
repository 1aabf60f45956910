//! Settings for the collector.

use std::{error::Error, fmt, time::Duration};

use toolgate_gate::IsolationLayer;

use crate::headers::Headers;

/// `Debug` hides header values and credentials in the URL.
#[derive(Clone)]
pub struct TelemetrySettings {
    /// Without `/v1/traces` and `/v1/metrics`, such as `http://127.0.0.1:4318`.
    pub endpoint: String,
    pub headers: Headers,
    /// The time between two exports of metrics. Spans wait at most this long, and at most five seconds.
    pub interval: Duration,
    pub traces: Export,
    pub metrics: Export,
    pub callers: CallerNames,
    /// The isolation layers of the host, sent with the metrics.
    pub isolation: Vec<IsolationLayer>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Export {
    On,
    Off,
}

/// How spans name a caller. A subject may be a person's e-mail address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CallerNames {
    /// The first 16 hexadecimal digits of its SHA-256.
    #[default]
    Hashed,
    Plain,
}

/// Invalid settings. Never contains a header value.
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

impl fmt::Debug for TelemetrySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `start` rejects `user:password@`, but settings may be printed before.
        let shown = self.endpoint.split(['?', '#']).next().unwrap_or_default();
        let shown = if shown.contains('@') { "(with a user)" } else { shown };
        f.debug_struct("Settings")
            .field("endpoint", &shown)
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
    fn debug_hides_credentials() {
        let settings = TelemetrySettings {
            endpoint: "https://me:hunter2@collector.example/?key=hunter3".into(),
            headers: Headers::parse("authorization=Bearer%20hunter4").unwrap(),
            interval: Duration::from_secs(15),
            traces: Export::On,
            metrics: Export::Off,
            callers: CallerNames::default(),
            isolation: Vec::new(),
        };
        let shown = format!("{settings:?}");
        assert!(!shown.contains("hunter"), "{shown}");
        assert!(shown.contains("authorization") && shown.contains("Hashed"), "{shown}");
    }
}
