//! The journal: records that cannot be changed unseen. Knows no tool and no caller.
//!
//! A [`Journal`] appends records to one file a day; each record carries the digest of the one before it, and
//! every now and then a signed checkpoint covers all of them. [`verify`] finds what was changed since,
//! [`verify_list`] which journals are gone as a whole, [`read`] reads, [`receipt`] proves single records to somebody who does not have the rest. The format is a promise and
//! written down in `docs/journal-format.md`.
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
pub use digest::{Digest, Position};
pub use error::JournalError;
pub use journal::{Clock, Journal, Options, Sync};
pub use key::{Key, PublicKey};
pub use read::{Entries, Flaw, Record, Span, read};
pub use receipt::{Receipt, receipt, receipt_for, verify_receipt};
pub use verify::{ClockBehind, Finding, FindingKind, Report, verify, verify_list};
