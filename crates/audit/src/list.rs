//! Which journals were ever begun beside one another?
//!
//! A journal that is removed as a whole, head and all, leaves nothing behind that could tell of it. So every journal
//! is written down in a signed and chained list beside the folders, before its first record.

use std::{
    io::{ErrorKind, Read as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{Digest, FindingKind, JournalError, Key, Position, PublicKey, folder, stamp::Stamp};

/// All lines of the list, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    items: Vec<Item>,
}

/// One line: one journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    hash: Digest,
    key: PublicKey,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    prev: Digest,
    /// How far the journal reached when it was written down.
    pub(crate) reached: Position,
    seq: u64,
    signature: String,
    pub(crate) time: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The journal begins with this line.
    Begun,
    /// It was there before there was a list.
    Found,
}

/// A line that is not as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    pub(crate) line: u64,
    pub(crate) kind: FindingKind,
    pub(crate) what: String,
}

impl List {
    /// The list as it stands there, and what is wrong with it; none when there is no such file.
    pub(crate) fn read(
        beside: &Path,
        trusted: Option<PublicKey>,
    ) -> Result<Option<(Self, Vec<Wrong>)>, JournalError> {
        let path = beside.join(FILE);
        let file = match folder::open_regular(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| JournalError::io("open", &path, error))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_LENGTH).read_to_end(&mut bytes).map_err(|e| JournalError::io("read", &path, e))?;
        Ok(Some(Self::parse(&bytes, trusted)))
    }

    /// A list that a writer may rely on; empty when there is none yet.
    pub(crate) fn load(beside: &Path, key: PublicKey) -> Result<Self, JournalError> {
        let Some((list, wrong)) = Self::read(beside, Some(key))? else { return Ok(Self::default()) };
        match wrong.first() {
            None => Ok(list),
            Some(Wrong { line, what, .. }) => Err(JournalError::untrusted(format!(
                "in the list of journals, `{FILE}`, line {line}: {what}"
            ))),
        }
    }

    /// Puts the list in place of the one before; on disk when this returns. Hold [`folder::lock_list`] meanwhile.
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
        kind: Kind,
        name: &str,
        reached: Position,
        now: Stamp,
        key: &Key,
    ) -> Position {
        let before = self.last();
        let mut item = Item {
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
        item.hash = Digest::of(text.as_bytes());
        item.signature = key.sign(&text);
        self.items.push(item);
        self.last()
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(crate) fn last(&self) -> Position {
        self.items.last().map_or(Position::START, Item::position)
    }

    /// The newest line of a folder's name.
    pub(crate) fn last_of(&self, name: &str) -> Option<&Item> {
        self.items.iter().rev().find(|item| item.name == name)
    }

    pub(crate) fn has(&self, position: Position) -> bool {
        position == Position::START || self.items.iter().any(|item| item.position() == position)
    }

    fn parse(bytes: &[u8], mut trusted: Option<PublicKey>) -> (Self, Vec<Wrong>) {
        let (mut list, mut wrong) = (Self::default(), Vec::new());
        let whole = bytes.strip_suffix(b"\n");
        let mut line = 0;
        for text in whole.unwrap_or(bytes).split(|byte| *byte == b'\n') {
            line += 1;
            let Some(item) = Item::parse(text) else {
                let what = "it is not a line of the list".to_owned();
                wrong.push(Wrong { line, kind: FindingKind::NotARecord, what });
                continue;
            };
            let key = *trusted.get_or_insert(item.key);
            if let Some((kind, what)) = item.flaw(list.last(), key) {
                wrong.push(Wrong { line, kind, what });
            }
            list.items.push(item);
        }
        if whole.is_none() {
            let what = "it is cut off".to_owned();
            wrong.push(Wrong { line, kind: FindingKind::TornLine, what });
        }
        (list, wrong)
    }
}

impl Item {
    pub(crate) fn position(&self) -> Position {
        Position { seq: self.seq, hash: self.hash }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let item = serde_json::from_slice::<Self>(text).ok()?;
        item.bytes().is_ok_and(|canonical| canonical == text).then_some(item)
    }

    fn bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json_canonicalizer::to_vec(self)
    }

    fn flaw(&self, before: Position, key: PublicKey) -> Option<(FindingKind, String)> {
        let text = self.signed_text();
        let expected = before.seq + 1;
        if self.key != key {
            let what =
                format!("it is signed by `{}`, which is not the key of this journal, `{key}`", self.key);
            Some((FindingKind::ForeignKey, what))
        } else if self.hash != Digest::of(text.as_bytes()) || !self.key.has_signed(&text, &self.signature) {
            Some((FindingKind::Edited, "its content is not the one that was written".to_owned()))
        } else if self.seq > expected {
            let what = format!("lines {expected} to {} of the list are missing before it", self.seq - 1);
            Some((FindingKind::Missing, what))
        } else if self.seq < expected {
            Some((FindingKind::OutOfOrder, format!("line {expected} of the list should stand here")))
        } else if self.prev != before.hash {
            Some((FindingKind::Unlinked, "it does not follow the line before it".to_owned()))
        } else {
            None
        }
    }

    fn signed_text(&self) -> String {
        let kind = match self.kind {
            Kind::Begun => "begun",
            Kind::Found => "found",
        };
        let Self { seq, prev, time, reached, name, .. } = self;
        format!("toolgate journal list 1\n{seq}\n{prev}\n{time}\n{kind}\n{reached}\n{name}\n")
    }
}

pub(crate) const FILE: &str = "journals.jsonl";
/// Thousands of journals.
const MAX_LENGTH: u64 = 4 << 20;
