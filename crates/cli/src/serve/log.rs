//! What does a running gateway say? A line for each thing that an operator wants to know, on standard error, without secrets.

use std::time::SystemTime;

use serde_json::json;
use toolgate_config::model::{Log as Settings, LogFormat, LogLevel};
use toolgate_gate::text_for_journal;
use toolgate_secrets::Detector;

use crate::{
    terminal::{Terminal, json as json_text, visible},
    time,
};

#[derive(Clone, Copy, Debug)]
pub struct Log {
    level: LogLevel,
    format: LogFormat,
}

impl Log {
    pub const fn new(settings: &Settings) -> Self {
        Self { level: settings.level, format: settings.format }
    }

    pub fn error(self, message: &str) {
        self.line(LogLevel::Error, "error", message);
    }

    pub fn warn(self, message: &str) {
        self.line(LogLevel::Warn, "warn", message);
    }

    pub fn info(self, message: &str) {
        self.line(LogLevel::Info, "info", message);
    }

    fn line(self, level: LogLevel, name: &str, message: &str) {
        if level > self.level {
            return;
        }
        Terminal::note(&self.written(&time::rfc3339(SystemTime::now()), name, message));
    }

    fn written(self, at: &str, name: &str, message: &str) -> String {
        let message = without_secrets(message);
        match self.format {
            LogFormat::Text => format!("{at} {name:<5} {}", visible(&message)),
            LogFormat::Json => json_text(&json!({ "time": at, "level": name, "message": message })),
        }
    }
}

/// With the shipped rules, which are there from the first line on, before the gateway has read the operator's own. Without rules
/// nothing could be told from a secret, so nothing is said.
fn without_secrets(message: &str) -> String {
    match Detector::shipped() {
        Ok(detector) => text_for_journal(&detector, message.to_owned()),
        Err(_) => "[REDACTED]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(format: LogFormat) -> Log {
        Log { level: LogLevel::Info, format }
    }

    /// Down to what is only possible: nobody can take a line back.
    #[test]
    fn a_line_has_no_secrets_in_it() {
        let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
        let possible = "d8dFAcabbEcc60b2059202398C50c67c65fAED6A";
        let message =
            format!("`{token}`: no such tool; password = \"hunter22\"; the secret is {possible}\u{202e}");
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = log(format).written("now", "warn", &message);
            assert!(line.contains("`[REDACTED]`: no such tool"), "{line}");
            for secret in [&*token, "hunter22", possible, "\u{202e}"] {
                assert!(!line.contains(secret), "{line}");
            }
        }
    }

    #[test]
    fn a_line_without_secrets_stays_as_it_is() {
        let line = log(LogFormat::Text).written("now", "info", "2 of 3 tools are live");
        assert_eq!(line, "now info  2 of 3 tools are live");
    }
}
