//! Is this the state that we gave to this caller for this very call?

use std::time::{Duration, SystemTime};

use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolgate_gate::ApprovalId;

use super::StateKey;

/// Seals the id of an approval, and when the client was asked, for one caller, one tool and one set of arguments, until the
/// approval expires.
#[derive(Debug)]
pub struct Seal(RequestStateCodec);

/// What a state is bound to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bound([u8; 32]);

/// Whatever is wrong with a state, this is all that is said about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadState;

impl Seal {
    pub fn new(key: &StateKey) -> Self {
        Self(RequestStateCodec::new_unchecked(key.0.to_vec()))
    }

    pub fn close(&self, approval: &ApprovalId, bound: Bound, expires: SystemTime) -> String {
        let left = expires.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO);
        // To the codec no time at all would mean for ever.
        let options = SealOptions::new().associated_data(&bound.0).ttl(left.max(Duration::from_millis(1)));
        let asked = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.0.seal_with(format!("{approval} {}", asked.as_millis()).as_bytes(), &options)
    }

    /// The approval, and how long ago the client was asked.
    pub fn open(&self, state: &str, bound: Bound) -> Result<(ApprovalId, Duration), BadState> {
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

impl Bound {
    /// Lengths come before texts, so that no two calls have the same bytes.
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

    fn bound(subject: &str, tool: &str, arguments: &Value) -> Bound {
        Bound::to(subject, tool, arguments.as_object().unwrap()).unwrap()
    }

    fn id() -> ApprovalId {
        ApprovalId::from_random([7; 16])
    }

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_mins(10)
    }

    #[test]
    fn a_state_opens_for_its_own_call_in_any_order_of_members() {
        let seal = Seal::new(&StateKey([1; 32]));
        let state = seal.close(&id(), bound("ann", "mail", &json!({"a": 1, "b": 2})), later());
        let opened = seal.open(&state, bound("ann", "mail", &json!({"b": 2, "a": 1})));
        assert_eq!(opened.map(|(id, _)| id), Ok(id()));
    }

    #[test]
    fn a_state_opens_for_no_other_call() {
        let seal = Seal::new(&StateKey([1; 32]));
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
    fn a_state_of_another_key_an_old_one_and_nonsense_do_not_open() {
        let call = bound("ann", "mail", &json!({}));
        let seal = Seal::new(&StateKey([1; 32]));
        let forged = Seal::new(&StateKey([2; 32])).close(&id(), call, later());
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
    fn the_key_is_never_shown() {
        let shown = format!("{:?} {:?}", StateKey([77; 32]), Seal::new(&StateKey([77; 32])));
        assert!(!shown.contains("77"), "{shown}");
    }
}
