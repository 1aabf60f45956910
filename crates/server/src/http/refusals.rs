//! Refused requests and connections: counted for metrics, and summarized for journal and log.
//!
//! A client that is refused a thousand times causes a few records, not a thousand.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{door::DoorEvents, problem::DoorCode};
use crate::auth::counted_as;

/// Counts refusals. A background task fetches the summaries and writes them to journal and log.
pub struct RefusalLog {
    /// In the order of `DoorCode::ALL`, which is that of the enum.
    totals: Vec<AtomicU64>,
    gathered: Mutex<HashMap<RefusalKey, RefusalCount>>,
}

/// Refusals of one kind since their last record. Only `detail` may contain text from a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RefusalSummary {
    pub code: DoorCode,
    /// An IPv4 address or an IPv6 network. `None` if too many addresses were refused, or no connection existed yet.
    pub peer: Option<String>,
    /// The caller, if authenticated.
    pub caller: Option<String>,
    pub count: u64,
    /// Details of the first one, for the log and not for the journal.
    pub detail: String,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct RefusalKey {
    code: DoorCode,
    block: Option<IpAddr>,
    caller: Option<String>,
}

#[derive(Default)]
struct RefusalCount {
    count: u64,
    detail: String,
    /// When the last record was taken. `None` before the first.
    taken: Option<Instant>,
}

impl Default for RefusalLog {
    fn default() -> Self {
        let totals = DoorCode::ALL.iter().map(|_| AtomicU64::new(0)).collect();
        Self { totals, gathered: Mutex::default() }
    }
}

impl RefusalLog {
    /// Since the start, for every code.
    pub fn totals(&self) -> impl Iterator<Item = (DoorCode, u64)> {
        let counts = self.totals.iter().map(|total| total.load(Ordering::Relaxed));
        DoorCode::ALL.iter().copied().zip(counts)
    }

    /// The summaries to record now: one per address and code and minute at most.
    pub fn due(&self, now: Instant) -> Vec<RefusalSummary> {
        let mut gathered = self.gathered();
        let is_quiet = |one: &RefusalCount| one.taken.is_some_and(|taken| now.duration_since(taken) < PAUSE);
        gathered.retain(|_, one| one.count > 0 || is_quiet(one));
        let due = gathered.iter_mut().filter(|(_, one)| one.count > 0 && !is_quiet(one));
        due.map(|(key, one)| {
            one.taken = Some(now);
            key.refusal(one)
        })
        .collect()
    }

    /// All summaries that are not recorded yet, for the shutdown.
    pub fn rest(&self) -> Vec<RefusalSummary> {
        let mut rest = std::mem::take(&mut *self.gathered());
        rest.iter_mut().filter(|(_, one)| one.count > 0).map(|(key, one)| key.refusal(one)).collect()
    }

    fn count(&self, code: DoorCode, peer: Option<IpAddr>, caller: Option<&str>, detail: &str) {
        if let Some(total) = self.totals.get(code as usize) {
            total.fetch_add(1, Ordering::Relaxed);
        }
        let key = RefusalKey { code, block: peer.map(counted_as), caller: caller.map(str::to_owned) };
        let mut gathered = self.gathered();
        let has_room = gathered.len() < MOST_GATHERED || gathered.contains_key(&key);
        // An attacker may have many addresses. When the table is full, they share one entry per code.
        let key = if has_room { key } else { RefusalKey { code, block: None, caller: None } };
        let one = gathered.entry(key).or_default();
        one.count = one.count.saturating_add(1);
        if one.detail.is_empty() {
            one.detail = detail.chars().take(LONGEST_DETAIL).collect();
        }
    }

    fn gathered(&self) -> MutexGuard<'_, HashMap<RefusalKey, RefusalCount>> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DoorEvents for RefusalLog {
    fn refused(&self, code: DoorCode, peer: Option<IpAddr>, detail: &str) {
        self.count(code, peer, None, detail);
    }

    fn refused_caller(&self, code: DoorCode, peer: Option<IpAddr>, caller: &str, detail: &str) {
        self.count(code, peer, Some(caller), detail);
    }

    fn refused_again(&self, code: DoorCode, peer: Option<IpAddr>) {
        self.count(code, peer, None, "");
    }
}

impl RefusalSummary {
    /// The journal's entry.
    pub fn entry(&self) -> Value {
        let reason = self.code.code();
        let mut entry = json!({
            "kind": "door.refused",
            "reason": reason,
            "peer": self.peer,
            "caller": self.caller,
            "count": self.count,
        });
        // In the same fields as records of calls, so one search finds both.
        if let (true, Some(members)) = (self.code.is_about_the_caller(), entry.as_object_mut()) {
            members.insert("decision".into(), "DENIED".into());
            members.insert("denial".into(), json!({ "reason": reason, "stage": toolgate_gate::AUTH }));
        }
        entry
    }

    /// The log's line, for all of them.
    pub fn line(&self) -> String {
        let peer = self.peer.as_deref().unwrap_or("several");
        let line = format!("refused {peer}: {} {}", self.code.code(), self.detail);
        match self.count {
            0 | 1 => line,
            count => format!("{line} (and {} more)", count - 1),
        }
    }
}

impl RefusalKey {
    /// Takes the count and resets it.
    fn refusal(&self, gathered: &mut RefusalCount) -> RefusalSummary {
        let (count, detail) = (std::mem::take(&mut gathered.count), std::mem::take(&mut gathered.detail));
        let peer = self.block.map(|block| match block {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(network) => format!("{network}/64"),
        });
        RefusalSummary { code: self.code, peer, caller: self.caller.clone(), count, detail }
    }
}

impl fmt::Debug for RefusalLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalLog").field("totals", &self.totals).finish_non_exhaustive()
    }
}

/// Entries of the table. With one more per code, this also limits the records per minute.
const MOST_GATHERED: usize = 64;
/// Characters of a detail in the log.
const LONGEST_DETAIL: usize = 300;
/// Between two records of the same kind.
const PAUSE: Duration = Duration::from_mins(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(refusals: &RefusalLog, code: DoorCode, peer: &str) {
        refusals.refused(code, Some(peer.parse().unwrap()), "secret detail");
    }

    #[test]
    fn first_refusal_is_reported_at_once_and_the_rest_once_a_minute() {
        let (refusals, start) = (RefusalLog::default(), Instant::now());
        refuse(&refusals, DoorCode::TokenMissing, "192.0.2.1");
        let first = refusals.due(start);
        assert_eq!(first.len(), 1);
        let expected = json!({
            "kind": "door.refused", "reason": "auth.token_missing", "peer": "192.0.2.1", "caller": null, "count": 1,
            "decision": "DENIED", "denial": { "reason": "auth.token_missing", "stage": "AUTH" },
        });
        assert_eq!(first[0].entry(), expected);
        assert_eq!(first[0].line(), "refused 192.0.2.1: auth.token_missing secret detail");
        for _ in 0..1000 {
            refuse(&refusals, DoorCode::TokenMissing, "192.0.2.1");
        }
        assert!(refusals.due(start + PAUSE / 2).is_empty());
        let later = refusals.due(start + PAUSE);
        assert_eq!(later.iter().map(|one| one.count).collect::<Vec<_>>(), [1000]);
        assert_eq!(later[0].line(), "refused 192.0.2.1: auth.token_missing secret detail (and 999 more)");
        assert!(refusals.due(start + PAUSE * 2).is_empty());
        assert!(refusals.gathered().is_empty(), "quiet entries are removed");
    }

    #[test]
    fn refusals_are_grouped_by_code_and_address_or_ipv6_network() {
        let refusals = RefusalLog::default();
        for peer in ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "::ffff:192.0.2.1"] {
            refuse(&refusals, DoorCode::TokenMissing, peer);
        }
        refuse(&refusals, DoorCode::HostNotAllowed, "192.0.2.1");
        let mut told: Vec<(String, u64)> =
            refusals.due(Instant::now()).into_iter().map(|one| (one.peer.unwrap(), one.count)).collect();
        told.sort();
        let expected = [("192.0.2.1", 1_u64), ("192.0.2.1", 2), ("192.0.2.2", 1), ("2001:db8::/64", 2)];
        assert_eq!(told, expected.map(|(peer, count)| (peer.to_owned(), count)));
    }

    /// `refused_again` skips the log only.
    #[test]
    fn repeated_refusals_are_counted_and_journalled() {
        let refusals = RefusalLog::default();
        refuse(&refusals, DoorCode::TooManyConnections, "192.0.2.1");
        for _ in 0..99 {
            refusals.refused_again(DoorCode::TooManyConnections, Some("192.0.2.1".parse().unwrap()));
        }
        assert_eq!(refusals.totals().map(|(_, total)| total).sum::<u64>(), 100);
        assert_eq!(refusals.due(Instant::now()).iter().map(|one| one.count).collect::<Vec<_>>(), [100]);
    }

    #[test]
    fn authenticated_caller_is_named() {
        let refusals = RefusalLog::default();
        let peer = Some("192.0.2.1".parse().unwrap());
        refusals.refused_caller(DoorCode::InsufficientScope, peer, "token:ann", "detail");
        assert_eq!(refusals.due(Instant::now())[0].entry()["caller"], "token:ann");
    }

    /// Only codes about the caller are denials. The others reject a request before it is authenticated.
    #[test]
    fn failed_authentication_is_recorded_as_denied() {
        for code in DoorCode::ALL {
            let entry =
                RefusalSummary { code: *code, peer: None, caller: None, count: 1, detail: String::new() }
                    .entry();
            if code.code().starts_with("auth.") {
                assert_eq!(entry["decision"], "DENIED", "{code:?}");
                assert_eq!(entry["denial"], json!({ "reason": code.code(), "stage": "AUTH" }));
            } else {
                assert_eq!((entry.get("decision"), entry.get("denial")), (None, None), "{code:?}");
            }
        }
    }

    /// Many addresses cause neither more records nor more memory.
    #[test]
    fn table_is_bounded_and_counts_are_complete() {
        let (refusals, start) = (RefusalLog::default(), Instant::now());
        let knock_from_everywhere = || {
            for number in 0..10_000_u32 {
                let peer = IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + number));
                let codes = DoorCode::ALL;
                refusals.refused(codes[number as usize % codes.len()], Some(peer), "detail");
            }
        };
        let mut told = Vec::new();
        for minute in 0..3 {
            knock_from_everywhere();
            assert!(refusals.gathered().len() <= MOST_GATHERED + DoorCode::ALL.len());
            let due = refusals.due(start + PAUSE * minute);
            assert!(due.len() <= MOST_GATHERED + DoorCode::ALL.len(), "{}", due.len());
            told.extend(due);
        }
        told.extend(refusals.rest());
        assert_eq!(told.iter().map(|one| one.count).sum::<u64>(), 30_000);
        assert_eq!(refusals.totals().map(|(_, total)| total).sum::<u64>(), 30_000);
        assert!(told.iter().any(|one| one.peer.is_none()), "further addresses share one entry");
        assert!(refusals.rest().is_empty());
    }
}
