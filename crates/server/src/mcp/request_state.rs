//! Seals and opens `requestState`, which binds an approval to a caller and a call.

use std::time::{Duration, SystemTime};

use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolgate_gate::ApprovalId;

use super::StateKey;

/// Seals the approval id and the time of the question, until the approval expires.
#[derive(Debug)]
pub struct StateSeal(RequestStateCodec);

/// Hash of the caller, tool and arguments that a state is bound to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StateBinding([u8; 32]);

/// The state is invalid; no reason is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadState;

impl StateSeal {
    pub fn new(key: &StateKey) -> Self {
        Self(RequestStateCodec::new_unchecked(key.0.to_vec()))
    }

    pub fn close(&self, approval: &ApprovalId, bound: StateBinding, expires: SystemTime) -> String {
        let left = expires.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO);
        // The codec takes zero for no expiry.
        let options = SealOptions::new().associated_data(&bound.0).ttl(left.max(Duration::from_millis(1)));
        let asked = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.0.seal_with(format!("{approval} {}", asked.as_millis()).as_bytes(), &options)
    }

    /// The approval, and how long ago the client was asked.
    pub fn open(&self, state: &str, bound: StateBinding) -> Result<(ApprovalId, Duration), BadState> {
        if state.len() > LONGEST_STATE {
            return Err(BadState);
        }
        let payload = self.0.open_with(state, &bound.0).map_err(|_| BadState)?;
        let text = std::str::from_utf8(&payload).map_err(|_| BadState)?;
        let (id, asked) = text.split_once(' ').ok_or(BadState)?;
        let asked = Duration::from_millis(asked.parse().map_err(|_| BadState)?);
        let since =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + asked).unwrap_or(Duration::ZERO);
        Ok((ApprovalId::parse(id).ok_or(BadState)?, since))
    }
}

impl StateBinding {
    /// Each part is prefixed with its length, so different calls have different bytes.
    /// Canonical JSON rounds integers beyond 2^53 - 1; the gate refuses calls with such arguments.
    pub fn to(subject: &str, tool: &str, arguments: &Map<String, Value>) -> Option<Self> {
        let arguments = serde_json_canonicalizer::to_vec(arguments).ok()?;
        let mut hash = Sha256::new();
        hash.update(b"toolgate request state 1\n");
        for part in [subject.as_bytes(), tool.as_bytes(), &arguments] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Some(Self(hash.finalize().into()))
    }
}

const LONGEST_STATE: usize = 1_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bound(subject: &str, tool: &str, arguments: &Value) -> StateBinding {
        StateBinding::to(subject, tool, arguments.as_object().unwrap()).unwrap()
    }

    fn id() -> ApprovalId {
        ApprovalId::from_random([7; 16])
    }

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_mins(10)
    }

    #[test]
    fn state_opens_for_its_call_in_any_member_order() {
        let seal = StateSeal::new(&StateKey([1; 32]));
        let state = seal.close(&id(), bound("ann", "mail", &json!({"a": 1, "b": 2})), later());
        let opened = seal.open(&state, bound("ann", "mail", &json!({"b": 2, "a": 1})));
        assert_eq!(opened.map(|(id, _)| id), Ok(id()));
    }

    #[test]
    fn state_does_not_open_for_another_call() {
        let seal = StateSeal::new(&StateKey([1; 32]));
        let state = seal.close(&id(), bound("ann", "mail", &json!({"a": 1})), later());
        for (subject, tool, arguments) in [
            ("bob", "mail", json!({"a": 1})),
            ("ann", "mails", json!({"a": 1})),
            ("annm", "ail", json!({"a": 1})),
            ("ann", "mail", json!({"a": 2})),
            ("ann", "mail", json!({})),
        ] {
            assert_eq!(
                seal.open(&state, bound(subject, tool, &arguments)),
                Err(BadState),
                "{subject} {tool}"
            );
        }
    }

    #[test]
    fn forged_expired_and_malformed_states_do_not_open() {
        let call = bound("ann", "mail", &json!({}));
        let seal = StateSeal::new(&StateKey([1; 32]));
        let forged = StateSeal::new(&StateKey([2; 32])).close(&id(), call, later());
        assert_eq!(seal.open(&forged, call), Err(BadState));
        let good = seal.close(&id(), call, later());
        assert_eq!(seal.open(&format!("{good}-TAMPERED"), call), Err(BadState));
        assert_eq!(seal.open(&"x".repeat(5_000), call), Err(BadState));
        assert_eq!(seal.open("", call), Err(BadState));
        let old = seal.close(&id(), call, SystemTime::now() - Duration::from_secs(1));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(seal.open(&old, call), Err(BadState));
    }

    #[test]
    fn key_is_not_printed() {
        let shown = format!("{:?} {:?}", StateKey([77; 32]), StateSeal::new(&StateKey([77; 32])));
        assert!(!shown.contains("77"), "{shown}");
    }
}
