//! What passed? A bounded list with one entry for every exchange, however it ended.

use std::{
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
    /// How many more there were.
    pub dropped: u32,
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
    /// Each side has its own room: a thousand refusals do not hide what passed.
    fn add(&mut self, exchange: Exchange, most: usize) {
        let is_refusal = exchange.outcome.is_refusal();
        let alike = self.exchanges.iter().filter(|told| told.outcome.is_refusal() == is_refusal);
        if alike.count() < most {
            self.exchanges.push(exchange);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
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
