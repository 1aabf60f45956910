//! The log of a serving gateway.

use std::{fmt, sync::Arc};

use toolgate_config::model::LogLevel;

type LogSink = dyn Fn(LogLevel, &str) + Send + Sync;

/// Receives each line with its level. Lines may quote documents and callers, so escape them before printing.
#[derive(Clone)]
pub struct ServeLog(Arc<LogSink>);

impl ServeLog {
    pub fn new(write: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    pub fn silent() -> Self {
        Self::new(|_, _| {})
    }

    pub fn error(&self, message: &str) {
        (self.0)(LogLevel::Error, message);
    }

    pub fn warn(&self, message: &str) {
        (self.0)(LogLevel::Warn, message);
    }

    pub fn info(&self, message: &str) {
        (self.0)(LogLevel::Info, message);
    }
}

impl fmt::Debug for ServeLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServeLog")
    }
}
