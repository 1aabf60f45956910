//! What does a running gateway say? A line for each thing that an operator wants to know, on standard error.

use std::{net::IpAddr, time::SystemTime};

use serde_json::json;
use toolgate_config::model::{Log as Settings, LogFormat, LogLevel};
use toolgate_server::{DoorCode, DoorEvents};

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
        let at = time::rfc3339(SystemTime::now());
        match self.format {
            LogFormat::Text => Terminal::note(&format!("{at} {name:<5} {}", visible(message))),
            LogFormat::Json => {
                Terminal::note(&json_text(&json!({ "time": at, "level": name, "message": message })));
            }
        }
    }
}

impl DoorEvents for Log {
    fn refused(&self, code: DoorCode, peer: Option<IpAddr>, detail: &str) {
        let peer = peer.map_or_else(|| "nobody".to_owned(), |peer| peer.to_string());
        self.line(LogLevel::Warn, "warn", &format!("refused {peer}: {} {detail}", code.code()));
    }
}
