//! What passed? A bounded list with one entry for every exchange, however it ended.

use std::{
    mem,
    sync::{
        Arc, Mutex, PoisonError,
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
    report: Mutex<ProxyReport>,
    most: usize,
}

impl Ledger {
    pub fn new(most: usize) -> Self {
        Self { report: Mutex::default(), most }
    }

    pub fn open(self: &Arc<Self>, kind: ExchangeKind) -> Entry {
        Entry {
            ledger: Arc::clone(self),
            kind,
            method: String::new(),
            host: String::new(),
            port: None,
            outcome: Outcome::Stopped,
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    pub fn take(&self) -> ProxyReport {
        mem::take(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn close(&self, exchange: Exchange) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        // Each side has its own room: a thousand refusals do not hide what passed.
        let is_refusal = exchange.outcome.is_refusal();
        let alike = report.exchanges.iter().filter(|told| told.outcome.is_refusal() == is_refusal);
        if alike.count() < self.most {
            report.exchanges.push(exchange);
        } else {
            report.dropped = report.dropped.saturating_add(1);
        }
    }
}

/// An exchange that goes on. Whatever ends it, a cancelled task too, it enters the ledger.
pub struct Entry {
    ledger: Arc<Ledger>,
    pub kind: ExchangeKind,
    pub method: String,
    pub host: String,
    pub port: Option<u16>,
    outcome: Outcome,
    up: AtomicU64,
    down: AtomicU64,
    started: Instant,
}

impl Entry {
    pub fn close(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    pub fn add_up(&self, bytes: u64) {
        self.up.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn add_down(&self, bytes: u64) {
        self.down.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.close(Exchange {
            kind: self.kind,
            method: mem::take(&mut self.method),
            host: mem::take(&mut self.host),
            port: self.port,
            outcome: self.outcome,
            bytes_up: self.up.load(Ordering::Relaxed),
            bytes_down: self.down.load(Ordering::Relaxed),
            elapsed: self.started.elapsed(),
        });
    }
}
