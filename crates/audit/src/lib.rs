//! The journal: a tamper-evident log of records. It is independent of tools and callers.
//!
//! A [`Journal`] appends records to one file per day. Each record has the digest of the one before it, and signed
//! checkpoints cover all records from time to time. [`verify`] finds changes, [`verify_list`] finds missing journals,
//! [`read`] reads records, and [`receipt`] proves single records to a person without the journal. The format is stable;
//! see `docs/journal-format.md`.
#![forbid(unsafe_code)]

mod canonical;
mod chain;
mod checkpoint;
mod digest;
mod entry;
mod error;
mod folder;
mod head;
mod journal;
mod key;
mod lines;
mod list;
mod listing;
mod membership;
mod read;
mod receipt;
mod record;
mod recover;
mod stamp;
mod tree;
mod verify;
mod writer;

pub use canonical::{Fragment, canonical, is_in_order};
pub use digest::{RecordDigest, RecordPosition};
pub use error::JournalError;
pub use journal::{ClockFn, Durability, Journal, JournalOptions};
pub use key::{Key, PublicKey};
pub use read::{Entries, Flaw, Record, TimeRange, read};
pub use receipt::{Receipt, receipt, receipt_for, verify_receipt};
pub use verify::{ClockBehind, FindingKind, JournalFinding, Report, verify, verify_list};
