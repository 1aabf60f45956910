//! Does the client want to read how a call ended that has no result? The protocol's log messages, now deprecated.
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

/// Tells how a call ended that has no result, where the client wants to know.
pub async fn tell_end(
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
    // A client that does not read must not keep its own call from ending.
    drop(timeout(PATIENCE, peer.notify_logging_message(message)).await);
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
