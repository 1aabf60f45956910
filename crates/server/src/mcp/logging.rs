//! Does the client want to read what a tool wrote to its console, and how a call ended that has no result? The protocol's
//! log messages, now deprecated.
#![expect(deprecated, reason = "clients of the older eras know nothing else")]

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
use toolgate_gate::{End, Outcome};

/// What the tool wrote, then the end, as far as the client wants to know.
pub async fn tell(
    peer: &Peer<RoleServer>,
    (tool, console): (&str, Vec<(&'static str, String)>),
    outcome: &Outcome,
    is_wanted: impl Fn(LoggingLevel) -> bool,
) {
    // A client that does not read must not keep its own call from ending.
    if !console.is_empty() {
        let _ = timeout(PATIENCE, tell_console(peer, (tool, console), outcome.call_id(), &is_wanted)).await;
    }
    if outcome.reason().is_some() {
        let _ = timeout(PATIENCE, tell_end(peer, tool, outcome, &is_wanted)).await;
    }
}

/// Under the tool's own name: what it says is not the gateway's word.
async fn tell_console(
    peer: &Peer<RoleServer>,
    (tool, console): (&str, Vec<(&'static str, String)>),
    call_id: &str,
    is_wanted: impl Fn(LoggingLevel) -> bool,
) {
    let lines = console.into_iter().map(|(level, text)| (level_of(level), text));
    let wanted: Vec<_> = lines.filter(|(level, _)| is_wanted(*level)).collect();
    for (level, text) in wanted {
        let message = LoggingMessageNotificationParam::new(level, json!({ "text": text, "callId": call_id }));
        if peer.notify_logging_message(message.with_logger(tool)).await.is_err() {
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

/// How a call ended that has no result.
async fn tell_end(
    peer: &Peer<RoleServer>,
    tool: &str,
    outcome: &Outcome,
    is_wanted: impl Fn(LoggingLevel) -> bool,
) {
    let Some(reason) = outcome.reason() else { return };
    let level = match reason.end() {
        End::Refused => LoggingLevel::Warning,
        End::Failed | End::Broken => LoggingLevel::Error,
    };
    if !is_wanted(level) {
        return;
    }
    // Of a broken gateway the caller learns the call's id and nothing else.
    let code = (reason.end() != End::Broken).then(|| reason.code());
    let data = json!({ "tool": tool, "code": code, "callId": outcome.call_id() });
    let message = LoggingMessageNotificationParam::new(level, data).with_logger("toolgate");
    drop(peer.notify_logging_message(message).await);
}

/// From which severity on a client wants to read messages. At first it wants none.
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

    pub fn lets_through(&self, level: LoggingLevel) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }
}

const PATIENCE: Duration = Duration::from_secs(1);
