//! What passed? A bounded list of exchanges, however they ended, and the sums of all that it has no room for.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::error::{Class, Reason};

/// What passed through a proxy, for the journal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProxyReport {
    /// In the order in which they ended.
    pub exchanges: Vec<Exchange>,
    /// How many more there were, and what went through them, both ways.
    pub dropped: u32,
    pub dropped_bytes: u64,
}

/// One connection, or one question for a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exchange {
    pub kind: ExchangeKind,
    /// Of HTTP, or the type of record that was asked for; empty if nothing sensible was said.
    pub method: String,
    /// As it was understood; where it could not be, what was said, shortened and without control characters.
    pub host: String,
    pub port: Option<u16>,
    pub outcome: Outcome,
    /// From the command to the world.
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub elapsed: Duration,
}

impl Exchange {
    /// Both ways.
    pub const fn bytes(&self) -> u64 {
        self.bytes_up.saturating_add(self.bytes_down)
    }

    /// Those of one room are told at each other's cost. A flood of questions, or of refusals, does not hide a tunnel.
    fn room(&self) -> (bool, bool) {
        (self.kind == ExchangeKind::Dns, self.outcome.is_refusal())
    }

    /// What a reader learns of it first. Not the port: there are too many for the command to choose from.
    fn gist(&self) -> (ExchangeKind, &str, Outcome) {
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
pub enum Outcome {
    Ok,
    /// We said no, or the world failed; the class of the reason tells which.
    Ended(Reason),
    /// It was still going on when the proxy was stopped.
    Stopped,
}

impl Outcome {
    pub const fn code(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Ended(reason) => reason.slug(),
            Self::Stopped => "stopped",
        }
    }

    /// Did we say no?
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Ended(reason) if reason.class() != Class::HelperRuntime)
    }
}

pub struct Ledger {
    book: Mutex<Book>,
    most: usize,
}

#[derive(Default)]
struct Book {
    ended: ProxyReport,
    /// Those that go on.
    open: Vec<Arc<Going>>,
}

/// What is known of an exchange while it goes on.
struct Going {
    told: Mutex<Told>,
    up: AtomicU64,
    down: AtomicU64,
    started: Instant,
}

#[derive(Clone)]
struct Told {
    kind: ExchangeKind,
    method: String,
    host: String,
    port: Option<u16>,
}

impl Ledger {
    pub fn new(most: usize) -> Self {
        Self { book: Mutex::default(), most }
    }

    pub fn open(self: &Arc<Self>, kind: ExchangeKind) -> Entry {
        let going = Arc::new(Going {
            told: Mutex::new(Told { kind, method: String::new(), host: String::new(), port: None }),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            started: Instant::now(),
        });
        self.book().open.push(Arc::clone(&going));
        Entry { ledger: Arc::clone(self), going, outcome: Outcome::Stopped }
    }

    /// What ended, and what goes on as if it were stopped now.
    pub fn so_far(&self) -> ProxyReport {
        let book = self.book();
        let mut report = book.ended.clone();
        for going in &book.open {
            report.add(going.exchange(Outcome::Stopped), self.most);
        }
        report
    }

    fn close(&self, going: &Arc<Going>, outcome: Outcome) {
        let mut book = self.book();
        book.open.retain(|open| !Arc::ptr_eq(open, going));
        book.ended.add(going.exchange(outcome), self.most);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProxyReport {
    fn add(&mut self, exchange: Exchange, most: usize) {
        let room = exchange.room();
        self.exchanges.push(exchange);
        let told = self.exchanges.iter().filter(|told| told.room() == room).count();
        if told <= most {
            return;
        }
        if let Some(at) = self.least_telling(room) {
            let left_out = self.exchanges.remove(at);
            self.dropped = self.dropped.saturating_add(1);
            self.dropped_bytes = self.dropped_bytes.saturating_add(left_out.bytes());
        }
    }

    /// One that repeats another before one that is alone of its kind; of these the one that moved least, and the latest of equals.
    fn least_telling(&self, room: (bool, bool)) -> Option<usize> {
        let within = || self.exchanges.iter().enumerate().filter(|(_, told)| told.room() == room);
        let mut times: HashMap<_, u32> = HashMap::new();
        for (_, told) in within() {
            *times.entry(told.gist()).or_default() += 1;
        }
        let is_alone = |told: &Exchange| times.get(&told.gist()) == Some(&1);
        within().min_by_key(|(at, told)| (is_alone(told), told.bytes(), Reverse(*at))).map(|(at, _)| at)
    }
}

impl Going {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exchange(&self, outcome: Outcome) -> Exchange {
        let Told { kind, method, host, port } = self.told().clone();
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

/// An exchange that goes on. Whatever ends it, a cancelled task too, it enters the ledger.
pub struct Entry {
    ledger: Arc<Ledger>,
    going: Arc<Going>,
    outcome: Outcome,
}

impl Entry {
    /// What was said, before anybody understood where it leads.
    pub fn asks(&self, kind: ExchangeKind, method: String, host: String) {
        let mut told = self.going.told();
        (told.kind, told.method, told.host) = (kind, method, host);
    }

    pub fn leads_to(&self, host: String, port: u16) {
        let mut told = self.going.told();
        (told.host, told.port) = (host, Some(port));
    }

    pub fn close(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    pub fn add_up(&self, bytes: u64) {
        self.going.up.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn add_down(&self, bytes: u64) {
        self.going.down.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.close(&self.going, self.outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_ALLOWED: Outcome = Outcome::Ended(Reason::HostNotInAllowlist);

    fn entry(ledger: &Arc<Ledger>, kind: ExchangeKind, host: &str, bytes: u64) -> Entry {
        let entry = ledger.open(kind);
        entry.asks(kind, "A".to_owned(), host.to_owned());
        entry.add_up(bytes);
        entry
    }

    /// Three are told of each room; those that are still open come last.
    #[track_caller]
    fn check(ended: &[(ExchangeKind, &str, u64, Outcome)], expect: &[&str], dropped: (u32, u64)) {
        let ledger = Arc::new(Ledger::new(3));
        let open = entry(&ledger, ExchangeKind::Connect, "tunnel.test", 32);
        for (kind, host, bytes, outcome) in ended {
            entry(&ledger, *kind, host, *bytes).close(*outcome);
        }
        let report = ledger.so_far();
        let told: Vec<String> =
            report.exchanges.iter().map(|told| format!("{} {}", told.host, told.bytes())).collect();
        assert_eq!(told, expect);
        assert_eq!((report.dropped, report.dropped_bytes), dropped);
        open.close(Outcome::Ok);
        assert_eq!(ledger.so_far().exchanges.last().map(|told| told.host.as_str()), Some("tunnel.test"));
    }

    #[test]
    fn questions_do_not_hide_a_tunnel() {
        let question = (ExchangeKind::Dns, "a.test", 5, Outcome::Ok);
        check(&[question; 9], &["a.test 5", "a.test 5", "a.test 5", "tunnel.test 32"], (6, 30));
    }

    /// Nor do many small exchanges hide a large one, to wherever it goes.
    #[test]
    fn of_what_repeats_the_least_is_left_out() {
        let small = (ExchangeKind::Http, "a.test", 5, Outcome::Ok);
        let large = (ExchangeKind::Http, "a.test", 500, Outcome::Ok);
        let ended = [small, small, small, small, large, small];
        check(&ended, &["a.test 5", "a.test 500", "tunnel.test 32"], (4, 20));
    }

    #[test]
    fn every_host_is_told_before_any_is_told_again() {
        let to = |host| (ExchangeKind::Http, host, 0, NOT_ALLOWED);
        let ended = [to("a.test"), to("a.test"), to("a.test"), to("b.test"), to("c.test"), to("d.test")];
        check(&ended, &["a.test 0", "b.test 0", "c.test 0", "tunnel.test 32"], (3, 0));
    }
}
