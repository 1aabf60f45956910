//! Log messages of the protocol: console lines of the tool, and how a call without a result ended.
#![expect(deprecated, reason = "clients of older protocol versions use log messages")]

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam},
    service::Peer,
};
use serde_json::json;
use tokio::time::timeout;
use toolgate_gate::{EndKind, Outcome};

/// A connection over which the client can be asked and receives messages during a call.
pub struct ClientConnection<'c> {
    pub peer: &'c Peer<RoleServer>,
    pub minimum: MinimumLevel<'c>,
}

/// The lowest level of messages that a client wants.
pub enum MinimumLevel<'c> {
    /// Set by `logging/setLevel`; it may change during the call.
    Session(&'c Threshold),
    /// Set in `_meta` of the request.
    Request(Option<LoggingLevel>),
}

impl MinimumLevel<'_> {
    fn admits(&self, level: LoggingLevel) -> bool {
        match self {
            Self::Session(threshold) => threshold.admits(level),
            Self::Request(minimum) => minimum.is_some_and(|minimum| level as u8 >= minimum as u8),
        }
    }
}

/// Sends the console lines of the tool, then how the call ended. Skips messages below the client's level.
pub async fn send(
    connection: &ClientConnection<'_>,
    (tool, console): (&str, Vec<(&'static str, String)>),
    outcome: &Outcome,
) {
    // The timeouts keep a client that does not read from blocking its own call.
    if !console.is_empty() {
        let _ = timeout(SEND_TIMEOUT, send_console(connection, (tool, console), outcome.call_id())).await;
    }
    if outcome.reason().is_some() {
        let _ = timeout(SEND_TIMEOUT, send_end(connection, tool, outcome)).await;
    }
}

/// The logger is the tool's name, because the tool wrote these lines and not the gateway.
async fn send_console(
    connection: &ClientConnection<'_>,
    (tool, console): (&str, Vec<(&'static str, String)>),
    call_id: &str,
) {
    let lines = console.into_iter().map(|(level, text)| (level_of(level), text));
    let wanted: Vec<_> = lines.filter(|(level, _)| connection.minimum.admits(*level)).collect();
    for (level, text) in wanted {
        let message = LoggingMessageNotificationParam::new(level, json!({ "text": text, "callId": call_id }));
        if connection.peer.notify_logging_message(message.with_logger(tool)).await.is_err() {
            return;
        }
    }
}

fn level_of(function: &str) -> LoggingLevel {
    match function {
        "debug" => LoggingLevel::Debug,
        "warn" => LoggingLevel::Warning,
        "error" => LoggingLevel::Error,
        _ => LoggingLevel::Info,
    }
}

/// Reports how a call without a result ended.
async fn send_end(connection: &ClientConnection<'_>, tool: &str, outcome: &Outcome) {
    let Some(reason) = outcome.reason() else { return };
    let level = match reason.end() {
        EndKind::Refused => LoggingLevel::Warning,
        EndKind::Failed | EndKind::Broken => LoggingLevel::Error,
    };
    if !connection.minimum.admits(level) {
        return;
    }
    // After an internal error the caller learns the call id only.
    let code = (reason.end() != EndKind::Broken).then(|| reason.code());
    let data = json!({ "tool": tool, "code": code, "callId": outcome.call_id() });
    let message = LoggingMessageNotificationParam::new(level, data).with_logger("toolgate");
    drop(connection.peer.notify_logging_message(message).await);
}

/// The level set by `logging/setLevel`. Initially the client receives no messages.
#[derive(Debug)]
pub struct Threshold(AtomicU8);

impl Default for Threshold {
    fn default() -> Self {
        Self(AtomicU8::new(u8::MAX))
    }
}

impl Threshold {
    pub fn set(&self, level: LoggingLevel) {
        self.0.store(level as u8, Ordering::Relaxed);
    }

    fn admits(&self, level: LoggingLevel) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }
}

const SEND_TIMEOUT: Duration = Duration::from_secs(1);
