//! The summary of a finished call that is kept until it is sent. It holds neither arguments nor outputs.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolgate_gate::{CallStage, EndKind, Finished, Purpose, Reason};
use toolgate_policy::RiskLevel;

use crate::{
    hex::{digest, hex},
    settings::CallerNames,
};

/// A call's summary for a span.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallSummary {
    pub call_id: String,
    /// `None` if the tool is unknown: the name would be text of the client.
    pub tool: Option<String>,
    pub level: Option<RiskLevel>,
    pub caller: String,
    pub transport: Option<&'static str>,
    pub protocol: Option<String>,
    pub purpose: Purpose,
    pub reason: Option<Reason>,
    pub begun: SystemTime,
    pub duration: Duration,
    pub stages: Vec<(CallStage, Duration)>,
}

impl CallSummary {
    pub fn of(call: &Finished<'_>, callers: CallerNames) -> Self {
        let record = call.record;
        let level = level_of(call);
        Self {
            call_id: short(&record.call_id),
            tool: level.and_then(|_| text(&record.tool, "name")).map(short),
            level,
            caller: named(&record.caller.sub, callers),
            transport: TRANSPORTS.into_iter().find(|known| *known == record.client.transport),
            protocol: record.client.protocol.clone().filter(|version| is_date(version)),
            purpose: record.purpose,
            reason: call.reason,
            begun: call.begun,
            duration: call.duration,
            stages: call.stages.iter().take(CallStage::ALL.len()).copied().collect(),
        }
    }

    pub fn spans(&self) -> u64 {
        spans(&self.stages)
    }
}

/// The number of spans of this call: one for the whole, and one per stage.
pub fn spans_of(call: &Finished<'_>) -> u64 {
    spans(call.stages)
}

fn spans(stages: &[(CallStage, Duration)]) -> u64 {
    1 + stages.len().min(CallStage::ALL.len()) as u64
}

/// The risk level of the tool, if the call was admitted.
pub fn level_of(call: &Finished<'_>) -> Option<RiskLevel> {
    text(&call.record.tool, "level").and_then(RiskLevel::from_name)
}

/// How a call ended. Derived from the reason, because the record is closed before the journal write can fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallOutcome {
    Released,
    Pending,
    Refused,
    Failed,
    Broken,
}

impl CallOutcome {
    pub const ALL: [Self; 5] = [Self::Released, Self::Pending, Self::Refused, Self::Failed, Self::Broken];

    pub const fn of(reason: Option<Reason>) -> Self {
        match reason {
            None => Self::Released,
            Some(Reason::ApprovalPending) => Self::Pending,
            Some(reason) => match reason.end() {
                EndKind::Refused => Self::Refused,
                EndKind::Failed => Self::Failed,
                EndKind::Broken => Self::Broken,
            },
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Pending => "pending",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Broken => "broken",
        }
    }

    /// A refusal is correct behaviour, not an error.
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Failed | Self::Broken)
    }
}

/// Hashes here and not in the sender, so the plain name is not even queued.
fn named(subject: &str, callers: CallerNames) -> String {
    match callers {
        CallerNames::Plain => short(subject),
        CallerNames::Hashed => hex(&digest::<8>(subject.as_bytes())),
    }
}

fn text<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key).and_then(Value::as_str)
}

/// Clients may send any text as protocol version; valid versions are dates.
fn is_date(text: &str) -> bool {
    text.len() == "2026-07-28".len() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn short(text: &str) -> String {
    text.chars().take(MOST_CHARS).collect()
}

const TRANSPORTS: [&str; 4] = ["stdio", "http", "library", "command-line"];
const MOST_CHARS: usize = 200;

#[cfg(test)]
mod tests;
