//! Records exchanges for the journal: a bounded list, and totals for those that do not fit.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::error::{Class, EgressReason};

/// All exchanges of a proxy, for the journal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProxyReport {
    /// In the order in which they ended.
    pub exchanges: Vec<Exchange>,
    /// The number of exchanges that are not listed, and their bytes in both directions.
    pub dropped: u32,
    pub dropped_bytes: u64,
}

/// One connection or one DNS question.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exchange {
    pub kind: ExchangeKind,
    /// The HTTP method or the DNS record type; empty if the request was unreadable.
    pub method: String,
    /// The parsed host. If parsing failed, the text of the request, shortened and escaped.
    pub host: String,
    pub port: Option<u16>,
    pub outcome: ExchangeOutcome,
    /// From the command to the network.
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub elapsed: Duration,
}

impl Exchange {
    /// In both directions.
    pub const fn bytes(&self) -> u64 {
        self.bytes_up.saturating_add(self.bytes_down)
    }

    /// Exchanges of the same group compete for space in the report. A flood of DNS questions or refusals therefore
    /// cannot hide a tunnel.
    fn group(&self) -> (bool, bool) {
        (self.kind == ExchangeKind::Dns, self.outcome.is_refusal())
    }

    /// The facts by which repetitions are found. The port is left out, because a command could vary it to make every
    /// exchange unique.
    fn repetition_key(&self) -> (ExchangeKind, &str, ExchangeOutcome) {
        (self.kind, &self.host, self.outcome)
    }
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ExchangeKind {
    Connect,
    Http,
    Dns,
}

impl ExchangeKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Http => "http",
            Self::Dns => "dns",
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ExchangeOutcome {
    Ok,
    /// The proxy denied it or the network failed; see the class of the reason.
    Ended(EgressReason),
    /// It was still open when the proxy was stopped.
    Stopped,
}

impl ExchangeOutcome {
    pub const fn code(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Ended(reason) => reason.slug(),
            Self::Stopped => "stopped",
        }
    }

    /// Whether the proxy denied it.
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Ended(reason) if reason.class() != Class::HelperRuntime)
    }
}

pub struct ExchangeLedger {
    state: Mutex<LedgerState>,
    most: usize,
}

#[derive(Default)]
struct LedgerState {
    ended: ProxyReport,
    /// Exchanges in progress.
    open: Vec<Arc<LiveExchange>>,
}

/// The current state of an exchange in progress.
struct LiveExchange {
    target: Mutex<ExchangeTarget>,
    up: AtomicU64,
    down: AtomicU64,
    started: Instant,
}

#[derive(Clone)]
struct ExchangeTarget {
    kind: ExchangeKind,
    method: String,
    host: String,
    port: Option<u16>,
}

impl ExchangeLedger {
    pub fn new(most: usize) -> Self {
        Self { state: Mutex::default(), most }
    }

    pub fn open(self: &Arc<Self>, kind: ExchangeKind) -> ExchangeEntry {
        let live = Arc::new(LiveExchange {
            target: Mutex::new(ExchangeTarget {
                kind,
                method: String::new(),
                host: String::new(),
                port: None,
            }),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            started: Instant::now(),
        });
        self.state().open.push(Arc::clone(&live));
        ExchangeEntry { ledger: Arc::clone(self), live, outcome: ExchangeOutcome::Stopped }
    }

    /// Ended exchanges, and open ones as if they were stopped now.
    pub fn report(&self) -> ProxyReport {
        let state = self.state();
        let mut report = state.ended.clone();
        for live in &state.open {
            report.add(live.exchange(ExchangeOutcome::Stopped), self.most);
        }
        report
    }

    fn close(&self, live: &Arc<LiveExchange>, outcome: ExchangeOutcome) {
        let mut state = self.state();
        state.open.retain(|open| !Arc::ptr_eq(open, live));
        state.ended.add(live.exchange(outcome), self.most);
    }

    fn state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProxyReport {
    fn add(&mut self, exchange: Exchange, most: usize) {
        let group = exchange.group();
        self.exchanges.push(exchange);
        let listed = self.exchanges.iter().filter(|listed| listed.group() == group).count();
        if listed <= most {
            return;
        }
        if let Some(at) = self.least_informative(group) {
            let left_out = self.exchanges.remove(at);
            self.dropped = self.dropped.saturating_add(1);
            self.dropped_bytes = self.dropped_bytes.saturating_add(left_out.bytes());
        }
    }

    /// Prefers an exchange that repeats another one, then the one with the fewest bytes, then the latest.
    fn least_informative(&self, group: (bool, bool)) -> Option<usize> {
        let within = || self.exchanges.iter().enumerate().filter(|(_, exchange)| exchange.group() == group);
        let mut counts: HashMap<_, u32> = HashMap::new();
        for (_, exchange) in within() {
            *counts.entry(exchange.repetition_key()).or_default() += 1;
        }
        let is_unique = |exchange: &Exchange| counts.get(&exchange.repetition_key()) == Some(&1);
        let ranked =
            |(at, exchange): &(usize, &Exchange)| (is_unique(exchange), exchange.bytes(), Reverse(*at));
        within().min_by_key(ranked).map(|(at, _)| at)
    }
}

impl LiveExchange {
    fn target(&self) -> MutexGuard<'_, ExchangeTarget> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exchange(&self, outcome: ExchangeOutcome) -> Exchange {
        let ExchangeTarget { kind, method, host, port } = self.target().clone();
        Exchange {
            kind,
            method,
            host,
            port,
            outcome,
            bytes_up: self.up.load(Ordering::Relaxed),
            bytes_down: self.down.load(Ordering::Relaxed),
            elapsed: self.started.elapsed(),
        }
    }
}

/// An exchange in progress. Dropping it records it in the ledger, even if its task was cancelled.
pub struct ExchangeEntry {
    ledger: Arc<ExchangeLedger>,
    live: Arc<LiveExchange>,
    outcome: ExchangeOutcome,
}

impl ExchangeEntry {
    /// Records the request before its target is parsed.
    pub fn set_request(&self, kind: ExchangeKind, method: String, host: String) {
        let mut target = self.live.target();
        (target.kind, target.method, target.host) = (kind, method, host);
    }

    pub fn set_target(&self, host: String, port: u16) {
        let mut target = self.live.target();
        (target.host, target.port) = (host, Some(port));
    }

    pub fn close(mut self, outcome: ExchangeOutcome) {
        self.outcome = outcome;
    }

    pub fn add_up(&self, bytes: u64) {
        self.live.up.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn add_down(&self, bytes: u64) {
        self.live.down.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for ExchangeEntry {
    fn drop(&mut self) {
        self.ledger.close(&self.live, self.outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_ALLOWED: ExchangeOutcome = ExchangeOutcome::Ended(EgressReason::HostNotInAllowlist);

    fn entry(ledger: &Arc<ExchangeLedger>, kind: ExchangeKind, host: &str, bytes: u64) -> ExchangeEntry {
        let entry = ledger.open(kind);
        entry.set_request(kind, "A".to_owned(), host.to_owned());
        entry.add_up(bytes);
        entry
    }

    /// Expects at most three exchanges per group, open ones last.
    #[track_caller]
    fn check(ended: &[(ExchangeKind, &str, u64, ExchangeOutcome)], expect: &[&str], dropped: (u32, u64)) {
        let ledger = Arc::new(ExchangeLedger::new(3));
        let open = entry(&ledger, ExchangeKind::Connect, "tunnel.test", 32);
        for (kind, host, bytes, outcome) in ended {
            entry(&ledger, *kind, host, *bytes).close(*outcome);
        }
        let report = ledger.report();
        let listed: Vec<String> = report
            .exchanges
            .iter()
            .map(|exchange| format!("{} {}", exchange.host, exchange.bytes()))
            .collect();
        assert_eq!(listed, expect);
        assert_eq!((report.dropped, report.dropped_bytes), dropped);
        open.close(ExchangeOutcome::Ok);
        assert_eq!(
            ledger.report().exchanges.last().map(|exchange| exchange.host.as_str()),
            Some("tunnel.test")
        );
    }

    #[test]
    fn dns_flood_does_not_hide_a_tunnel() {
        let question = (ExchangeKind::Dns, "a.test", 5, ExchangeOutcome::Ok);
        check(&[question; 9], &["a.test 5", "a.test 5", "a.test 5", "tunnel.test 32"], (6, 30));
    }

    /// Many small exchanges must not hide a large one, even to the same host.
    #[test]
    fn smallest_repetition_is_dropped_first() {
        let small = (ExchangeKind::Http, "a.test", 5, ExchangeOutcome::Ok);
        let large = (ExchangeKind::Http, "a.test", 500, ExchangeOutcome::Ok);
        let ended = [small, small, small, small, large, small];
        check(&ended, &["a.test 5", "a.test 500", "tunnel.test 32"], (4, 20));
    }

    #[test]
    fn every_host_is_listed_before_repetitions() {
        let to = |host| (ExchangeKind::Http, host, 0, NOT_ALLOWED);
        let ended = [to("a.test"), to("a.test"), to("a.test"), to("b.test"), to("c.test"), to("d.test")];
        check(&ended, &["a.test 0", "b.test 0", "c.test 0", "tunnel.test 32"], (3, 0));
    }
}
