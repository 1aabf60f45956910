//! The log of a running gateway: lines on standard error, with secrets redacted.

use std::time::SystemTime;

use serde_json::json;
use toolgate_config::model::{LogFormat, LogLevel, LogSettings as Settings};
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

/// The log line of a finished call.
#[derive(Clone, Debug)]
pub struct CallLine {
    pub call_id: String,
    pub caller: String,
    pub tool: String,
    /// If false, the name is arbitrary text from the caller.
    pub is_known_tool: bool,
    pub outcome: &'static str,
    pub reason: Option<&'static str>,
    pub milliseconds: f64,
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

    /// Logs a call at level `info`.
    pub fn call(self, call: &CallLine) {
        if LogLevel::Info <= self.level {
            Terminal::note(&self.call_written(&time::rfc3339(SystemTime::now()), call));
        }
    }

    fn call_written(self, at: &str, call: &CallLine) -> String {
        let tool =
            if call.is_known_tool { bounded(&call.tool) } else { bounded(&without_secrets(&call.tool)) };
        let caller = bounded(&call.caller);
        // Microseconds are enough.
        let milliseconds = (call.milliseconds * 1_000.0).round() / 1_000.0;
        let CallLine { call_id, outcome, reason, .. } = call;
        match self.format {
            LogFormat::Json => json_text(&json!({
                "time": at, "level": "info", "message": "call", "callId": call_id, "caller": caller, "tool": tool,
                "outcome": outcome, "reason": reason, "ms": milliseconds,
            })),
            LogFormat::Text => {
                // Quote names as JSON: they may contain spaces and look like another field.
                let quoted = |name: &str| json_text(&json!(name));
                let reason = reason.map_or_else(String::new, |reason| format!(" reason={reason}"));
                format!(
                    "{at} info  call {call_id} caller={} tool={} outcome={outcome}{reason} ms={milliseconds}",
                    quoted(&caller),
                    quoted(&tool)
                )
            }
        }
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

/// Shortens a long name.
fn bounded(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// The longest caller or tool name in the log, in characters.
const LONGEST_NAME: usize = 128;

/// Redacts with the shipped rules, because they are available before the operator's rules are read. Without rules the
/// whole message is redacted, because a secret could not be recognised.
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

    /// Redacts even possible secrets, because a written line cannot be removed.
    #[test]
    fn secrets_are_redacted() {
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

    fn call(tool: &str, is_known_tool: bool) -> CallLine {
        CallLine {
            call_id: "0190".to_owned(),
            caller: "token:ann".to_owned(),
            tool: tool.to_owned(),
            is_known_tool,
            outcome: "refused",
            reason: Some("admit.unknown_tool"),
            milliseconds: 1.234_567,
        }
    }

    #[test]
    fn call_has_one_line_with_its_facts() {
        assert_eq!(
            log(LogFormat::Text).call_written("now", &call("say", true)),
            r#"now info  call 0190 caller="token:ann" tool="say" outcome=refused reason=admit.unknown_tool ms=1.235"#
        );
        let line = log(LogFormat::Json).call_written("now", &call("say", true));
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            line,
            json!({
                "time": "now", "level": "info", "message": "call", "callId": "0190", "caller": "token:ann",
                "tool": "say", "outcome": "refused", "reason": "admit.unknown_tool", "ms": 1.235,
            })
        );
    }

    /// A caller chooses the name of a tool that does not exist.
    #[test]
    fn hostile_name_stays_within_its_field() {
        let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
        let hostile = format!("x\" outcome=released\nfake \u{1b}[2J\u{202e} {token} {}", "a".repeat(10_000));
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = log(format).call_written("now", &call(&hostile, false));
            assert!(line.len() < 600, "{line}");
            for sign in ["\n", "\u{1b}", "\u{202e}", token.as_str(), "\" outcome=released"] {
                assert!(!line.replace("\\\"", "").contains(sign), "{sign:?}: {line}");
            }
        }
    }

    #[test]
    fn line_without_secrets_is_unchanged() {
        let line = log(LogFormat::Text).written("now", "info", "2 of 3 tools are live");
        assert_eq!(line, "now info  2 of 3 tools are live");
    }
}
