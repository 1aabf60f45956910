//! The list of all journals in a state directory.
//!
//! A journal that is removed completely leaves no trace of itself. Every journal is therefore recorded in a signed and
//! chained list next to the journal directories, before its first record.

use std::{
    io::{ErrorKind, Read as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{FindingKind, JournalError, Key, PublicKey, RecordDigest, RecordPosition, folder, stamp::Stamp};

/// All lines of the list, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct JournalList {
    items: Vec<JournalListItem>,
}

/// One line of the list, for one journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalListItem {
    hash: RecordDigest,
    key: PublicKey,
    pub(crate) kind: JournalListItemKind,
    pub(crate) name: String,
    prev: RecordDigest,
    /// The last record of the journal when it was added to the list.
    pub(crate) reached: RecordPosition,
    seq: u64,
    signature: String,
    pub(crate) time: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JournalListItemKind {
    /// The journal was created with this line.
    Begun,
    /// The journal existed before the list.
    Found,
}

/// A line that was changed.
#[derive(Clone, Debug)]
pub(crate) struct ListFlaw {
    pub(crate) line: u64,
    pub(crate) kind: FindingKind,
    pub(crate) what: String,
}

impl JournalList {
    /// The list and its flaws. `None` if there is no list file.
    pub(crate) fn read(
        beside: &Path,
        trusted: Option<PublicKey>,
    ) -> Result<Option<(Self, Vec<ListFlaw>)>, JournalError> {
        let path = beside.join(FILE);
        let file = match folder::open_regular(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| JournalError::io("open", &path, error))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_LENGTH).read_to_end(&mut bytes).map_err(|e| JournalError::io("read", &path, e))?;
        Ok(Some(Self::parse(&bytes, trusted)))
    }

    /// A list without flaws, for a writer. Empty if there is none yet.
    pub(crate) fn load(beside: &Path, key: PublicKey) -> Result<Self, JournalError> {
        let Some((list, wrong)) = Self::read(beside, Some(key))? else { return Ok(Self::default()) };
        match wrong.first() {
            None => Ok(list),
            Some(ListFlaw { line, what, .. }) => Err(JournalError::untrusted(format!(
                "in the list of journals, `{FILE}`, line {line}: {what}"
            ))),
        }
    }

    /// Replaces the list file; it is on disk when this returns. The caller must hold [`folder::lock_list`].
    pub(crate) fn save(&self, beside: &Path) -> Result<(), JournalError> {
        let mut bytes = Vec::new();
        for item in &self.items {
            bytes.extend(item.bytes().map_err(|error| JournalError::Entry(format!("the list: {error}")))?);
            bytes.push(b'\n');
        }
        folder::replace(beside, FILE, &bytes)
            .map_err(|error| JournalError::io("write", &beside.join(FILE), error))
    }

    pub(crate) fn push(
        &mut self,
        kind: JournalListItemKind,
        name: &str,
        reached: RecordPosition,
        now: Stamp,
        key: &Key,
    ) -> RecordPosition {
        let before = self.last();
        let mut item = JournalListItem {
            hash: before.hash,
            key: key.public(),
            kind,
            name: name.to_owned(),
            prev: before.hash,
            reached,
            seq: before.seq + 1,
            signature: String::new(),
            time: now.text(),
        };
        let text = item.signed_text();
        item.hash = RecordDigest::of(text.as_bytes());
        item.signature = key.sign(&text);
        self.items.push(item);
        self.last()
    }

    pub(crate) fn items(&self) -> &[JournalListItem] {
        &self.items
    }

    pub(crate) fn last(&self) -> RecordPosition {
        self.items.last().map_or(RecordPosition::START, JournalListItem::position)
    }

    /// The newest line with this directory name.
    pub(crate) fn last_of(&self, name: &str) -> Option<&JournalListItem> {
        self.items.iter().rev().find(|item| item.name == name)
    }

    pub(crate) fn has(&self, position: RecordPosition) -> bool {
        position == RecordPosition::START || self.items.iter().any(|item| item.position() == position)
    }

    fn parse(bytes: &[u8], mut trusted: Option<PublicKey>) -> (Self, Vec<ListFlaw>) {
        let (mut list, mut wrong) = (Self::default(), Vec::new());
        let whole = bytes.strip_suffix(b"\n");
        let mut line = 0;
        for text in whole.unwrap_or(bytes).split(|byte| *byte == b'\n') {
            line += 1;
            let Some(item) = JournalListItem::parse(text) else {
                let what = "it is not a line of the list".to_owned();
                wrong.push(ListFlaw { line, kind: FindingKind::NotARecord, what });
                continue;
            };
            let key = *trusted.get_or_insert(item.key);
            if let Some((kind, what)) = item.flaw(list.last(), key) {
                wrong.push(ListFlaw { line, kind, what });
            }
            list.items.push(item);
        }
        if whole.is_none() {
            let what = "it is cut off".to_owned();
            wrong.push(ListFlaw { line, kind: FindingKind::TornLine, what });
        }
        (list, wrong)
    }
}

impl JournalListItem {
    pub(crate) fn position(&self) -> RecordPosition {
        RecordPosition { seq: self.seq, hash: self.hash }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let item = serde_json::from_slice::<Self>(text).ok()?;
        item.bytes().is_ok_and(|canonical| canonical == text).then_some(item)
    }

    fn bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json_canonicalizer::to_vec(self)
    }

    fn flaw(&self, before: RecordPosition, key: PublicKey) -> Option<(FindingKind, String)> {
        let text = self.signed_text();
        let expected = before.seq + 1;
        if self.key != key {
            let what =
                format!("it is signed by `{}`, which is not the key of this journal, `{key}`", self.key);
            Some((FindingKind::ForeignKey, what))
        } else if self.hash != RecordDigest::of(text.as_bytes())
            || !self.key.has_signed(&text, &self.signature)
        {
            Some((FindingKind::Edited, "its content was changed".to_owned()))
        } else if self.seq > expected {
            let what = format!("lines {expected} to {} of the list are missing before it", self.seq - 1);
            Some((FindingKind::Missing, what))
        } else if self.seq < expected {
            Some((FindingKind::OutOfOrder, format!("line {expected} of the list is expected here")))
        } else if self.prev != before.hash {
            Some((FindingKind::Unlinked, "it does not follow the line before it".to_owned()))
        } else {
            None
        }
    }

    fn signed_text(&self) -> String {
        let kind = match self.kind {
            JournalListItemKind::Begun => "begun",
            JournalListItemKind::Found => "found",
        };
        let Self { seq, prev, time, reached, name, .. } = self;
        format!("toolgate journal list 1\n{seq}\n{prev}\n{time}\n{kind}\n{reached}\n{name}\n")
    }
}

pub(crate) const FILE: &str = "journals.jsonl";
/// Enough for thousands of journals.
const MAX_LENGTH: u64 = 4 << 20;
